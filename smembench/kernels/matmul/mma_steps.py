"""Steps of the kernels with mma.sync, as device functions: copies into tiles, loads of fragments, and the epilogue.

Chunks of 16 bytes never cross the rows of a tile, so layouts differ only in where an element is stored. ``width`` is
the elements per access of global memory. What lies beyond the edges of A and B is zero in the tiles, and what lies
beyond those of C is not written.
"""

from __future__ import annotations

from functools import cache

from smembench.kernels.intrinsics.async_copy import copy_vector_async_if
from smembench.kernels.intrinsics.halves import narrowed, store_pair
from smembench.kernels.intrinsics.matrix import (
    A_REGISTERS,
    B_REGISTERS,
    MATRICES,
    SUMS,
    load_matrices,
    load_matrices_transposed,
    load_two,
    pack,
)
from smembench.kernels.intrinsics.vector import clear_vector, copy_vector, vector_width
from smembench.kernels.matmul.mma_tiling import DEPTH, WARP_COLUMNS, WARP_ROWS, MmaTiling
from smembench.kernels.numba_cuda import DeviceFunction, device, number
from smembench.kernels.types import Array, Index, Matrix, Place
from smembench.model.hardware import WARP, WAVEFRONT_BYTES
from smembench.model.problem import ITEMSIZE

DOWN, ACROSS = WARP_ROWS // 16, WARP_COLUMNS // 8
"""Fragments of A and of B per warp and step of 16 along k."""


@cache
def place_in(tiling: MmaTiling, width: int) -> DeviceFunction:
    """``(row, col)``: where an element is stored in a tile of this width.

    Swizzled, chunk c of row r, 16 bytes, is stored at c XOR (r / ``rows`` modulo ``most``). ``rows`` rows fill the
    banks once, with ``most`` chunks each, at most eight. So a column of chunks in eight rows is in all banks.
    """
    pitch, wide = tiling.pitch(width), vector_width(tiling.dtype)
    chunks = WAVEFRONT_BYTES // (wide * ITEMSIZE[tiling.dtype])
    rows, most = max(1, chunks * wide // width), min(chunks, width // wide)

    def in_rows(row: Index, col: Index) -> Index:
        return row * pitch + col

    def swizzled(row: Index, col: Index) -> Index:
        return row * pitch + (col ^ (row // rows % most * wide))

    return device(swizzled if tiling.layout == "swizzled" else in_rows)


@cache
def copy_tile(tiling: MmaTiling, rows: int, columns: int, width: int) -> DeviceFunction:
    """``(tile, base, M, corner, thread)``: copy a thread's share of the tile at ``corner`` of M to ``base``.

    With several stages the copies of vectors are only started.
    """
    across = columns // width
    step = tiling.threads // across
    count, staged = rows // step, tiling.stages > 1
    place_of, narrow, zero = place_in(tiling, columns), narrowed(tiling.dtype), number("float32")(0)

    def copy(tile: Array, base: Index, M: Matrix, corner: Place, thread: Index) -> None:
        first, col = thread // across, thread % across * width
        within = corner.col + col < M.columns
        for i in range(count):
            row = first + i * step
            place = base + place_of(row, col)
            inside = within and corner.row + row < M.rows
            at = (corner.row + row) * M.stride + corner.col + col
            if width == 1:
                tile[place] = M.elements[at] if inside else narrow(zero)
            elif staged:
                copy_vector_async_if(inside, tile, place, M.elements, at)
            elif inside:
                copy_vector(tile, place, M.elements, at)
            else:
                clear_vector(tile, place)

    return device(copy)


@cache
def elements_of_a(tiling: MmaTiling) -> DeviceFunction:
    """``(fragments, tile, base, corner, lane)``: a warp's fragments of A at ``corner``, two elements per load."""
    place_of = place_in(tiling, DEPTH)

    def load(fragments: Array, tile: Array, base: Index, corner: Place, lane: Index) -> None:
        row, col = corner.row + lane // 4, corner.col + lane % 4 * 2
        for i in range(A_REGISTERS * DOWN):
            below = i // A_REGISTERS * 16 + i % 2 * 8
            fragments[i] = load_two(tile, base + place_of(row + below, col + i // 2 % 2 * 8))

    return device(load)


@cache
def elements_of_b(tiling: MmaTiling) -> DeviceFunction:
    """``(fragments, tile, base, corner, lane)``: a warp's fragments of B, one element per load."""
    place_of = place_in(tiling, tiling.columns)

    def load(fragments: Array, tile: Array, base: Index, corner: Place, lane: Index) -> None:
        row, col = corner.row + lane % 4 * 2, corner.col + lane // 4
        for i in range(B_REGISTERS * ACROSS):
            r, c = row + i % B_REGISTERS * 8, col + i // B_REGISTERS * 8
            fragments[i] = pack(tile[base + place_of(r, c)], tile[base + place_of(r + 1, c)])

    return device(load)


@cache
def matrices_of_a(tiling: MmaTiling) -> DeviceFunction:
    """``(fragments, tile, base, corner, lane)``: a warp's fragments of A, 16×16 elements per ldmatrix."""
    place_of = place_in(tiling, DEPTH)

    def load(fragments: Array, tile: Array, base: Index, corner: Place, lane: Index) -> None:
        row, col = corner.row + lane % 16, corner.col + lane // 16 * 8
        for i in range(DOWN):
            load_matrices(fragments, i * MATRICES, tile, base + place_of(row + i * 16, col), lane)

    return device(load)


@cache
def matrices_of_b(tiling: MmaTiling) -> DeviceFunction:
    """``(fragments, tile, base, corner, lane)``: a warp's fragments of B, 16×16 elements per ldmatrix, transposed."""
    place_of = place_in(tiling, tiling.columns)

    def load(fragments: Array, tile: Array, base: Index, corner: Place, lane: Index) -> None:
        row, col = corner.row + lane % 16, corner.col + lane // 16 * 8
        for j in range(ACROSS // 2):
            load_matrices_transposed(fragments, j * MATRICES, tile, base + place_of(row, col + j * 16), lane)

    return device(load)


@cache
def position(tiling: MmaTiling) -> DeviceFunction:
    """``(thread)``: the corner of a thread's warp in the block's tile of C."""
    across = tiling.columns // WARP_COLUMNS

    def corner(thread: Index) -> Place:
        warp = thread // WARP
        return Place(warp // across * WARP_ROWS, warp % across * WARP_COLUMNS)

    return device(corner)


@cache
def write(tiling: MmaTiling, width: int) -> DeviceFunction:
    """``(C, accumulators, corner, lane)``: round a warp's sums and write them, two at once with a ``width`` of 2."""
    store, narrow = store_pair(tiling.dtype), narrowed(tiling.dtype)

    def results(C: Matrix, accumulators: Array, corner: Place, lane: Index) -> None:
        for i in range(2 * DOWN):
            row = corner.row + lane // 4 + i * 8
            for j in range(ACROSS):
                col = corner.col + lane % 4 * 2 + j * 8
                first = (i // 2 * ACROSS + j) * SUMS + i % 2 * 2
                at = row * C.stride + col
                if row < C.rows and col < C.columns:
                    if width == 2:
                        store(C.elements, at, accumulators[first], accumulators[first + 1])
                    else:
                        C.elements[at] = narrow(accumulators[first])
                        if col + 1 < C.columns:
                            C.elements[at + 1] = narrow(accumulators[first + 1])

    return device(results)
