"""Tile loads, tile stores, the MMA step and the write-back of a Tiling, as device functions.

An element goes from global memory to registers (``load_a``, ``load_b``), to shared memory (``store_a``, ``store_b``),
and back to registers as part of a fragment (``mma_step``); a result goes to C (``write``). ``width`` is the elements
per global access: a vector, or one where rows do not begin and end at multiples of 16 bytes. Consecutive threads take
consecutive parts of a row either way.

Rows and columns beyond the edge of C are read as the last one and their results are not written, so the loop tests k
only: beyond k the tiles are zero.

Offsets into shared memory have 64 bits: a 32-bit sum may wrap, so the compiler cannot fold its constant into the
instruction, and computes an address per load. Each function is cached by its arguments, since Numba keeps every
function it meets.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from smembench.kernels.intrinsics.vector import load_pair, load_vector, store_vector
from smembench.kernels.matmul.epilogue import write_within
from smembench.kernels.matmul.tiling import LANES_ACROSS, LANES_DOWN, Tiling
from smembench.kernels.numba_cuda import DeviceFunction, device, number, uint32, uint64
from smembench.model.case import Case
from smembench.model.hardware import WARP


class TileSteps(NamedTuple):
    """The functions for one tiling and the widths of one case."""

    position: DeviceFunction
    load_a: DeviceFunction
    load_b: DeviceFunction
    store_a: DeviceFunction
    store_b: DeviceFunction
    mma_step: DeviceFunction
    write: DeviceFunction


def tile_steps(case: Case, tiling: Tiling, steps: int = 1) -> TileSteps:
    """The functions for a case; ``mma_step`` does ``steps`` along k."""
    a_width, b_width = tiling.widths(case)
    return TileSteps(
        position(tiling),
        load_a(tiling, a_width),
        load_b(tiling, b_width),
        store_a(tiling, a_width),
        store_b(tiling, b_width),
        mma_step(tiling, steps),
        write(tiling, b_width),
    )


@cache
def load_a(tiling: Tiling, width: int) -> DeviceFunction:
    """``(held, a, thread, row0, k0, m, k, lda)``: load a thread's share of the columns from ``k0`` into registers."""
    across = tiling.depth // width
    step = tiling.threads // across
    count = tiling.rows // step
    zero = number(tiling.dtype)(0)

    def load(held: Any, a: Any, thread: Any, row0: Any, k0: Any, m: Any, k: Any, lda: Any) -> None:
        row = row0 + thread // across
        col = k0 + thread % across * width
        for i in range(count):
            if col < k:
                at = min(row + i * step, m - 1) * lda + col
                if width == 1:
                    held[i] = a[at]
                else:
                    store_vector(held, i * width, load_vector(a, at))
            else:
                for j in range(width):
                    held[i * width + j] = zero

    return device(load)


@cache
def load_b(tiling: Tiling, width: int) -> DeviceFunction:
    """``(held, b, thread, col0, k0, n, k, ldb)``: load a thread's share of the rows from ``k0`` into registers."""
    across = tiling.columns // width
    step = tiling.threads // across
    count = tiling.depth // step
    zero = number(tiling.dtype)(0)

    def load(held: Any, b: Any, thread: Any, col0: Any, k0: Any, n: Any, k: Any, ldb: Any) -> None:
        row = k0 + thread // across
        col = col0 + thread % across * width
        for i in range(count):
            r = row + i * step
            if r < k:
                at = r * ldb + min(col, n - width)
                if width == 1:
                    held[i] = b[at]
                else:
                    store_vector(held, i * width, load_vector(b, at))
            else:
                for j in range(width):
                    held[i * width + j] = zero

    return device(load)


@cache
def store_a(tiling: Tiling, width: int) -> DeviceFunction:
    """``(tile, base, held, thread)``: store what ``load_a`` loaded into shared memory, transposed."""
    pitch = tiling.pitch
    across = tiling.depth // width
    step = tiling.threads // across
    count = tiling.rows // step

    def store(tile: Any, base: Any, held: Any, thread: Any) -> None:
        row = thread // across
        col = thread % across * width
        at = base + uint64(col * pitch + row)
        for i in range(count):
            for j in range(width):
                tile[at + (j * pitch + i * step)] = held[i * width + j]

    return device(store)


