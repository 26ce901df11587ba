"""Remainder: up to 8 rows or columns beyond the last full tile, computed as 8×8 chunks shared by all blocks.

1. The remainder is cut into strips of SIDE rows or columns, and those into chunks of SIDE × SIDE.
2. Blocks take chunks in turn.
3. Per chunk SIDE neighbouring lanes have a column each, and so read along a row of B. A thread computes all rows of
   its column, over its share of k.
4. The sums over all shares are added up in shared memory, in place of B's tiles.

A side of 2049 is 16 tiles of 128 and one row: another row and column of tiles would make 289 blocks instead of 256,
and leave some SMs three to compute instead of two. From nine rows or columns on a tile costs less. Predicted accesses
count as many chunks for every block as one in the middle has. Findings: results/reference/notes/remainder.md.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from smembench.kernels.intrinsics.row_products import row_products
from smembench.kernels.matmul.structs import Memory
from smembench.kernels.matmul.tiling import Tiling
from smembench.kernels.numba_cuda import DeviceFunction, cuda, device, number, uint64
from smembench.kernels.types import Array, Index, Matrix, Place
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
    come first. ``compute(C, A, B, memory, thread)``: this block's chunks; all its threads call it.
    """

    chunks: DeviceFunction
    corner: DeviceFunction
    compute: DeviceFunction


@cache
def remainder(tiling: Tiling, *, tiles_follow: bool = False) -> Remainder:
    """The functions for a tiling, whose tiles are computed before the chunks or ``tiles_follow``."""
    rows, columns = tiling.rows, tiling.columns

    @device
    def strips(side: Index, tile: Index) -> Index:
        """Strips of SIDE rows or columns beyond whole tiles."""
        return (side % tile + (SIDE - 1)) // SIDE

    @device
    def chunks_down(m: Index) -> Index:
        return (m + (SIDE - 1)) // SIDE

    @device
    def chunks_across(n: Index) -> Index:
        return n // columns * (columns // SIDE)

    @device
    def chunks(m: Index, n: Index) -> Index:
        of_columns = chunks_down(m) * strips(n, columns)
        return of_columns + chunks_across(n) * strips(m, rows)

    @device
    def corner(chunk: Index, m: Index, n: Index) -> Place:
        of_columns = chunks_down(m) * strips(n, columns)
        if chunk < of_columns:
            down, strip = chunk % chunks_down(m), chunk // chunks_down(m)
            first = n // columns * columns
            return Place(down * SIDE, first + strip * SIDE)
        more = chunk - of_columns
        across, strip = more % chunks_across(n), more // chunks_across(n)
        first = m // rows * rows
        return Place(first + strip * SIDE, across * SIDE)

    sum_up, write = _sum_up(tiling), _write(tiling)

    def compute(C: Matrix, A: Matrix, B: Matrix, memory: Memory, thread: Index) -> None:
        chunk = cuda.blockIdx.y * cuda.gridDim.x + cuda.blockIdx.x
        while chunk < chunks(C.rows, C.columns):
            first = corner(chunk, C.rows, C.columns)
            if not tiles_follow:
                cuda.syncthreads()
            sum_up(memory, A, B, thread, first)
            cuda.syncthreads()
            write(C, memory.tiles.b, thread, first)
            if tiles_follow:
                cuda.syncthreads()
            chunk = chunk + cuda.gridDim.x * cuda.gridDim.y

    return Remainder(chunks, corner, device(compute))


def _sum_up(tiling: Tiling) -> DeviceFunction:
    """``(memory, A, B, thread, corner)``: a thread's sums for a chunk, into SIDE registers and then into B's tile.

    Beyond the edges of C the last row and column are read.
    """
    members, pitch = tiling.threads // SIDE, _pitch(tiling)
    zero = number(tiling.dtype)(0)
    add_all, add_rest = (row_products(SIDE, AT_ONCE, members, within=within) for within in (True, False))

    def sum_up(memory: Memory, A: Matrix, B: Matrix, thread: Index, corner: Place) -> None:
        first = Place(corner.row, min(corner.col + thread % SIDE, B.columns - 1))
        at = uint64(thread // SIDE)
        for i in range(SIDE):
            memory.accumulators[i] = zero
        while at + (AT_ONCE - 1) * members < uint64(A.columns):
            add_all(memory.accumulators, A, B, first, at)
            at = at + AT_ONCE * members
        if at < uint64(A.columns):
            add_rest(memory.accumulators, A, B, first, at)
        for i in range(SIDE):
            memory.tiles.b[i * pitch + thread] = memory.accumulators[i]

    return device(sum_up)


def _write(tiling: Tiling) -> DeviceFunction:
    """``(C, tile, thread, corner)``: add up the sums of a chunk and write its results, a thread each."""
    members, pitch, threads = tiling.threads // SIDE, _pitch(tiling), tiling.threads
    zero = number(tiling.dtype)(0)

    def write(C: Matrix, tile: Array, thread: Index, corner: Place) -> None:
        place = thread
        while place < SIDE * SIDE:
            i, j = place // SIDE, place % SIDE
            if corner.row + i < C.rows and corner.col + j < C.columns:
                total = zero
                for other in range(members):
                    total += tile[i * pitch + other * SIDE + j]
                C.elements[(corner.row + i) * C.stride + (corner.col + j)] = total
            place = place + threads

    return device(write)
