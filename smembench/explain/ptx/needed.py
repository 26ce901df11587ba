"""Registers that a trace has to compute: addresses, branches and barriers depend on them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set
from typing import NamedTuple

from smembench.explain.ptx.origins import ANYWHERE, origins
from smembench.explain.ptx.program import Instruction, PtxKernel

MEMORY = ("ld", "ldu", "st", "atom", "red", "cp", "ldmatrix", "stmatrix", "mbarrier", "wmma", "wgmma")
"""Instructions that access memory, or parameters."""


class Needed(NamedTuple):
    """Registers, and the places whose contents are followed; ``reached`` has those of each memory instruction."""

    registers: set[str]
    places: set[str]
    reached: Mapping[int, Set[str]]

    def wants(self, given: Instruction) -> bool:
        """True if a target of an instruction is needed."""
        return not self.registers.isdisjoint(given.targets)

    def follows(self, given: Instruction) -> bool:
        """True if a memory instruction may reach contents that are followed."""
        reached = self.reached[id(given)]
        if ANYWHERE in self.places or ANYWHERE in reached:
            return bool(self.places)
        return not self.places.isdisjoint(reached)


def needed(kernel: PtxKernel, pointers: Collection[str], *, data: bool, results: bool = False) -> Needed:
    """The registers and places on which addresses, branches and barriers depend, directly or through memory.

    Contents of global memory are only followed if there is ``data`` in it; with ``results`` so is all that is stored.

    Args:
        kernel: the kernel.
        pointers: the parameters that hold addresses.
        data: whether contents of global memory are known.
        results: whether what is stored is asked for.
    """
    result = Needed(set(), {ANYWHERE} if results else set(), origins(kernel, pointers, MEMORY))
    search = _Search(kernel, data, result)
    before = -1
    while before != (before := len(result.registers) + len(result.places)):
        for given in reversed(kernel.code):  # most of what an instruction needs is computed before it
            search.look_at(given)
    return result


class _Search:
    """Adds to what is needed, instruction by instruction."""

    def __init__(self, kernel: PtxKernel, data: bool, result: Needed) -> None:
        self._kernel, self._data, self._result = kernel, data, result

    def look_at(self, given: Instruction) -> None:
        """Add what an instruction needs."""
        memory = given.root in MEMORY and not given.by_name
        gives = self._result.wants(given)
        if given.guard and (memory or given.ends or gives):
            self._result.registers.add(given.guard)
        if memory:
            self._of_memory(given, gives)
        elif gives or given.root in ("bar", "barrier", "brx"):
            self._result.registers.update(given.sources)
            if given.root in ("bar", "barrier"):
                self._in_texts(given.operands)

    def _of_memory(self, given: Instruction, gives: bool) -> None:
        self._in_texts(given.addresses)
        if gives and (self._data or given.space != "global"):
            self._result.places.update(self._result.reached[id(given)])
        if given.root in ("wmma", "wgmma"):  # not their fragments in registers
            self._in_texts([text for text in given.operands if text[0] != "{"])
        elif given.root in ("cp", "mbarrier") or (given.root in ("st", "atom", "red") and self._result.follows(given)):
            self._result.registers.update(given.sources)

    def _in_texts(self, texts: Iterable[str]) -> None:
        self._result.registers.update(name for text in texts for name in self._kernel.registers_in(text))
