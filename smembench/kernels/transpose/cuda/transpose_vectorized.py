"""transposeVectorized: transposeSwizzled with 128-bit accesses of global memory on both sides.

A thread moves 16 bytes an instruction: four float32 instead of one, two float64, eight float16. A block of bx × by
threads has a tile bx vectors wide and as high as that is in elements, 64 × 64 float32 for 16x32. What it relieves:
instructions, and latency, since each load in flight is 16 bytes. A vector goes into the tile whole, in one 128-bit
store, and comes out of it in elements, one a row, which a thread packs into the vector that it writes.

The swizzle permutes whole vectors: vector v of row r lies at v XOR (r / lanes modulo 8). A warp lies over the tile as
8 vectors by 4 rows, a cache line each. Its stores fill 8 different groups of four banks a quarter-warp; its loads, at
4 neighbouring columns of rows ``lanes`` apart, fall into different banks or share words: no conflicts for any element
type.

Where rows are no multiples of 16 bytes, in the input or in the output, no row but the first is sure to be aligned:
then the same tile is moved element by element, as transposeSwizzled does, with as many bytes a block in flight.

Predicted: at most what a copy by 128-bit accesses reached on an H200 (2026-11-20), 4021 GB/s at 4096² and 4290 at
16384², which is 1.47 and 1.49 times transposeCoarsened's prototype. Found there with a prototype of it, 64 × 64 float32
by 512 threads in a tile padded by 1: 3834 GB/s at 4096², 1.41 times transposeCoarsened's and 0.99 of cudaMemcpy, and
3951 GB/s at 16384², 1.37 times and 0.93.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from smembench.axes import Block
from smembench.case import Case
from smembench.cuda_api import cuda, device, number, uint32
from smembench.kernels.grids import block_of, covering
from smembench.kernels.registry import Kernel, Program
from smembench.kernels.transpose.cuda.transpose_swizzled import swizzled
from smembench.kernels.transpose.tiles import ACROSS, WARP_ROWS, vector_side, vectors_fit
from smembench.kernels.vector import ALIGNMENT, lanes, load_vector, store_vector
from smembench.problems.transpose import TRANSPOSE

Order = Callable[[Any, Any, Any, Any], tuple[Any, Any]]


@device
def in_rows(across: Any, down: Any, columns: Any, rows: Any) -> tuple[Any, Any]:
    """The tile (across, down) of a block of the grid: row after row."""
    return across, down


def vectorized(
    case: Case,
    *,
    order: Order = in_rows,
    load: Callable[[Any, Any], Any] = load_vector,
    store: Callable[[Any, Any, Any], None] = store_vector,
) -> Program:
    """Program for ``(out, inp, nx, ny)``; the tile is ``lanes`` times as wide as the block, and as high as wide.

    Args:
        case: the case.
        order: which tile a block has, from its index and the grid's, in tiles across and down.
        load: how a vector is read from global memory.
        store: how it is written there.
    """
    block = block_of(case)
    bx, by = block
    wide, side = lanes(case.dtype), vector_side(case)
    if case.n % wide or case.m % wide:
        return replace(swizzled(case, side), variant="elements")
    elements, warps_across = side * side, bx // ACROSS
    dtype = number(case.dtype)

    def transpose_vectorized(out: Any, inp: Any, nx: Any, ny: Any) -> None:
        tile = cuda.shared.array(elements, dtype, alignment=ALIGNMENT)
        packed = cuda.local.array(wide, dtype, alignment=ALIGNMENT)
        across, down = order(
            uint32(cuda.blockIdx.x), uint32(cuda.blockIdx.y), uint32(cuda.gridDim.x), uint32(cuda.gridDim.y)
        )
        x0 = uint32(across * uint32(side))
        y0 = uint32(down * uint32(side))

        thread = uint32(uint32(uint32(cuda.threadIdx.y) * uint32(bx)) + uint32(cuda.threadIdx.x))
        warp = uint32(thread // uint32(32))
        vector = uint32(uint32(thread % uint32(ACROSS)) + uint32(uint32(warp % uint32(warps_across)) * uint32(ACROSS)))
        line = uint32(uint32(thread // uint32(ACROSS)) % uint32(WARP_ROWS))
        top = uint32(line + uint32(uint32(warp // uint32(warps_across)) * uint32(WARP_ROWS)))

        ix = uint32(x0 + uint32(vector * uint32(wide)))
        for first in range(0, side, by):
            row = uint32(top + uint32(first))
            place = uint32(vector ^ uint32(uint32(row // uint32(wide)) % uint32(ACROSS)))
            if ix < nx and uint32(y0 + row) < ny:
                values = load(inp, uint32(uint32(y0 + row) * nx + ix))
                store_vector(tile, uint32(uint32(row * uint32(side)) + uint32(place * uint32(wide))), values)
        cuda.syncthreads()

        ox = uint32(y0 + uint32(vector * uint32(wide)))
        for first in range(0, side, by):
            row = uint32(top + uint32(first))
            place = uint32(uint32(row // uint32(wide)) ^ uint32(vector % uint32(ACROSS)))
            start = uint32(uint32(place * uint32(wide)) + uint32(row % uint32(wide)))
            if ox < ny and uint32(x0 + row) < nx:
                for lane in range(wide):
                    below = uint32(uint32(vector * uint32(wide)) + uint32(lane))
                    packed[lane] = tile[uint32(uint32(below * uint32(side)) + start)]
                store(out, uint32(uint32(x0 + row) * ny + ox), load_vector(packed, 0))

    return Program(transpose_vectorized, covering(case.n, case.m, Block(side, side)), block, order=order)


def build(case: Case) -> Program:
    """Program for ``(out, inp, nx, ny)``."""
    return vectorized(case)


def tile_elements(case: Case) -> int:
    """Elements of the square tile."""
    return vector_side(case) ** 2


KERNEL = Kernel(
    problem="transpose",
    name="transposeVectorized",
    kind="cuda",
    step=120,
    summary="transposeSwizzled with 128-bit accesses of global memory on both sides",
    build=build,
    computes=TRANSPOSE,
    results=(8, 8),
    default_blocks=(Block(16, 32), Block(16, 16)),
    pad=False,
    tile_elements=tile_elements,
    refuse=vectors_fit,
    standard=False,
    ladder="16 bytes an access: fewer instructions, more in flight",
)