@cache
def store_b(tiling: Tiling, width: int) -> DeviceFunction:
    """``(tile, base, held, thread)``: store what ``load_b`` loaded into shared memory."""
    columns = tiling.columns
    across = columns // width
    step = tiling.threads // across
    count = tiling.depth // step

    def store(tile: Any, base: Any, held: Any, thread: Any) -> None:
        row = thread // across
        col = thread % across * width
        at = base + uint64(row * columns + col)
        for i in range(count):
            if width == 1:
                tile[at + i * step * columns] = held[i]
            else:
                store_vector(tile, at + i * step * columns, load_vector(held, i * width))

    return device(store)


@cache
def mma_step(tiling: Tiling, steps: int = 1) -> DeviceFunction:
    """``(total, a_part, b_part, a_tile, b_tile, at_a, at_b)``: the outer product of two fragments, ``steps`` along k.

    NVVM unrolls a constant loop only up to about 128 multiplications per body, two steps of 8 × 8. So steps are
    unrolled here: a function of several steps calls one of half as many twice.

    Results are visited column by column: row by row, ptxas 13.0 needs more than 128 registers for 8 × 8 of them.
    """
    if steps > 1:
        half = mma_step(tiling, steps // 2)
        a_half, b_half = steps // 2 * tiling.pitch, steps // 2 * tiling.columns

        def twice(total: Any, a_part: Any, b_part: Any, a_tile: Any, b_tile: Any, at_a: Any, at_b: Any) -> None:
            half(total, a_part, b_part, a_tile, b_tile, at_a, at_b)
            half(total, a_part, b_part, a_tile, b_tile, at_a + a_half, at_b + b_half)

        return device(twice)

    down, across = tiling.down, tiling.across
    (a_size, b_size), (rows_apart, columns_apart) = tiling.fragments, tiling.apart
    copy_a, copy_b = _copy(tiling, a_size), _copy(tiling, b_size)

    def once(total: Any, a_part: Any, b_part: Any, a_tile: Any, b_tile: Any, at_a: Any, at_b: Any) -> None:
        for i in range(down // a_size):
            copy_a(a_part, i * a_size, a_tile, at_a + i * rows_apart)
        for j in range(across // b_size):
            copy_b(b_part, j * b_size, b_tile, at_b + j * columns_apart)
        for j in range(across):
            for i in range(down):
                total[i * across + j] += a_part[i] * b_part[j]

    return device(once)


@cache
def _copy(tiling: Tiling, size: int) -> DeviceFunction:
    """``(part, place, tile, index)``: load from a tile into registers in one access."""

    def vector(part: Any, place: Any, tile: Any, index: Any) -> None:
        store_vector(part, place, load_vector(tile, index))

    def pair(part: Any, place: Any, tile: Any, index: Any) -> None:
        part[place], part[place + 1] = load_pair(tile, index)

    return device(vector if size == tiling.vector else pair)


@cache
def write(tiling: Tiling, width: int) -> DeviceFunction:
    """``(c, total, row0, col0, m, n, ldc)``: write a thread's results; the first belongs at ``row0``, ``col0``."""
    within = write_within(tiling, width)

    def store(c: Any, total: Any, row0: Any, col0: Any, m: Any, n: Any, ldc: Any) -> None:
        within(c, total, row0, col0, uint32(0), uint32(0), m, n, ldc)

    return device(store)


@cache
def position(tiling: Tiling) -> DeviceFunction:
    """``(thread)``: row and column of a thread's first result in the tile."""
    width, (a_size, b_size) = tiling.block.x, tiling.fragments
    warps_across = tiling.block.x // LANES_ACROSS
    warp_rows, warp_columns = LANES_DOWN * tiling.down, LANES_ACROSS * tiling.across
    pair = 2 if tiling.interleaved else 1

    def in_block(thread: Any) -> Any:
        return thread // width * a_size, thread % width * b_size

    def in_warps(thread: Any) -> Any:
        warp, lane = thread // WARP, thread % WARP
        # Lanes lie in rows of 8, or of 8 pairs one below the other.
        lane_row = lane // (LANES_ACROSS * pair) * pair + lane % pair
        lane_col = lane // pair % LANES_ACROSS
        row = warp // warps_across * warp_rows + lane_row * a_size
        col = warp % warps_across * warp_columns + lane_col * b_size
        return row, col

    return device(in_warps if tiling.warps else in_block)
