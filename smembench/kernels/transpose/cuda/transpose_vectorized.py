"""transposeVectorized: transposeSwizzled with 128-bit accesses of global memory on both sides.

A thread moves 16 bytes per instruction: four float32, two float64 or eight float16. The tile of a block of bx × by
threads is bx vectors wide and, in elements, as high: 64 × 64 float32 for 16x32.

1. Each thread stores its vectors into the tile whole, in one 128-bit store each; barrier.
2. It loads elements of a column of the tile, one per row, packs them into a vector and writes that.

The swizzle permutes whole vectors: vector v of row r is stored at v XOR (r / vector width modulo 8). A warp covers 8
vectors by 4 rows, a cache line per row. Neither stores nor loads have conflicts, for any element type. It relieves
instruction issue, and hides latency, since each load in flight is 16 bytes. Rows that are not multiples of 16 bytes
take unaligned_rows.py. Findings: results/reference/notes/transpose_vectorized.md.
"""

from __future__ import annotations

from collections.abc import Callable

from smembench.kernels.common.grids import block_of, covering
from smembench.kernels.intrinsics.vector import ALIGNMENT, copy_vector, store_vector
from smembench.kernels.kernel import Kernel
from smembench.kernels.numba_cuda import cuda, number
from smembench.kernels.program import NumbaKernel
from smembench.kernels.transpose.problem import TRANSPOSE
from smembench.kernels.transpose.tile_copies import (
    IN_ROWS,
    CopyVector,
    Corner,
    ShareOf,
    Sides,
    StoreVector,
    TileOrder,
    in_lines,
    tile_load,
    tile_write,
)
from smembench.kernels.transpose.tile_geometry import one_tile, vector_side, vectors_align, vectors_fit
from smembench.kernels.transpose.unaligned_rows import unaligned
from smembench.kernels.types import Array, Index
from smembench.model.case import Block, Case


def vectorized(
    case: Case,
    *,
    order: TileOrder = IN_ROWS,
    share: Callable[[Block], ShareOf] = in_lines,
    copy: CopyVector = copy_vector,
    store: StoreVector = store_vector,
) -> NumbaKernel:
    """Program for ``(out, inp, nx, ny)``; the tile is ``vector_width`` times as wide as the block, and as high as wide.

    Args:
        case: the case.
        order: in which blocks take tiles.
        share: which vectors a thread has.
        copy: how a vector comes from global into shared memory.
        store: how it is written to global memory.
    """
    if not vectors_align(case):
        return unaligned(case, order=order, share=share, copy=copy, store=store)
    block, side = block_of(case), vector_side(case)
    elements, dtype = side * side, number(case.dtype)
    tile_of, share_of = order.tile_of, share(block)
    load_tile, write_tile = tile_load(block, case.dtype, copy), tile_write(block, case.dtype, store)

    def transpose_vectorized(out: Array, inp: Array, nx: Index, ny: Index) -> None:
        tile = cuda.shared.array(elements, dtype, alignment=ALIGNMENT)
        sides = Sides(nx, ny)
        across, down = tile_of(cuda.blockIdx.x, cuda.blockIdx.y)
        corner = Corner(across * side, down * side)
        own = share_of(cuda.threadIdx.x, cuda.threadIdx.y)
        load_tile(tile, inp, corner, sides, own)
        cuda.syncthreads()
        write_tile(out, tile, corner, sides, own)

    grid = order.grid(*covering(case.n, case.m, Block(side, side)))
    return NumbaKernel(transpose_vectorized, grid=grid, block=block, variant=order.label)


KERNEL = Kernel(
    problem="transpose",
    name="transposeVectorized",
    kind="cuda",
    summary="transposeSwizzled with 128-bit accesses of global memory on both sides",
    build=vectorized,
    computes=TRANSPOSE,
    results=(8, 8),
    default_blocks=(Block(16, 32), Block(16, 16)),
    pad=False,
    tile_elements=one_tile,
    unsupported=vectors_fit,
    standard=False,
    ladder="16 bytes per access: fewer instructions, more in flight",
)
