"""Loops that wait for another thread: an iteration differs from the one before only by what that thread stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from smembench.explain.ptx.needed import MEMORY
from smembench.explain.ptx.program import Instruction, PtxKernel

_SWAPS = {"cas", "exch"}
"""Atomics by which a thread waits for a lock or a flag."""
_NO_WAIT = ("call", "mbarrier", "brx", "ret", "exit")


def spins(kernel: PtxKernel) -> Mapping[int, Sequence[Instruction]]:
    """The loads in each such loop, by the ``id`` of the branch that repeats it."""
    by_branch = {}
    for number, branch in enumerate(kernel.code):
        if branch.root == "bra" and branch.guard:
            begin = kernel.labels[branch.operands[-1]]
            loads = _waiting(kernel, kernel.code[begin : number + 1]) if begin <= number else ()
            if loads and _comes_round(kernel, begin, number):
                by_branch[id(branch)] = loads
    return by_branch


def _comes_round(kernel: PtxKernel, begin: int, end: int) -> bool:
    """True if threads come from an instruction to a branch behind it by way of those between alone.

    Else the branch does not repeat a loop: it leads to code of a larger one that the compiler put before it.
    """
    reached: set[int] = set()
    left = [begin]
    while left:
        number = left.pop()
        if number == end:
            return True
        if begin <= number < end and number not in reached:
            reached.add(number)
            given = kernel.code[number]
            if given.root == "bra":
                left.append(kernel.labels[given.operands[-1]])
            if given.root != "bra" or given.guard:
                left.append(number + 1)
    return False


def _waiting(kernel: PtxKernel, loop: Sequence[Instruction]) -> Sequence[Instruction]:
    """The loads of a loop and its branch, none if it does anything but wait."""
    accesses = [op for op in loop if op.root in MEMORY and not op.by_name]
    loads = [op for op in accesses if op.root in ("ld", "ldu") or (op.root == "atom" and _SWAPS.intersection(op.parts))]
    stores = [op for op in accesses if op.root == "st" and op.space == "shared"]
    if len(loads) + len(stores) < len(accesses) or any(op.root in _NO_WAIT for op in loop):
        return ()
    return () if _counts(kernel, loop) else loads


def _counts(kernel: PtxKernel, loop: Sequence[Instruction]) -> bool:
    """True if accesses or branches of a loop depend on registers that an iteration leaves to the next."""
    needed: set[str] = set()
    for op in reversed(loop):
        if op.root in MEMORY or op.root == "bra" or needed.intersection(op.targets):
            if not op.guard:
                needed -= {*op.targets}
            needed |= {op.guard, *op.sources}
            needed |= {name for text in op.addresses for name in kernel.registers_in(text)}
    return bool(needed.intersection(name for op in loop for name in op.targets))
