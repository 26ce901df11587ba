"""The ways through a kernel: straight pieces of code, and which follow which."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from smembench.explain.ptx.program import PtxKernel

_LEAVE = ("bra", "brx", "ret", "exit", "trap")
"""Instructions behind which no thread goes on without a guard."""

Extent = tuple[int, int]
"""The first instruction of a piece, and the one behind its last."""


def pieces(kernel: PtxKernel) -> list[Extent]:
    """The straight pieces of a kernel's code: only their last instructions branch or wait."""
    begins = {0, *kernel.labels.values()} | {number + 1 for number, op in enumerate(kernel.code) if op.ends}
    begins.discard(len(kernel.code))
    return list(pairwise([*sorted(begins), len(kernel.code)]))


def successors(kernel: PtxKernel, extents: Sequence[Extent]) -> list[list[int]]:
    """The pieces behind each piece; ``len(extents)`` is the kernel's end."""
    at = {begin: number for number, (begin, _) in enumerate(extents)} | {len(kernel.code): len(extents)}
    by_piece = []
    for number, (_, end) in enumerate(extents):
        last = kernel.code[end - 1]
        after = [number + 1] if last.guard or last.root not in _LEAVE else []
        if last.root == "bra":
            after.append(at[kernel.labels[last.operands[-1]]])
        elif last.root == "brx":
            after += [at[kernel.labels[label]] for label in kernel.tables.get(last.operands[1], ())]
        by_piece.append(after or [len(extents)])
    return by_piece


def behind(after: Sequence[Sequence[int]], number: int) -> frozenset[int]:
    """The pieces to which threads come from the end of a piece before they come to it again."""
    reached: set[int] = set()
    left = [*after[number]]
    while left:
        piece = left.pop()
        if piece not in reached and piece != number and piece < len(after):
            reached.add(piece)
            left += after[piece]
    return frozenset(reached)
