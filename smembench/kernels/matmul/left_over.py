"""What whole tiles leave of C where that is a row or a few, dealt out to all blocks.

A side of 2049 is 16 tiles of 128 and one row more. Tiles for that, moved inwards or not, make 289 blocks of 256, and
for some multiprocessors three to compute instead of two. Dealt out instead, each block has some 9 elements of the last
column and as many of the last row, each strip a column or a row of C. All of its threads share the sums along k; the
results are summed up in shared memory, in place of B's tiles.

Predicted: some µs, the time of a few loads from the L2 one after the other. Found on an H200 (2026-11-20), best over
best before streamK: 0.84 of 2048 at 2049, where tiles had 0.76; 0.86 of 1536 at 1537 (0.65), 0.88 of 4096 at 4097
(0.83). What remains at 2049 is half the loads by elements, as at 2047 (0.92), and half this.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from smembench.case import Case
from smembench.cuda_api import device, number, uint32, uint64
from smembench.kernels.matmul.tiling import Tiling

Piece = Callable[..., Any]

FEW = 4
"""Rows or columns that are left over at most: with more of them, tiles that are moved inwards cost less."""

GROUPS, EACH = 4, 3
"""Into how many groups threads divide, and elements of a strip that a group computes at a time, each thread along k."""

AT_ONCE = GROUPS * EACH
"""Elements of a strip that a block computes at a time."""

_UNROLLED = 4


def few_left_over(case: Case, tiling: Tiling) -> bool:
    """Whether whole tiles cover all of C but a few rows or columns, or both."""
    left = [side % tile for side, tile in ((case.m, tiling.rows), (case.n, tiling.columns))]
    return min(case.m // tiling.rows, case.n // tiling.columns) > 0 and max(left) in range(1, FEW + 1)


@device
def share(strip: Any, block: Any, blocks: Any, m: Any, n: Any, down: Any, across: Any) -> Any:
    """A block's first element of a strip and the one after its last.

    Strips are numbered, columns first. ``down`` and ``across`` are the rows and columns that whole tiles cover.
    """
    elements = uint64(m if strip < uint32(n - across) else across)
    first = uint32(uint64(uint64(block) * elements) // uint64(blocks))
    return first, uint32(uint64(uint64(uint64(block) + uint64(1)) * elements) // uint64(blocks))


@cache
def sums(tiling: Tiling) -> Piece:
    """``(tile, held, a, b, thread, strip, first, end, n, k, down, across, lda, ldb)``: into shared memory.

    The sums of each thread's part of k, of AT_ONCE elements of a strip from ``first`` on.
    """
    members = tiling.threads // GROUPS
    zero = number(tiling.dtype)(0)

    @device
    def add(held: Any, x: Any, y: Any, at_x: Any, apart: Any, last: Any, at_y: Any) -> None:
        factor = y[at_y]
        for i in range(EACH):
            held[i] += x[uint32(at_x + uint32(min(uint32(i), last) * apart))] * factor

    @device
    def along_k(
        held: Any, x: Any, y: Any, at_x: Any, apart: Any, last: Any, at_y: Any, x_step: Any, y_step: Any,
        place: Any, k: Any,
    ) -> None:  # fmt: skip
        while uint32(place + uint32((_UNROLLED - 1) * members)) < k:
            for i in range(_UNROLLED):
                at = uint32(place + uint32(i * members))
                add(held, x, y, uint32(at_x + uint32(at * x_step)), apart, last, uint32(at_y + uint32(at * y_step)))
            place = uint32(place + uint32(_UNROLLED * members))
        while place < k:
            add(held, x, y, uint32(at_x + uint32(place * x_step)), apart, last, uint32(at_y + uint32(place * y_step)))
            place = uint32(place + uint32(members))

    def sum_up(
        tile: Any, held: Any, a: Any, b: Any, thread: Any, strip: Any, first: Any, end: Any, n: Any, k: Any,
        down: Any, across: Any, lda: Any, ldb: Any,
    ) -> None:  # fmt: skip
        group, place = uint32(thread // uint32(members)), uint32(thread % uint32(members))
        # Over the end the last element is computed again.
        own = min(uint32(first + uint32(group * uint32(EACH))), uint32(end - uint32(1)))
        last = uint32(uint32(end - uint32(1)) - own)
        for i in range(EACH):
            held[i] = zero
        columns = uint32(n - across)
        if strip < columns:
            along_k(held, a, b, uint32(own * lda), lda, last, uint32(across + strip), uint32(1), ldb, place, k)
        else:
            row = uint32(down + uint32(strip - columns))
            along_k(held, b, a, own, uint32(1), last, uint32(row * lda), ldb, uint32(1), place, k)
        for i in range(EACH):
            element = uint32(uint32(group * uint32(EACH)) + uint32(i))
            tile[uint32(uint32(element * uint32(members + 1)) + place)] = held[i]

    return device(sum_up)


@cache
def results(tiling: Tiling) -> Piece:
    """``(c, tile, thread, strip, first, end, n, down, across, ldc)``: an element for each of the first threads."""
    members = tiling.threads // GROUPS
    zero = number(tiling.dtype)(0)

    def write(
        c: Any, tile: Any, thread: Any, strip: Any, first: Any, end: Any, n: Any, down: Any, across: Any, ldc: Any
    ) -> None:
        element = uint32(first + thread)
        if thread < uint32(AT_ONCE) and element < end:
            total = zero
            for other in range(members):
                total += tile[uint32(uint32(thread * uint32(members + 1)) + uint32(other))]
            columns = uint32(n - across)
            if strip < columns:
                c[uint32(uint32(element * ldc) + uint32(across + strip))] = total
            else:
                c[uint32(uint32(uint32(down + uint32(strip - columns)) * ldc) + element)] = total

    return device(write)
