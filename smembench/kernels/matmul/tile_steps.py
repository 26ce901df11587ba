"""Tile loads, tile stores, the MMA step and the epilogue of a Tiling, as device functions.

An element goes from global memory to registers (``load_tiles``), to shared memory (``store_tiles``), and back to
registers in a fragment (``mma_step``); a result goes to C (``write_results``). ``width`` is the number of elements per
global access: a vector, or one element where rows do not begin and end at multiples of 16 bytes. Consecutive threads
take consecutive parts of a row either way.

Rows and columns beyond the edge of C are read as the last one and their results are not written, so the loop tests k
only: beyond k the tiles are zero.

Offsets into shared memory have 64 bits: a 32-bit sum may wrap, so the compiler cannot fold its constant into the
instruction, and computes an address per load. Each function is cached by its arguments, since Numba keeps every
function it meets.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from smembench.kernels.intrinsics.vector import ALIGNMENT, load_pair, load_vector, store_vector
from smembench.kernels.matmul.epilogue import write_within
from smembench.kernels.matmul.structs import Memory, Offsets, Operands, Share
from smembench.kernels.matmul.tiling import Tiling, position
from smembench.kernels.numba_cuda import DeviceFunction, cuda, device, number, uint32, uint64
from smembench.kernels.types import Array, Index, Matrix, Place
from smembench.model.case import Case


class TileSteps(NamedTuple):
    """The functions for one tiling and the widths of one case."""

    allocate: DeviceFunction
    position: DeviceFunction
    first_tiles: DeviceFunction
    load_tiles: DeviceFunction
    store_tiles: DeviceFunction
    mma_step: DeviceFunction
    write_results: DeviceFunction


@device
def all_of_k(k: Index, short: Index) -> Index:
    """Where the first tile along k may end if it is as deep as the others."""
    return k


def tile_steps(
    case: Case,
    tiling: Tiling,
    steps: int = 1,
    *,
    buffers: int = 2,
    fragment_buffers: int = 1,
    dynamic: bool = False,
    first: DeviceFunction = all_of_k,
) -> TileSteps:
    """The functions for a case; ``mma_step`` does ``steps`` along k.

    There are ``buffers`` of each tile, B's in ``dynamic`` shared memory if the launch gives it, and registers for
    ``fragment_buffers`` fragments of A and of B. ``first``: see ``first_tiles``.
    """
    a_width, b_width = tiling.widths(case)
    return TileSteps(
        allocate=allocate(tiling, buffers, fragment_buffers, dynamic=dynamic),
        position=position(tiling),
        first_tiles=first_tiles(tiling, a_width, b_width, first),
        load_tiles=load_tiles(tiling, a_width, b_width),
        store_tiles=store_tiles(tiling, a_width, b_width),
        mma_step=mma_step(tiling, steps),
        write_results=write_results(tiling, b_width),
    )


@cache
def allocate(tiling: Tiling, buffers: int, fragment_buffers: int, *, dynamic: bool = False) -> DeviceFunction:
    """``()``: the block's tiles and the thread's registers."""
    dtype = number(tiling.dtype)
    a_elements, b_elements = buffers * tiling.a_elements, 0 if dynamic else buffers * tiling.b_elements
    results, down, across = tiling.results, fragment_buffers * tiling.down, fragment_buffers * tiling.across
    a_share, b_share = tiling.a_share, tiling.b_share

    def allocate() -> Memory:
        a_tile = cuda.shared.array(a_elements, dtype, alignment=ALIGNMENT)
        b_tile = cuda.shared.array(b_elements, dtype, alignment=ALIGNMENT)
        accumulators = cuda.local.array(results, dtype, alignment=ALIGNMENT)
        a_fragment = cuda.local.array(down, dtype, alignment=ALIGNMENT)
        b_fragment = cuda.local.array(across, dtype, alignment=ALIGNMENT)
        a_held = cuda.local.array(a_share, dtype, alignment=ALIGNMENT)
        b_held = cuda.local.array(b_share, dtype, alignment=ALIGNMENT)
        return Memory(
            Operands(a_tile, b_tile), accumulators, Operands(a_fragment, b_fragment), Operands(a_held, b_held)
        )

    return device(allocate)


@cache
def load_tiles(tiling: Tiling, a_width: int, b_width: int) -> DeviceFunction:
    """``(held, A, B, thread, corner, k0)``: load a thread's share of the tiles at ``k0`` into registers."""
    load_a, load_b = _load_a(tiling, a_width), _load_b(tiling, b_width)

    def load_tiles(held: Operands, A: Matrix, B: Matrix, thread: Index, corner: Place, k0: Index) -> None:
        load_a(held.a, A, thread, corner.row, k0)
        load_b(held.b, B, thread, corner.col, k0)

    return device(load_tiles)


