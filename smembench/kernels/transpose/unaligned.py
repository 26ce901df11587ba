"""Transposes by 128-bit accesses where rows begin anywhere: what transposeVectorized does with such sizes.

What changes: a tile's row is read from the vector in which it begins, a vector more than the tile is wide, and comes
into shared memory as it lies in the input. Each row of the output is cut where its own vectors begin, up to
``lanes`` - 1 elements before the tile, so as many rows above the tile are read as well. Between the two, each element
is fetched from where the shift of its row has put it. Shifts repeat after ``lanes`` rows, so a thread finds them once
for all passes. Only the ends of rows of the output, and what follows the last whole vector of the input, go element by
element.

What it relieves, against moving every element by itself: instructions, and latency, as in transposeVectorized. The
price: what two tiles read, 1.1 times the bytes, comes from the L2 twice, and vectors begin within 32-byte sectors. By
the model 1.2 times the sectors are read and 1.13 times are written.

Bank conflicts: row r lies behind r // ``lanes`` unused vectors, so that vectors side by side in the output come from
different groups of four banks. The 4 rows of the output that a warp writes use different banks of a group only if their
shifts tell them apart. They do not where nx · ny leaves 1 divided by ``lanes``, as the square of an odd side does: then
loads have 4-way conflicts, in float64 2-way, whatever the layout, as long as vectors are stored as they lie.

Predicted: at 4095² and 4097² 0.8 to 0.9 of the bandwidth of 4096², if sectors are what counts. float16 comes nearest to
the limit of shared memory: with 8 loads a vector its conflicts take 9 µs there, where memory takes 17.
Found on an H200 (2026-11-20) with transposeStreamed: 0.92 in float32, 0.93 in float64, 0.80 and 0.82 in float16, where
moving elements had reached 0.75, 0.82 and 0.54, and with transposeHalfWarp 0.4 to 1.7 % more; that is 1.18 to 1.40
times cudaMemcpy, which is slow with such sizes itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import gcd
from typing import Any

from smembench.kernels.common.grids import block_of, covering
from smembench.kernels.intrinsics.vector import ALIGNMENT, copy_vector, lanes, load_vector, store_vector
from smembench.kernels.numba_cuda import cuda, device, number, uint32, uint64
from smembench.kernels.program import NumbaKernel
from smembench.kernels.transpose.pieces import IN_ROWS, Order, Piece, in_lines
from smembench.kernels.transpose.tiles import unaligned_elements, vector_side
from smembench.model.case import Block, Case


def unaligned(
    case: Case,
    *,
    order: Order = IN_ROWS,
    position: Callable[[Block], Piece] = in_lines,
    copy: Callable[[Any, Any, Any, Any], None] = copy_vector,
    store: Callable[[Any, Any, Any], None] = store_vector,
) -> NumbaKernel:
    """Program for ``(out, inp, nx, ny)``, with arguments as transposeVectorized's."""
    block = block_of(case)
    bx, side, wide = block.x, vector_side(case), lanes(case.dtype)
    elements, dtype = unaligned_elements(case), number(case.dtype)
    position_of = position(block)
    bring_tile, write_tile = bring(block, case.dtype, copy), write(block, case.dtype, store)
    # What precedes a row of the output in its first vector is a multiple of gcd(ny, lanes), and less than lanes.
    columns, rows = covering(case.n, case.m + wide - gcd(case.m, wide), Block(side, side))
    grid, tile_of = order.grid(columns, rows), order.tile_of

    def transpose_unaligned(out: Any, inp: Any, nx: Any, ny: Any) -> None:
        tile = cuda.shared.array(elements, dtype, alignment=ALIGNMENT)
        packed = cuda.local.array(wide, dtype, alignment=ALIGNMENT)
        places = cuda.local.array(wide, uint32)
        across, down = tile_of(uint32(cuda.blockIdx.x), uint32(cuda.blockIdx.y))
        x0 = uint32(across * uint32(side))
        y0 = uint32(down * uint32(side))
        upper = uint32(y0 - min(y0, uint32(wide - 1)))
        thread = uint32(uint32(uint32(cuda.threadIdx.y) * uint32(bx)) + uint32(cuda.threadIdx.x))
        bring_tile(tile, inp, x0, upper, nx, ny, thread)
        cuda.syncthreads()
        vector, top = position_of(uint32(cuda.threadIdx.x), uint32(cuda.threadIdx.y))
        write_tile(out, tile, packed, places, x0, y0, upper, nx, ny, vector, top)

    return NumbaKernel(transpose_unaligned, grid=grid, block=block, variant="unaligned")


