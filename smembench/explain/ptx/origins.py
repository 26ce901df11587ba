"""Places that memory instructions reach: the variables and pointers that their addresses are computed from."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from smembench.explain.ptx.program import NAME, Instruction, PtxKernel
from smembench.launches.ptx_entry import TYPES

ANYWHERE = "*"
"""The place of an address that may have been loaded from memory, or whose origin is not known."""
_DYNAMIC = "dynamic shared memory"
"""The place of all variables without a size, which begin at the same byte."""


def origins(kernel: PtxKernel, pointers: Collection[str], memory: Collection[str]) -> Mapping[int, frozenset[str]]:
    """The places that each memory instruction may reach, by the instruction's ``id``.

    Args:
        kernel: the kernel.
        pointers: the parameters that hold addresses.
        memory: the roots of instructions that access memory.
    """
    search = _Search(kernel, pointers, memory)
    search.follow()
    accesses = (given for given in kernel.code if given.root in memory and not given.by_name)
    return {id(given): search.of_texts(given.addresses) or frozenset((ANYWHERE,)) for given in accesses}


class _Search:
    """The places that the values of registers are computed from."""

    def __init__(self, kernel: PtxKernel, pointers: Collection[str], memory: Collection[str]) -> None:
        self._kernel, self._memory = kernel, memory
        named = {name: name if variable.bytes else _DYNAMIC for name, variable in kernel.variables.items()}
        self._places: dict[str, frozenset[str]] = {
            name: frozenset((place,)) for name, place in (named | {name: name for name in pointers}).items()
        }

    def follow(self) -> None:
        """Add the places of what is computed from registers until no instruction adds one."""
        before = -1
        while before != (before := sum(map(len, self._places.values()))):
            for given in self._kernel.code:
                self._look_at(given)

    def of_texts(self, texts: Iterable[str]) -> frozenset[str]:
        """The places that operands are computed from."""
        names = (name for text in texts for name in NAME.findall(text))
        return frozenset[str]().union(*(self._places.get(name, ()) for name in names))

    def _look_at(self, given: Instruction) -> None:
        loaded = given.root in self._memory and not given.by_name
        integers = not given.types or TYPES[given.types[-1]][0] != "f"
        if loaded:
            places = frozenset((ANYWHERE,)) if integers else frozenset()
        elif any("%envreg" in text for text in given.operands):
            places = frozenset((ANYWHERE,))
        else:
            places = self.of_texts(given.operands[1:])
        for name in given.targets if places else ():
            self._places[name] = self._places.get(name, frozenset()) | places
