"""Loops that wait for another thread: an iteration differs from the one before only by what that thread stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from smembench.explain.ptx.needed import MEMORY
from smembench.explain.ptx.program import Instruction, PtxKernel

_SWAPS = ("cas", "exch")
"""Atomics by which a thread waits for a lock or a flag."""
_NO_WAIT = ("call", "mbarrier", "brx", "ret", "exit")


def spins(kernel: PtxKernel) -> Mapping[int, Sequence[Instruction]]:
    """By the ``id`` of the branch that repeats such a loop: the loads in it."""
    found = {}
    for number, branch in enumerate(kernel.code):
        if branch.root == "bra" and branch.guard:
            begin = kernel.labels[branch.operands[-1]]
            if begin <= number and (loads := _waiting(kernel, kernel.code[begin : number + 1])):
                found[id(branch)] = loads
    return found


def _waiting(kernel: PtxKernel, loop: Sequence[Instruction]) -> Sequence[Instruction]:
    """The loads of a loop and its branch, none if it does anything but wait."""
    accesses = [each for each in loop if each.root in MEMORY and not each.by_name]
    loads = [each for each in accesses if each.root in ("ld", "ldu") or (each.root == "atom" and _swaps(each))]
    stores = [each for each in accesses if each.root == "st" and each.space == "shared"]
    if len(loads) + len(stores) < len(accesses) or any(each.root in _NO_WAIT for each in loop):
        return ()
    return () if _counts(kernel, loop) else loads


def _swaps(given: Instruction) -> bool:
    return any(part in _SWAPS for part in given.parts)


def _counts(kernel: PtxKernel, loop: Sequence[Instruction]) -> bool:
    """Whether accesses or branches of a loop depend on registers that an iteration leaves to the next."""
    needed: set[str] = set()
    for each in reversed(loop):
        if each.root in MEMORY or each.root == "bra" or needed.intersection(each.targets):
            if not each.guard:
                needed -= {*each.targets}
            needed |= {each.guard, *each.sources}
            needed |= {name for text in each.addresses for name in kernel.registers_in(text)}
    return bool(needed.intersection(name for each in loop for name in each.targets))