@cache
def element_place(block: Block, dtype: str) -> Piece:
    """``(y, upper, nx)``: where the tile has column ``x0`` of row ``y``, behind what precedes it in its vector."""
    wide, across = lanes(dtype), block.x + 1

    def place_of(y: Any, upper: Any, nx: Any) -> Any:
        row = uint32(y - upper)
        vectors = uint32(uint32(row * uint32(across)) + uint32(row // uint32(wide)))
        return uint32(uint32(vectors * uint32(wide)) + uint32(uint32(y * nx) % uint32(wide)))

    return device(place_of)


@cache
def bring(block: Block, dtype: str, copy: Piece) -> Piece:
    """``(tile, inp, x0, upper, nx, ny, thread)``: into shared memory, by ``copy(tile, place, inp, index)``.

    Threads take the tile's vectors in row-major order; those left over in the last pass bring the last one again, which
    spares a branch.
    """
    wide, place_of = lanes(dtype), element_place(block, dtype)
    side, across, threads = wide * block.x, block.x + 1, block.x * block.y
    rows = side + wide - 1

    def bring_tile(tile: Any, inp: Any, x0: Any, upper: Any, nx: Any, ny: Any, thread: Any) -> None:
        whole = uint32(uint32(uint32(nx * ny) // uint32(wide)) * uint32(wide))
        for first in range(0, rows * across, threads):
            number = min(uint32(thread + uint32(first)), uint32(rows * across - 1))
            row = uint32(number // uint32(across))
            iy = uint32(upper + row)
            begin = uint32(iy * nx)
            within = uint32(uint32(begin + x0) + uint32(uint32(number % uint32(across)) * uint32(wide)))
            start = uint32(within - uint32(within % uint32(wide)))
            if iy < ny and start < min(uint32(begin + nx), whole):
                copy(tile, uint32(uint32(number + uint32(row // uint32(wide))) * uint32(wide)), inp, start)
        # What follows the last whole vector of the input, one element a thread.
        if thread < uint32(uint32(nx * ny) - whole):
            index = uint32(whole + thread)
            ix, iy = uint32(index % nx), uint32(index // nx)
            if x0 <= ix and uint32(ix - x0) < uint32(side) and upper <= iy and uint32(iy - upper) < uint32(rows):
                tile[uint32(place_of(iy, upper, nx) + uint32(ix - x0))] = inp[index]

    return device(bring_tile)


@cache
def write(block: Block, dtype: str, store: Piece) -> Piece:
    """``(out, tile, packed, places, x0, y0, upper, nx, ny, vector, top)``: out of shared memory, transposed.

    Elements of a column are packed into the vector ``packed``, which ``store(out, index, values)`` writes. ``places``
    is for where they are in the first pass: in every other they are as much to the right as their column.
    """
    wide, place_of = lanes(dtype), element_place(block, dtype)
    side, by = wide * block.x, block.y

    def write_tile(
        out: Any,
        tile: Any,
        packed: Any,
        places: Any,
        x0: Any,
        y0: Any,
        upper: Any,
        nx: Any,
        ny: Any,
        vector: Any,
        top: Any,
    ) -> None:
        # The same in all passes, since a tile begins at a multiple of lanes and a block is a multiple of them high.
        before = uint32(uint32(top * ny) % uint32(wide))
        ox = uint32(y0 + uint32(vector * uint32(wide)))
        left = uint32(x0 + top)
        if before <= ox < ny and uint32(ny - ox) >= uint32(uint32(wide) - before):
            y = uint32(ox - before)
            for lane in range(wide):
                places[lane] = uint32(place_of(uint32(y + uint32(lane)), upper, nx) + top)
            for first in range(0, side, by):
                x = uint32(left + uint32(first))
                if x < nx:
                    for lane in range(wide):
                        # In 64 bits the sum cannot wrap, so that the compiler adds ``first`` in the load itself.
                        packed[lane] = tile[uint64(uint64(places[lane]) + uint64(first))]
                    store(out, uint32(uint32(x * ny) + y), load_vector(packed, 0))
        else:
            for first in range(0, side, by):
                x = uint32(left + uint32(first))
                for lane in range(wide):
                    reach = uint32(ox + uint32(lane))
                    if x < nx and before <= reach and uint32(reach - before) < ny:
                        y = uint32(reach - before)
                        place = uint32(place_of(y, upper, nx) + uint32(top + uint32(first)))
                        out[uint32(uint32(x * ny) + y)] = tile[place]

    return device(write_tile)
