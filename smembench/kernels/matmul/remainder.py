"""Remainder: up to 8 rows or columns beyond the last full tile, computed as 8×8 chunks shared by all blocks.

1. The remainder is cut into strips of SIDE rows or columns, and those into chunks of SIDE × SIDE.
2. Blocks take chunks in turn.
3. Per chunk SIDE neighbouring lanes have a column each, and so read along a row of B. A thread computes all rows of
   its column, from its part of k.
4. The parts are summed in shared memory, in place of B's tiles.

A side of 2049 is 16 tiles of 128 and one row: another row of tiles would make 289 blocks of 256, and leave some SMs
three to compute instead of two. From nine rows or columns on a tile costs less. Predicted accesses count as many chunks
for every block as one in the middle has. Findings: results/reference/notes/remainder.md.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from llvmlite import ir

from smembench.kernels.intrinsics.vector import register, types
from smembench.kernels.matmul.tiling import Tiling
from smembench.kernels.numba_cuda import DeviceFunction, device, number, uint64
from smembench.model.case import Case

SIDE = 8
"""Rows, and columns, of a chunk."""

MAX_REMAINDER = SIDE
"""Most rows or columns of a remainder: with more, tiles that are moved inwards cost less."""

AT_ONCE = 6
"""Steps along k whose loads are issued together: more take so many registers that ptxas makes the main loop worse."""


def small_remainder(case: Case, tiling: Tiling) -> bool:
    """Whether whole tiles leave at most MAX_REMAINDER rows and columns, and B's tiles can hold the sums of a chunk."""
    left = [side % tile for side, tile in ((case.m, tiling.rows), (case.n, tiling.columns))]
    fit = SIDE * _pitch(tiling) <= 2 * tiling.b_elements
    return fit and min(case.m // tiling.rows, case.n // tiling.columns) > 0 and max(left) in range(1, MAX_REMAINDER + 1)


def _pitch(tiling: Tiling) -> int:
    """Pitch of a chunk's sums, a row per row of the chunk, padded so that columns lie in different banks."""
    return tiling.threads + SIDE


class Remainder(NamedTuple):
    """The functions for one tiling.

    ``chunks(m, n)``: their number. ``corner(chunk, m, n)``: first row and column of one; those of the last columns
    come first. ``sum_up(tile, held, a, b, thread, row, col, m, n, k, lda, ldb)``: each thread's sums for the
    chunk that begins there, into SIDE registers ``held`` and from there into shared memory; beyond the edges of C the
    last row and column are read. ``write(c, tile, thread, row, col, m, n, ldc)``: its results, a thread each.
    """

    chunks: DeviceFunction
    corner: DeviceFunction
    sum_up: DeviceFunction
    write: DeviceFunction


@cache
def remainder(tiling: Tiling) -> Remainder:
    """The functions for a tiling. All threads of a block call ``sum_up`` and, after a barrier, ``write``."""
    rows, columns, threads = tiling.rows, tiling.columns, tiling.threads
    members, pitch = threads // SIDE, _pitch(tiling)
    zero = number(tiling.dtype)(0)

    @device
    def strips(side: Any, tile: Any) -> Any:
        """Strips of SIDE rows or columns beyond whole tiles."""
        return (side % tile + (SIDE - 1)) // SIDE

    @device
    def chunks_down(m: Any) -> Any:
        return (m + (SIDE - 1)) // SIDE

    @device
    def chunks_across(n: Any) -> Any:
        return n // columns * (columns // SIDE)

    def chunks(m: Any, n: Any) -> Any:
        of_columns = chunks_down(m) * strips(n, columns)
        return of_columns + chunks_across(n) * strips(m, rows)

    def corner(chunk: Any, m: Any, n: Any) -> Any:
        of_columns = chunks_down(m) * strips(n, columns)
        if chunk < of_columns:
            down, strip = chunk % chunks_down(m), chunk // chunks_down(m)
            first = n // columns * columns
            return down * SIDE, first + strip * SIDE
        more = chunk - of_columns
        across, strip = more % chunks_across(n), more // chunks_across(n)
        first = m // rows * rows
        return first + strip * SIDE, across * SIDE

    add_all, add_rest = (_products(SIDE, AT_ONCE, members, within) for within in (True, False))

    def sum_up(
        tile: Any, held: Any, a: Any, b: Any, thread: Any, row: Any, col: Any, m: Any, n: Any, k: Any, lda: Any,
        ldb: Any,
    ) -> None:  # fmt: skip
        own = min(col + thread % SIDE, n - 1)
        at = uint64(thread // SIDE)
        for i in range(SIDE):
            held[i] = zero
        while at + (AT_ONCE - 1) * members < uint64(k):
            add_all(held, a, b, row, own, at, m, k, lda, ldb)
            at = at + AT_ONCE * members
        if at < uint64(k):
            add_rest(held, a, b, row, own, at, m, k, lda, ldb)
        for i in range(SIDE):
            tile[i * pitch + thread] = held[i]

    def write(c: Any, tile: Any, thread: Any, row: Any, col: Any, m: Any, n: Any, ldc: Any) -> None:
        place = thread
        while place < SIDE * SIDE:
            i, j = place // SIDE, place % SIDE
            if row + i < m and col + j < n:
                total = zero
                for other in range(members):
                    total += tile[i * pitch + other * SIDE + j]
                c[(row + i) * ldc + (col + j)] = total
            place = place + threads

    return Remainder(device(chunks), device(corner), device(sum_up), device(write))


@cache
def _products(rows: int, count: int, apart: int, within: bool) -> DeviceFunction:
    """``(held, a, b, row, col, at, m, k, lda, ldb)``: add up to ``rows`` rows of A by a column of B.

    They are at ``count`` positions along k, from ``at`` and ``apart`` from each other; with ``within`` all lie before
    k. All loads come before all multiplications. Lowered as one intrinsic: NVVM would unroll a loop less, and wait in
    each iteration.
    """

    def add(held: Any, a: Any, b: Any, row: Any, col: Any, at: Any, m: Any, k: Any, lda: Any, ldb: Any) -> None:
        for j in range(count):
            place = at + j * apart
            if place < uint64(k):
                factor = b[place * uint64(ldb) + uint64(col)]
                for i in range(rows):
                    own = min(row + i, m - 1) * lda
                    held[i] += a[uint64(own) + place] * factor

    def lower(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        wide, narrow = ir.IntType(64), ir.IntType(32)
        held, a, b = (
            context.make_array(kind)(context, builder, array).data
            for kind, array in zip(signature.args[:3], args[:3], strict=True)
        )
        row, col, at, m, k, lda, ldb = args[3:]

        def least(x: Any, y: Any) -> Any:
            return builder.select(builder.icmp_unsigned("<", x, y), x, y)

        def widened(x: Any) -> Any:
            return builder.zext(x, wide)

        last_row = builder.sub(m, ir.Constant(narrow, 1))
        below = [least(builder.add(row, ir.Constant(narrow, i)), last_row) for i in range(rows)]
        starts = [builder.gep(a, [widened(builder.mul(one, lda))]) for one in below]
        factors, columns = [], []
        for j in range(count):
            place = asked = builder.add(at, ir.Constant(wide, j * apart))
            if not within:
                place = least(asked, builder.sub(widened(k), ir.Constant(wide, 1)))
            index = builder.add(builder.mul(place, widened(ldb)), widened(col))
            factor = builder.load(builder.gep(b, [index]))
            if not within:
                factor = builder.select(builder.icmp_unsigned("==", place, asked), factor, factor.type(0))
            factors.append(factor)
            columns.append([builder.load(builder.gep(start, [place])) for start in starts])
        for i in range(rows):
            target = builder.gep(held, [ir.Constant(wide, i)])
            total = builder.load(target)
            for factor, column in zip(factors, columns, strict=True):
                total = builder.fma(column[i], factor, total)
            builder.store(total, target)
        return context.get_dummy_value()

    register(add, lambda _context: _typed, lower, *[types.Array] * 3, *[types.Integer] * 7)
    return add


def _typed(
    held: Any, a: Any, b: Any, row: Any, col: Any, at: Any, m: Any, k: Any, lda: Any, ldb: Any
) -> Any:  # fmt: skip
    fit = at == types.uint64 and all(kind == types.uint32 for kind in (row, col, m, k, lda, ldb))
    return types.void if fit else None
