"""transposeVectorized: transposeSwizzled with 128-bit accesses of global memory on both sides.

A thread moves 16 bytes an instruction: four float32 instead of one, two float64, eight float16. A block of bx × by
threads has a tile bx vectors wide and as high as that is in elements, 64 × 64 float32 for 16x32. What it relieves:
instructions, and latency, since each load in flight is 16 bytes. A vector goes into the tile whole, in one 128-bit
store, and comes out of it in elements, one a row, which a thread packs into the vector that it writes.

The swizzle permutes whole vectors: vector v of row r lies at v XOR (r / lanes modulo 8). A warp lies over the tile as
8 vectors by 4 rows, a cache line each. Its stores fill 8 different groups of four banks a quarter-warp; its loads, at
4 neighbouring columns of rows ``lanes`` apart, fall into different banks or share words: no conflicts for any element
type.

Where rows are no multiples of 16 bytes, in the input or in the output, no row but the first is sure to be aligned: then
vectors are read and written as they lie in memory, and shifted against each other in the tile (unaligned.py).

Predicted: at most what a copy by 128-bit accesses reached on an H200 (2026-11-20), 4021 GB/s at 4096² and 4290 at
16384², which is 1.47 and 1.49 times transposeCoarsened's prototype. Found there with a prototype of it, 64 × 64 float32
by 512 threads in a tile padded by 1: 3834 GB/s at 4096², 1.41 times transposeCoarsened's and 0.99 of cudaMemcpy, and
3951 GB/s at 16384², 1.37 times and 0.93. Found there with this one: 0.954 and 0.939 of cudaMemcpy in the same run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from smembench.kernels.common.grids import block_of, covering
from smembench.kernels.intrinsics.vector import ALIGNMENT, copy_vector, lanes, store_vector
from smembench.kernels.numba_cuda import cuda, number, uint32
from smembench.kernels.program import NumbaKernel
from smembench.kernels.registry import Kernel
from smembench.kernels.transpose.pieces import IN_ROWS, Order, Piece, bring, in_lines, write
from smembench.kernels.transpose.problem import TRANSPOSE
from smembench.kernels.transpose.tiles import one_tile, vector_side, vectors_align, vectors_fit
from smembench.kernels.transpose.unaligned import unaligned
from smembench.model.case import Block, Case


def vectorized(
    case: Case,
    *,
    order: Order = IN_ROWS,
    position: Callable[[Block], Piece] = in_lines,
    copy: Callable[[Any, Any, Any, Any], None] = copy_vector,
    store: Callable[[Any, Any, Any], None] = store_vector,
) -> NumbaKernel:
    """Program for ``(out, inp, nx, ny)``; the tile is ``lanes`` times as wide as the block, and as high as wide.

    Args:
        case: the case.
        order: in which blocks take tiles.
        position: which vectors a thread has.
        copy: how a vector comes from global into shared memory.
        store: how it is written to global memory.
    """
    block = block_of(case)
    side = vector_side(case)
    if not vectors_align(case):
        return unaligned(case, order=order, position=position, copy=copy, store=store)
    elements, wide, dtype = side * side, lanes(case.dtype), number(case.dtype)
    position_of = position(block)
    bring_tile, write_tile = bring(block, case.dtype, copy), write(block, case.dtype, store)
    tile_of = order.tile_of

    def transpose_vectorized(out: Any, inp: Any, nx: Any, ny: Any) -> None:
        tile = cuda.shared.array(elements, dtype, alignment=ALIGNMENT)
        packed = cuda.local.array(wide, dtype, alignment=ALIGNMENT)
        across, down = tile_of(uint32(cuda.blockIdx.x), uint32(cuda.blockIdx.y))
        x0 = uint32(across * uint32(side))
        y0 = uint32(down * uint32(side))
        vector, top = position_of(uint32(cuda.threadIdx.x), uint32(cuda.threadIdx.y))
        bring_tile(tile, uint32(0), inp, x0, y0, nx, ny, vector, top)
        cuda.syncthreads()
        write_tile(out, tile, uint32(0), packed, x0, y0, nx, ny, vector, top)

    grid = order.grid(*covering(case.n, case.m, Block(side, side)))
    return NumbaKernel(transpose_vectorized, grid=grid, block=block, variant=order.label)


def build(case: Case) -> NumbaKernel:
    """Program for ``(out, inp, nx, ny)``."""
    return vectorized(case)


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
    tile_elements=one_tile,
    unsupported=vectors_fit,
    standard=False,
    ladder="16 bytes an access: fewer instructions, more in flight",
)
