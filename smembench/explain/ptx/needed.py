"""Instructions that a trace has to compute: addresses, branches and barriers depend on their results."""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import NamedTuple

from smembench.explain.ptx.program import Instruction, PtxKernel
from smembench.explain.ptx.reaching import Reaching

MEMORY = ("ld", "ldu", "st", "atom", "red", "cp", "ldmatrix", "stmatrix", "mbarrier", "wmma", "wgmma")
"""Instructions that access memory, or parameters."""


class Needed(NamedTuple):
    """Instructions by their ``id``, and the state spaces of memory whose contents are followed."""

    results: Set[int]
    spaces: Set[str]

    def wants(self, given: Instruction) -> bool:
        """True if the targets of an instruction are needed."""
        return id(given) in self.results


def needed(kernel: PtxKernel, *, data: bool, results: bool = False) -> Needed:
    """The instructions and spaces on which addresses, branches and barriers depend, directly or through memory.

    Contents of global memory are only followed if there is ``data`` in it; with ``results`` so is what is stored there.
    """
    search = _Search(kernel, data)
    search.spaces |= {"global"} if results else set()
    before = -1
    while before != len(search.wanted) + len(search.spaces):
        before = len(search.wanted) + len(search.spaces)
        for number, given in enumerate(kernel.code):
            search.look_at(number, given)
    spaces = search.spaces
    if spaces & {"shared", "local", "global"} and "generic" not in spaces:
        spaces.add("generic")
    elif "generic" in spaces:
        spaces |= {"shared", "local", "global"}
    return Needed({id(kernel.code[number]) for number in search.wanted}, spaces)


class _Search:
    """The numbers of the instructions whose results are needed, and the spaces of memory."""

    def __init__(self, kernel: PtxKernel, data: bool) -> None:
        self._kernel, self._data, self._reaching = kernel, data, Reaching(kernel)
        self.wanted: set[int] = set()
        self.spaces: set[str] = set()

    def look_at(self, number: int, given: Instruction) -> None:
        """Add what an instruction needs."""
        memory = given.root in MEMORY and not given.by_name
        gives = number in self.wanted
        if given.guard and (memory or given.ends or gives):
            self._want(number, [given.guard])
        if given.guard and gives:
            self._want(number, given.targets)
        if memory:
            self._of_memory(number, given, gives)
        elif gives or given.root in ("bar", "barrier", "brx"):
            self._want(number, given.sources)
            if given.root in ("bar", "barrier"):
                self._want_texts(number, given.operands)

    def _of_memory(self, number: int, given: Instruction, gives: bool) -> None:
        self._want_texts(number, given.addresses)
        if gives and (self._data or given.space != "global"):
            self.spaces.add(given.space)
        any_space = given.space == "generic" and bool(self.spaces)
        followed = given.space in self.spaces or any_space or "generic" in self.spaces
        if given.root in ("wmma", "wgmma"):  # not their fragments in registers
            self._want_texts(number, [text for text in given.operands if text[0] != "{"])
        elif given.root in ("cp", "mbarrier") or (given.root in ("st", "atom", "red") and followed):
            self._want(number, given.sources)

    def _want_texts(self, number: int, texts: Iterable[str]) -> None:
        self._want(number, (name for text in texts for name in self._kernel.registers_in(text)))

    def _want(self, number: int, names: Iterable[str]) -> None:
        for name in names:
            self.wanted.update(self._reaching.writes(number, name))
