"""Registers that a trace has to compute: addresses, branches and barriers depend on them."""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import NamedTuple

from smembench.explain.ptx.program import Instruction, PtxKernel

MEMORY = ("ld", "ldu", "st", "atom", "red", "cp", "ldmatrix", "stmatrix", "mbarrier", "wmma", "wgmma")
"""Instructions that access memory, or parameters."""


class Needed(NamedTuple):
    """Registers, and the state spaces of memory whose contents are followed."""

    registers: Set[str]
    spaces: Set[str]

    def wants(self, given: Instruction) -> bool:
        """True if a target of an instruction is needed."""
        return not self.registers.isdisjoint(given.targets)


def needed(kernel: PtxKernel, *, data: bool, results: bool = False) -> Needed:
    """The registers and spaces on which addresses, branches and barriers depend, directly or through memory.

    Contents of global memory are only followed if there is ``data`` in it; with ``results`` so is what is stored there.
    """
    search = _Search(kernel, data)
    search.spaces |= {"global"} if results else set()
    before = -1
    while before != len(search.registers) + len(search.spaces):
        before = len(search.registers) + len(search.spaces)
        for given in reversed(kernel.code):  # most of what an instruction needs is computed before it
            search.look_at(given)
    spaces = search.spaces
    if spaces & {"shared", "local", "global"} and "generic" not in spaces:
        spaces.add("generic")
    elif "generic" in spaces:
        spaces |= {"shared", "local", "global"}
    return Needed(search.registers, spaces)


class _Search:
    """The registers that are needed, and the spaces of memory."""

    def __init__(self, kernel: PtxKernel, data: bool) -> None:
        self._kernel, self._data = kernel, data
        self.registers: set[str] = set()
        self.spaces: set[str] = set()

    def look_at(self, given: Instruction) -> None:
        """Add what an instruction needs."""
        memory = given.root in MEMORY and not given.by_name
        gives = not self.registers.isdisjoint(given.targets)
        if given.guard and (memory or given.ends or gives):
            self.registers.add(given.guard)
        if memory:
            self._of_memory(given, gives)
        elif gives or given.root in ("bar", "barrier", "brx"):
            self.registers.update(given.sources)
            if given.root in ("bar", "barrier"):
                self._in_texts(given.operands)

    def _of_memory(self, given: Instruction, gives: bool) -> None:
        self._in_texts(given.addresses)
        if gives and (self._data or given.space != "global"):
            self.spaces.add(given.space)
        any_space = given.space == "generic" and bool(self.spaces)
        followed = given.space in self.spaces or any_space or "generic" in self.spaces
        if given.root in ("wmma", "wgmma"):  # not their fragments in registers
            self._in_texts([text for text in given.operands if text[0] != "{"])
        elif given.root in ("cp", "mbarrier") or (given.root in ("st", "atom", "red") and followed):
            self.registers.update(given.sources)

    def _in_texts(self, texts: Iterable[str]) -> None:
        self.registers.update(name for text in texts for name in self._kernel.registers_in(text))
