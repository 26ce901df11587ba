"""Transposes by 128-bit accesses where rows begin at any element, for rows that are not multiples of 16 bytes.

1. A row of the tile is read from the vector in which it begins, one vector more than the tile is wide, and stored as
   it lies in the input.
2. Each output row is cut at its own vectors, which begin up to ``vector_width`` - 1 elements before the tile, so as
   many rows above the tile are read as well.
3. Each element is fetched from where its row's shift has put it. Shifts repeat every ``vector_width`` rows, so a
   thread computes them once.

The ends of output rows, and what follows the last whole vector of the input, are copied element by element.
Neighbouring tiles overlap: together they read 1.1 times the input's bytes. Vectors may begin within a sector.

Row r lies behind r // ``vector_width`` unused vectors, so that neighbouring vectors of the output come from different
groups of four banks. Where nx · ny modulo ``vector_width`` is 1, as for an odd square, loads have 4-way conflicts, in
float64 2-way. In float16 other sizes have up to 2-way conflicts, such as 260×260.
Findings: results/reference/notes/unaligned_rows.md.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import gcd

from smembench.kernels.common.grids import block_of, covering
from smembench.kernels.intrinsics.vector import ALIGNMENT, copy_vector, load_vector, store_vector, vector_width
from smembench.kernels.numba_cuda import cuda, device, number, uint32, uint64
from smembench.kernels.program import NumbaKernel
from smembench.kernels.transpose.tile_copies import (
    IN_ROWS,
    CopyVector,
    Corner,
    Share,
    ShareOf,
    Sides,
    StoreVector,
    TileOrder,
    in_lines,
)
from smembench.kernels.transpose.tile_geometry import unaligned_elements, vector_side
from smembench.kernels.types import Array, Index
from smembench.model.case import Block, Case


def unaligned(
    case: Case,
    *,
    order: TileOrder = IN_ROWS,
    share: Callable[[Block], ShareOf] = in_lines,
    copy: CopyVector = copy_vector,
    store: StoreVector = store_vector,
) -> NumbaKernel:
    """Program for ``(out, inp, nx, ny)``; the arguments are those of ``transpose_vectorized.vectorized``."""
    block = block_of(case)
    bx, side, wide = block.x, vector_side(case), vector_width(case.dtype)
    elements, dtype = unaligned_elements(case), number(case.dtype)
    share_of = share(block)
    load_tile, write_tile = tile_load(block, case.dtype, copy), tile_write(block, case.dtype, store)
    # What precedes an output row in its first vector is a multiple of gcd(ny, wide) and less than wide.
    columns, rows = covering(case.n, case.m + wide - gcd(case.m, wide), Block(side, side))
    grid, tile_of = order.grid(columns, rows), order.tile_of

    def transpose_unaligned(out: Array, inp: Array, nx: Index, ny: Index) -> None:
        tile = cuda.shared.array(elements, dtype, alignment=ALIGNMENT)
        sides = Sides(nx, ny)
        across, down = tile_of(cuda.blockIdx.x, cuda.blockIdx.y)
        corner = Corner(across * side, down * side)
        upper = corner.y - min(corner.y, wide - 1)
        thread = cuda.threadIdx.y * bx + cuda.threadIdx.x
        load_tile(tile, inp, Corner(corner.x, upper), sides, thread)
        cuda.syncthreads()
        own = share_of(cuda.threadIdx.x, cuda.threadIdx.y)
        write_tile(out, tile, corner, upper, sides, own)

    # The topmost tiles write what an output row has of the vector in which it begins element by element.
    return NumbaKernel(transpose_unaligned, grid=grid, block=block, variant="unaligned")


@cache
def element_place(block: Block, dtype: str) -> Callable[[Index, Index, Index], Index]:
    """``(y, upper, nx)``: offset in the tile of its first column of row ``y``, after what precedes it in its vector."""
    wide, across = vector_width(dtype), block.x + 1

    def place_of(y: Index, upper: Index, nx: Index) -> Index:
        row = y - upper
        vectors = row * across + row // wide
        return vectors * wide + y * nx % wide

    return device(place_of)


@cache
def tile_load(block: Block, dtype: str, copy: CopyVector) -> Callable[[Array, Array, Corner, Sides, Index], None]:
    """``(tile, inp, corner, sides, thread)``: global to shared memory by ``copy``; the tile has more rows than columns.

    Threads take the tile's vectors in row-major order. Surplus threads of the last pass copy the last vector again,
    which saves a branch.
    """
    wide, place_of = vector_width(dtype), element_place(block, dtype)
    side, across, threads = wide * block.x, block.x + 1, block.x * block.y
    rows = side + wide - 1

    def load_tile(tile: Array, inp: Array, corner: Corner, sides: Sides, thread: Index) -> None:
        nx, ny = sides
        x0, upper = corner
        whole = nx * ny // wide * wide
        for first in range(0, rows * across, threads):
            vector = min(thread + first, rows * across - 1)
            row = vector // across
            iy = upper + row
            begin = iy * nx
            within = begin + x0 + vector % across * wide
            start = within - within % wide
            if iy < ny and start < min(begin + nx, whole):
                copy(tile, (vector + row // wide) * wide, inp, start)
        # What follows the last whole vector of the input, one element per thread.
        if thread < nx * ny - whole:
            index = whole + thread
            ix, iy = index % nx, index // nx
            if x0 <= ix and ix - x0 < side and upper <= iy and iy - upper < rows:
                tile[place_of(iy, upper, nx) + (ix - x0)] = inp[index]

    return device(load_tile)


@cache
def tile_write(
    block: Block, dtype: str, store: StoreVector
) -> Callable[[Array, Array, Corner, Index, Sides, Share], None]:
    """``(out, tile, corner, upper, sides, share)``: shared to global memory by ``store``, transposed.

    The tile in shared memory begins with row ``upper``. Elements of a column are packed into a vector in registers;
    their offsets are computed for the first pass, and lie as far to the right as their column in later passes.
    """
    wide, place_of, element = vector_width(dtype), element_place(block, dtype), number(dtype)
    side, by = wide * block.x, block.y

    def write_tile(out: Array, tile: Array, corner: Corner, upper: Index, sides: Sides, share: Share) -> None:
        packed = cuda.local.array(wide, element, alignment=ALIGNMENT)
        places = cuda.local.array(wide, uint32)
        nx, ny = sides
        # The same in all passes: a tile begins at a multiple of wide, and a block's height is one.
        before = share.top * ny % wide
        ox = corner.y + share.vector * wide
        left = corner.x + share.top
        if before <= ox < ny and ny - ox >= wide - before:
            y = ox - before
            for lane in range(wide):
                places[lane] = place_of(y + lane, upper, nx) + share.top
            for first in range(0, side, by):
                x = left + first
                if x < nx:
                    for lane in range(wide):
                        # In 64 bits the sum cannot wrap, so that the compiler adds ``first`` in the load itself.
                        packed[lane] = tile[uint64(places[lane]) + first]
                    store(out, x * ny + y, load_vector(packed, 0))
        else:
            for first in range(0, side, by):
                x = left + first
                for lane in range(wide):
                    reach = ox + lane
                    if x < nx and before <= reach and reach - before < ny:
                        y = reach - before
                        place = place_of(y, upper, nx) + (share.top + first)
                        out[x * ny + y] = tile[place]

    return device(write_tile)
