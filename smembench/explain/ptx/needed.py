"""Which registers a trace has to compute: those that addresses, branches and barriers depend on."""

from __future__ import annotations

from typing import NamedTuple

from smembench.explain.ptx.program import Instruction, PtxKernel

MEMORY = ("ld", "ldu", "st", "atom", "red", "cp", "ldmatrix", "stmatrix", "mbarrier", "wmma", "wgmma")
"""Instructions that access memory, or parameters."""


class Needed(NamedTuple):
    """Registers, and the state spaces of memory whose contents they come from."""

    registers: set[str]
    spaces: set[str]


def needed(kernel: PtxKernel, data: bool) -> Needed:
    """What addresses, branches and barriers of a kernel depend on, directly or through memory.

    Contents of global memory are only followed if there is ``data`` in it.
    """
    registers: set[str] = set()
    spaces: set[str] = set()
    before = -1
    while before != len(registers) + len(spaces):
        before = len(registers) + len(spaces)
        for instruction in kernel.code:
            _add(kernel, instruction, registers, spaces)
    if not data:
        spaces.discard("global")
    if spaces & {"shared", "local", "global"} and "generic" not in spaces:
        spaces.add("generic")
    elif "generic" in spaces:
        spaces |= {"shared", "local", "global"}
    return Needed(registers, spaces)


def _add(kernel: PtxKernel, given: Instruction, registers: set[str], spaces: set[str]) -> None:
    memory = given.root in MEMORY and not given.by_name
    gives = bool(registers.intersection(given.targets))
    if given.guard and (memory or given.ends or gives):
        registers.add(given.guard)
    if memory:
        for text in given.addresses:
            registers.update(kernel.registers_in(text))
        if gives:
            spaces.add(given.space)
        followed = given.space in spaces or (spaces and given.space == "generic") or "generic" in spaces
        if given.root in ("wmma", "wgmma"):  # not their fragments in registers
            registers.update(name for text in given.operands if text[0] != "{" for name in kernel.registers_in(text))
        elif given.root in ("cp", "mbarrier") or (given.root in ("st", "atom", "red") and followed):
            registers.update(given.sources)
    elif gives or given.root in ("bar", "barrier", "brx"):
        registers.update(given.sources)
        if given.root in ("bar", "barrier"):
            registers.update(name for text in given.operands for name in kernel.registers_in(text))
