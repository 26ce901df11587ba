"""Ragged sizes and unaligned rows in the float32 ladder: what whole tiles of aligned rows do without.

1. Predication. ``whole tiles``: sizes are multiples of the tile's. ``tiles moved inwards``: a tile over an edge is
   moved up or left until it lies inside; some results are then computed by two blocks, in the same order and so to the
   same bits. Along k the first tile is the short one, filled with zeros, so that the loop needs no bounds checks.
   Otherwise, where a side is smaller than the tile, every load is predicated.
2. Remainder. Up to 8 rows or columns beyond whole tiles are computed as chunks of 8 × 8 that all blocks share. A side
   of 2049 is 16 tiles of 128 and one row: one tile more would leave some SMs three to compute instead of two. From nine
   rows or columns on a tile costs less. Findings: results/reference/notes/remainder.md.
3. Rows of C that are not aligned can be written through shared memory, so that whole sectors are written.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from smembench.kernels.intrinsics.block_flags import accumulate
from smembench.kernels.intrinsics.row_products import row_products
from smembench.kernels.intrinsics.vector import copying, load_vector, store_vector
from smembench.kernels.matmul.tiling import LANES_DOWN, Tiling
from smembench.kernels.numba_cuda import DeviceFunction, cuda, device, number, uint32, uint64
from smembench.kernels.types import Array, Index, Matrix, Place, Scalar
from smembench.model.case import Case

SIDE = 8
"""Rows, and columns, of a chunk; and most rows or columns of a remainder."""

AT_ONCE = 6
"""Steps along k whose loads are issued together: more take so many registers that ptxas makes the main loop worse."""


class Predication(NamedTuple):
    """A case's kind of predication, as ``label``, and its functions.

    ``origin(index, tile, side)``: first row or column of a block's tile. ``short(k)``: by how much the first tile along
    k is shorter than the others. ``first(k, short)``: where it ends.
    """

    label: str
    origin: DeviceFunction
    short: DeviceFunction
    first: DeviceFunction


def predication(tiling: Tiling, case: Case) -> Predication:
    """The functions with the fewest bounds checks that a case allows."""
    depth = tiling.depth
    sides = ((case.m, tiling.rows), (case.n, tiling.columns), (case.depth, depth))
    predicated = any(side < tile for side, tile in sides)
    inwards = not predicated and any(side % tile for side, tile in sides)

    def origin(index: Index, tile: int, side: Index) -> Index:
        return min(index * tile, side - tile) if inwards else index * tile

    def short(k: Index) -> Index:
        return depth - 1 - (k - 1) % depth if inwards else uint32(0)

    def first(k: Index, short: Index) -> Index:
        return depth - short if inwards else k

    label = "tiles moved inwards" if inwards else "" if predicated else "whole tiles"
    return Predication(label, device(origin), device(short), device(first))


@cache
def predicated_load(tiling: Tiling, a_width: int, b_width: int) -> DeviceFunction:
    """``(a_staged, b_staged, A, B, thread, corner, k0)``: load a thread's share of the tiles at ``k0`` into registers.

    Rows and columns beyond the edge of C are read as the last one. What lies beyond k is zero.
    """
    a_across, b_across = tiling.depth // a_width, tiling.columns // b_width
    a_step, b_step = tiling.threads // a_across, tiling.threads // b_across
    a_count, b_count, zero = tiling.rows // a_step, tiling.depth // b_step, number(tiling.dtype)(0)
    copy_a, copy_b = copying(a_width), copying(b_width)

    @device
    def load_a(staged: Array, A: Matrix, thread: Index, row0: Index, k0: Index) -> None:
        row = row0 + thread // a_across
        col = k0 + thread % a_across * a_width
        for i in range(a_count):
            if col < A.columns:
                at = min(row + i * a_step, A.rows - 1) * A.stride + col
                copy_a(staged, i * a_width, A.elements, at)
            else:
                for j in range(a_width):
                    staged[i * a_width + j] = zero

    @device
    def load_b(staged: Array, B: Matrix, thread: Index, col0: Index, k0: Index) -> None:
        row = k0 + thread // b_across
        col = col0 + thread % b_across * b_width
        for i in range(b_count):
            r = row + i * b_step
            if r < B.rows:
                at = r * B.stride + min(col, B.columns - b_width)
                copy_b(staged, i * b_width, B.elements, at)
            else:
                for j in range(b_width):
                    staged[i * b_width + j] = zero

    def load(a_staged: Array, b_staged: Array, A: Matrix, B: Matrix, thread: Index, corner: Place, k0: Index) -> None:
        load_a(a_staged, A, thread, corner.row, k0)
        load_b(b_staged, B, thread, corner.col, k0)

    return device(load)


@cache
def store(tiling: Tiling, a_width: int, b_width: int) -> DeviceFunction:
    """``(a_tile, b_tile, buffer, a_staged, b_staged, thread)``: store loaded values in a buffer, A transposed."""
    pitch, columns, a_elements, b_elements = tiling.pitch, tiling.columns, tiling.a_elements, tiling.b_elements
    a_across, b_across = tiling.depth // a_width, columns // b_width
    a_step, b_step = tiling.threads // a_across, tiling.threads // b_across
    a_count, b_count, copy = tiling.rows // a_step, tiling.depth // b_step, copying(b_width)

    def store(a_tile: Array, b_tile: Array, buffer: Index, a_staged: Array, b_staged: Array, thread: Index) -> None:
        row, col = thread // a_across, thread % a_across * a_width
        at = uint64(buffer * a_elements) + uint64(col * pitch + row)
        for i in range(a_count):
            for j in range(a_width):
                a_tile[at + (j * pitch + i * a_step)] = a_staged[i * a_width + j]
        row, col = thread // b_across, thread % b_across * b_width
        at = uint64(buffer * b_elements) + uint64(row * columns + col)
        for i in range(b_count):
            copy(b_tile, at + i * b_step * columns, b_staged, i * b_width)

    return device(store)


def small_remainder(case: Case, tiling: Tiling) -> bool:
    """True if whole tiles leave at most SIDE rows and columns, and the sums of a chunk fit in two of B's tiles."""
    left = [side % tile for side, tile in ((case.m, tiling.rows), (case.n, tiling.columns))]
    fit = SIDE * (tiling.threads + SIDE) <= 2 * tiling.b_elements
    return fit and min(case.m // tiling.rows, case.n // tiling.columns) > 0 and max(left) in range(1, SIDE + 1)


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
    def corner(chunk: Index, m: Index, n: Index) -> Place:  # those of the last columns come first
        of_columns = chunks_down(m) * strips(n, columns)
        if chunk < of_columns:
            down, strip = chunk % chunks_down(m), chunk // chunks_down(m)
            first = n // columns * columns
            return Place(down * SIDE, first + strip * SIDE)
        more = chunk - of_columns
        across, strip = more % chunks_across(n), more // chunks_across(n)
        first = m // rows * rows
        return Place(first + strip * SIDE, across * SIDE)

    @device
    def sum_up(sums: Array, tile: Array, A: Matrix, B: Matrix, thread: Index, corner: Place) -> None:
        first = Place(corner.row, min(corner.col + thread % SIDE, B.columns - 1))
        at = uint64(thread // SIDE)
        for i in range(SIDE):
            sums[i] = zero
        while at + (AT_ONCE - 1) * members < uint64(A.columns):
            add_all(sums, A, B, first, at)
            at = at + AT_ONCE * members
        if at < uint64(A.columns):
            add_rest(sums, A, B, first, at)
        for i in range(SIDE):
            tile[i * pitch + thread] = sums[i]

    @device
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

    @device
    def compute(C: Matrix, A: Matrix, B: Matrix, sums: Array, tile: Array, thread: Index) -> None:
        chunk = cuda.blockIdx.y * cuda.gridDim.x + cuda.blockIdx.x
        while chunk < chunks(C.rows, C.columns):
            first = corner(chunk, C.rows, C.columns)
            if not tiles_follow:
                cuda.syncthreads()
            sum_up(sums, tile, A, B, thread, first)
            cuda.syncthreads()
            write(C, tile, thread, first)
            if tiles_follow:
                cuda.syncthreads()
            chunk = chunk + cuda.gridDim.x * cuda.gridDim.y

    return Remainder(chunks, corner, compute)


@cache
def write_staged(tiling: Tiling) -> DeviceFunction:
    """``(C, tile, accumulators, thread, own, since, corner, least)``: write results through two of B's tiles, by parts.

    ``own``: where in the block's tile, which is at ``corner``, the thread's first result lies. What lies above or left
    of ``least`` is left out; with steps ``since`` before, results are added to C. Written directly, each element would
    be one word of its own sector, and each sector would be written several times.
    """
    columns, across, threads, size = tiling.columns, tiling.across, tiling.threads, tiling.vector
    rows_apart, columns_apart = tiling.apart
    of_threads, warp_rows = tiling.rows // tiling.down, LANES_DOWN * tiling.down
    at_once = min(2 * tiling.b_elements // (of_threads * columns), size)
    parts = tiling.down // at_once

    @device
    def stage(tile: Array, accumulators: Array, own: Place, part: Index) -> None:
        line = own.row // warp_rows * LANES_DOWN + own.row % warp_rows // size
        at = line * (at_once * columns) + own.col
        for i in range(at_once):
            for j in range(0, across, size):
                place = at + (i * columns + j // size * columns_apart)
                store_vector(tile, place, load_vector(accumulators, (part * at_once + i) * across + j))

    # A thread writes the same column of all its lines. They are powers of two apart, so row_of can be added up.
    lines, in_warps = threads // columns, LANES_DOWN * at_once
    warps_down, in_turn = of_threads // LANES_DOWN, in_warps // lines

    @device
    def row_of(line: Index) -> Index:
        return line // at_once * size + line % at_once

    @device
    def put(c: Array, index: Index, value: Scalar) -> None:
        c[index] = value

    def lines_by(put: DeviceFunction) -> DeviceFunction:
        def write_lines(C: Matrix, tile: Array, thread: Index, first: Place, top: Index) -> None:
            for warps in range(warps_down):
                for turn in range(in_turn):
                    line = first.row + (warps * warp_rows + row_of(uint32(turn * lines)))
                    if line >= top and line < C.rows:
                        place = thread + (warps * in_turn + turn) * threads
                        put(C.elements, line * C.stride + first.col, tile[place])

        return device(write_lines)

    write_new, add_to_old = lines_by(put), lines_by(accumulate)

    def write(
        C: Matrix, tile: Array, sums: Array, thread: Index, own: Place, since: Index, corner: Place, least: Place
    ) -> None:
        for part in range(parts):
            cuda.syncthreads()
            stage(tile, sums, own, part)
            cuda.syncthreads()
            first = corner.row + (part * at_once // size * rows_apart + part * at_once % size)
            row, col = first + row_of(thread // columns), corner.col + thread % columns
            if col >= least.col and col < C.columns:
                if since > 0:
                    add_to_old(C, tile, thread, Place(row, col), least.row)
                else:
                    write_new(C, tile, thread, Place(row, col), least.row)

    return device(write)
