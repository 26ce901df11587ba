"""Loops that wait for another thread: what they load, or compare and swap, is the same place each time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from smembench.explain.ptx.needed import MEMORY
from smembench.explain.ptx.program import Instruction, PtxKernel


def spins(kernel: PtxKernel) -> Mapping[int, Sequence[Instruction]]:
    """By the ``id`` of the branch that repeats such a loop: the loads in it."""
    found = {}
    for number, branch in enumerate(kernel.code):
        if branch.root == "bra" and branch.guard:
            begin = kernel.labels[branch.operands[-1]]
            if begin <= number and (loads := _waiting(kernel, kernel.code[begin:number])):
                found[id(branch)] = loads
    return found


def _waiting(kernel: PtxKernel, body: Sequence[Instruction]) -> Sequence[Instruction]:
    """The loads of a loop's body, none if it does anything but wait."""
    loads = [each for each in body if (each.root in ("ld", "ldu") and not each.by_name) or "cas" in each.parts]
    others = [each for each in body if each.root != "bra" and (each.ends or each.root in (*MEMORY, "call"))]
    changed = {name for each in body for name in each.targets}
    read = {name for each in loads for text in each.operands[1:] for name in kernel.registers_in(text)}
    return loads if all(each in loads for each in others) and not changed & read else ()
