"""A few rows and columns beyond whole tiles, and unaligned rows of C, in the float32 ladder.

1. Remainder. Up to 8 rows or columns beyond whole tiles are computed as chunks of 8 × 8 that all blocks share. A side
   of 2049 is 16 tiles of 128 and one row: one tile more would leave some SMs three to compute instead of two. From nine
   rows or columns on a tile costs less. Findings: results/reference/notes/remainder.md.
2. Rows of C that are not aligned can be written through shared memory, so that whole sectors are written.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from smembench.kernels.intrinsics.block_flags import accumulate
from smembench.kernels.intrinsics.row_products import row_products
from smembench.kernels.intrinsics.vector import load_vector, store_vector
from smembench.kernels.matmul.tiling import LANES_DOWN, Tiling
from smembench.kernels.numba_cuda import DeviceFunction, cuda, device, number, uint32, uint64
from smembench.kernels.types import Array, Index, Matrix, Place

SIDE = 8
"""Rows, and columns, of a chunk; and most rows or columns of a remainder."""
AT_ONCE = 6
"""Steps along k whose loads are issued together: more take so many registers that ptxas makes the main loop worse."""


class Remainder(NamedTuple):
    """``chunks(m, n)``: their number. ``corner(chunk, m, n)``: a chunk's first row and column.

    ``compute(C, A, B, sums, tile, thread)``: this block's chunks; all its threads call it. ``sums``: registers.
    """

    chunks: DeviceFunction
    corner: DeviceFunction
    compute: DeviceFunction


@cache
def remainder(tiling: Tiling, *, tiles_follow: bool = False) -> Remainder:
    """The functions for a tiling, whose tiles are computed before the chunks or ``tiles_follow``.

    SIDE neighbouring lanes have a column of a chunk each, and so read along a row of B. A thread computes all rows of
    its column, over its share of k. The sums of all shares are added up in shared memory, in place of B's tiles, where
    padding keeps columns in different banks.
    """
    rows, columns, threads = tiling.rows, tiling.columns, tiling.threads
    members, pitch, zero = threads // SIDE, threads + SIDE, number(tiling.dtype)(0)
    add_all, add_rest = (row_products(SIDE, AT_ONCE, members, within=within) for within in (True, False))

    @device
    def strips(m: Index, n: Index) -> tuple[Index, Index, Index, Index]:
        """Chunks per strip right of whole tiles, and number of these; the same below whole tiles."""
        down, right = (m + (SIDE - 1)) // SIDE, (n % columns + (SIDE - 1)) // SIDE
        return down, right, n // columns * (columns // SIDE), (m % rows + (SIDE - 1)) // SIDE

    @device
    def chunks(m: Index, n: Index) -> Index:
        down, right, across, below = strips(m, n)
        return down * right + across * below

    @device
    def corner(chunk: Index, m: Index, n: Index) -> Place:  # those of the last columns come first
        down, right, across, _ = strips(m, n)
        if chunk < down * right:
            row, strip = chunk % down, chunk // down
            return Place(row * SIDE, n // columns * columns + strip * SIDE)
        chunk = chunk - down * right
        col, strip = chunk % across, chunk // across
        return Place(m // rows * rows + strip * SIDE, col * SIDE)

    @device
    def sum_up(sums: Array, tile: Array, A: Matrix, B: Matrix, thread: Index, corner: Place) -> None:
        first, at = Place(corner.row, min(corner.col + thread % SIDE, B.columns - 1)), uint64(thread // SIDE)
        for i in range(SIDE):
            sums[i] = zero
        while at + (AT_ONCE - 1) * members < uint64(A.columns):
            add_all(sums, A, B, first, at)
            at = at + AT_ONCE * members
        if at < uint64(A.columns):
            add_rest(sums, A, B, first, at)
        for i in range(SIDE):
            tile[i * pitch + thread] = sums[i]

    def compute(C: Matrix, A: Matrix, B: Matrix, sums: Array, tile: Array, thread: Index) -> None:
        chunk = cuda.blockIdx.y * cuda.gridDim.x + cuda.blockIdx.x
        while chunk < chunks(C.rows, C.columns):
            first = corner(chunk, C.rows, C.columns)
            if not tiles_follow:
                cuda.syncthreads()
            sum_up(sums, tile, A, B, thread, first)
            cuda.syncthreads()
            place = thread
            while place < SIDE * SIDE:
                i, j = place // SIDE, place % SIDE
                if first.row + i < C.rows and first.col + j < C.columns:
                    total = zero
                    for other in range(members):
                        total += tile[i * pitch + other * SIDE + j]
                    C.elements[(first.row + i) * C.stride + (first.col + j)] = total
                place = place + threads
            if tiles_follow:
                cuda.syncthreads()
            chunk = chunk + cuda.gridDim.x * cuda.gridDim.y

    return Remainder(chunks, corner, device(compute))


@cache
def write_staged(tiling: Tiling) -> DeviceFunction:
    """``(C, tile, accumulators, thread, own, since, corner, least)``: write results through two of B's tiles, by parts.

    ``own``: where in the block's tile, which is at ``corner``, the thread's first result lies. What lies above or left
    of ``least`` is left out; with steps ``since`` before, results are added to C. Written directly, each element would
    be one word of its own sector, and each sector would be written several times.
    """
    columns, across, threads, size = tiling.columns, tiling.across, tiling.threads, tiling.vector
    of_threads, warp_rows = tiling.rows // tiling.down, LANES_DOWN * tiling.down
    at_once = min(2 * tiling.b_elements // (of_threads * columns), size)
    parts, (rows_apart, columns_apart) = tiling.down // at_once, tiling.apart
    # A thread writes the same column of all its lines. They are powers of two apart, so row_of can be added up.
    lines_at_once, warps_down = threads // columns, of_threads // LANES_DOWN
    in_turn = LANES_DOWN * at_once // lines_at_once

    @device
    def row_of(line: Index) -> Index:
        return line // at_once * size + line % at_once

    def lines(adding: bool) -> DeviceFunction:
        def write_lines(C: Matrix, tile: Array, thread: Index, first: Place, top: Index) -> None:
            for warps in range(warps_down):
                for turn in range(in_turn):
                    line = first.row + (warps * warp_rows + row_of(uint32(turn * lines_at_once)))
                    if line >= top and line < C.rows:
                        at, value = line * C.stride + first.col, tile[thread + (warps * in_turn + turn) * threads]
                        if adding:
                            accumulate(C.elements, at, value)
                        else:
                            C.elements[at] = value

        return device(write_lines)

    write_new, add_to_old = lines(False), lines(True)

    def write(
        C: Matrix, tile: Array, sums: Array, thread: Index, own: Place, since: Index, corner: Place, least: Place
    ) -> None:
        staged = (own.row // warp_rows * LANES_DOWN + own.row % warp_rows // size) * (at_once * columns) + own.col
        for part in range(parts):
            cuda.syncthreads()
            for i in range(at_once):
                for j in range(0, across, size):
                    place = staged + (i * columns + j // size * columns_apart)
                    store_vector(tile, place, load_vector(sums, (part * at_once + i) * across + j))
            cuda.syncthreads()
            first = corner.row + (part * at_once // size * rows_apart + part * at_once % size)
            row, col = first + row_of(thread // columns), corner.col + thread % columns
            if col >= least.col and col < C.columns:
                if since > 0:
                    add_to_old(C, tile, thread, Place(row, col), least.row)
                else:
                    write_new(C, tile, thread, Place(row, col), least.row)

    return device(write)