@cache
def _load_a(tiling: Tiling, width: int) -> DeviceFunction:
    across = tiling.depth // width
    step = tiling.threads // across
    count = tiling.rows // step
    zero = number(tiling.dtype)(0)

    def load_columns(held: Array, A: Matrix, thread: Index, row0: Index, k0: Index) -> None:
        row = row0 + thread // across
        col = k0 + thread % across * width
        for i in range(count):
            if col < A.columns:
                at = min(row + i * step, A.rows - 1) * A.stride + col
                if width == 1:
                    held[i] = A.elements[at]
                else:
                    store_vector(held, i * width, load_vector(A.elements, at))
            else:
                for j in range(width):
                    held[i * width + j] = zero

    return device(load_columns)


@cache
def _load_b(tiling: Tiling, width: int) -> DeviceFunction:
    across = tiling.columns // width
    step = tiling.threads // across
    count = tiling.depth // step
    zero = number(tiling.dtype)(0)

    def load_rows(held: Array, B: Matrix, thread: Index, col0: Index, k0: Index) -> None:
        row = k0 + thread // across
        col = col0 + thread % across * width
        for i in range(count):
            r = row + i * step
            if r < B.rows:
                at = r * B.stride + min(col, B.columns - width)
                if width == 1:
                    held[i] = B.elements[at]
                else:
                    store_vector(held, i * width, load_vector(B.elements, at))
            else:
                for j in range(width):
                    held[i * width + j] = zero

    return device(load_rows)


@cache
def store_tiles(tiling: Tiling, a_width: int, b_width: int) -> DeviceFunction:
    """``(memory, buffer, thread)``: store what ``load_tiles`` loaded into a buffer of each tile, A's transposed."""
    store_a, store_b = _store_a(tiling, a_width), _store_b(tiling, b_width)
    a_elements, b_elements = tiling.a_elements, tiling.b_elements

    def store_tiles(memory: Memory, buffer: Index, thread: Index) -> None:
        store_a(memory.tiles.a, uint64(buffer * a_elements), memory.held.a, thread)
        store_b(memory.tiles.b, uint64(buffer * b_elements), memory.held.b, thread)

    return device(store_tiles)


@cache
def _store_a(tiling: Tiling, width: int) -> DeviceFunction:
    pitch = tiling.pitch
    across = tiling.depth // width
    step = tiling.threads // across
    count = tiling.rows // step

    def store_columns(tile: Array, base: Index, held: Array, thread: Index) -> None:
        row = thread // across
        col = thread % across * width
        at = base + uint64(col * pitch + row)
        for i in range(count):
            for j in range(width):
                tile[at + (j * pitch + i * step)] = held[i * width + j]

    return device(store_columns)


@cache
def _store_b(tiling: Tiling, width: int) -> DeviceFunction:
    columns = tiling.columns
    across = columns // width
    step = tiling.threads // across
    count = tiling.depth // step

    def store_rows(tile: Array, base: Index, held: Array, thread: Index) -> None:
        row = thread // across
        col = thread % across * width
        at = base + uint64(row * columns + col)
        for i in range(count):
            if width == 1:
                tile[at + i * step * columns] = held[i]
            else:
                store_vector(tile, at + i * step * columns, load_vector(held, i * width))

    return device(store_rows)


@cache
def first_tiles(tiling: Tiling, a_width: int, b_width: int, first: DeviceFunction) -> DeviceFunction:
    """``(memory, A, B, share, k0)``: clear the accumulators, load and store the tiles at ``k0``; barrier.

    ``first(k, short)`` is where those tiles end; a call for each of them settles the order of instructions.
    """
    load_a, load_b = _load_a(tiling, a_width), _load_b(tiling, b_width)
    store, results, zero = store_tiles(tiling, a_width, b_width), tiling.results, number(tiling.dtype)(0)

    def first_tiles(memory: Memory, A: Matrix, B: Matrix, share: Share, k0: Index) -> None:
        thread, corner, short = share
        for i in range(results):
            memory.accumulators[i] = zero
        load_a(memory.held.a, Matrix(A.elements, A.rows, first(B.rows, short), A.stride), thread, corner.row, k0)
        load_b(memory.held.b, Matrix(B.elements, first(B.rows, short), B.columns, B.stride), thread, corner.col, k0)
        store(memory, uint32(0), thread)
        cuda.syncthreads()

    return device(first_tiles)


@cache
def mma_step(tiling: Tiling, steps: int = 1) -> DeviceFunction:
    """``(memory, at)``: add the outer product of the fragments at ``at``, ``steps`` along k.

    NVVM unrolls a constant loop only up to about 128 multiplications per body, two steps of 8 × 8. So steps are
    unrolled here: a function of several steps calls one of half as many twice.

    Results are visited column by column: row by row, ptxas 13.0 needs more than 128 registers for 8 × 8 of them.
    """
    if steps > 1:
        half = mma_step(tiling, steps // 2)
        a_half, b_half = steps // 2 * tiling.pitch, steps // 2 * tiling.columns

        def two_halves(memory: Memory, at: Offsets) -> None:
            half(memory, at)
            half(memory, Offsets(at.a + a_half, at.b + b_half))

        return device(two_halves)

    down, across = tiling.down, tiling.across
    (a_size, b_size), (rows_apart, columns_apart) = tiling.fragments, tiling.apart
    load_a, load_b = _load_fragment(tiling, a_size), _load_fragment(tiling, b_size)

    def one_step(memory: Memory, at: Offsets) -> None:
        tiles, accumulators, fragments, _ = memory
        for i in range(down // a_size):
            load_a(fragments.a, i * a_size, tiles.a, at.a + i * rows_apart)
        for j in range(across // b_size):
            load_b(fragments.b, j * b_size, tiles.b, at.b + j * columns_apart)
        for j in range(across):
            for i in range(down):
                accumulators[i * across + j] += fragments.a[i] * fragments.b[j]

    return device(one_step)


@cache
def _load_fragment(tiling: Tiling, size: int) -> DeviceFunction:
    """``(fragment, place, tile, index)``: load from a tile into registers in one access."""

    def fragment_vector(fragment: Array, place: Index, tile: Array, index: Index) -> None:
        store_vector(fragment, place, load_vector(tile, index))

    def fragment_pair(fragment: Array, place: Index, tile: Array, index: Index) -> None:
        fragment[place], fragment[place + 1] = load_pair(tile, index)

    return device(fragment_vector if size == tiling.vector else fragment_pair)


@cache
def write_results(tiling: Tiling, width: int) -> DeviceFunction:
    """``(C, accumulators, first)``: write a thread's results; the first belongs at ``first``."""
    write = write_within(tiling, width)

    def write_results(C: Matrix, accumulators: Array, first: Place) -> None:
        write(C, accumulators, first, Place(uint32(0), uint32(0)))

    return device(write_results)
