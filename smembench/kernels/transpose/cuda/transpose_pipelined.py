"""transposePipelined: transposeDown with several tiles per block; the next is loaded while the current one is written.

A block has four tiles below each other, and shared memory for two. Per tile:

1. Issue the loads of the next tile, into registers.
2. Write the current tile.
3. Store the registers into the other half of shared memory; one barrier keeps the halves apart.

It hides the latency of the loads of three tiles in four, and a block starts once for all four. The next block goes on
below, so writes are as contiguous as in transposeDown. The hints, half-warps and pairs of columns of the steps up to
transposePaired are left out. Where rows are not multiples of 16 bytes the kernel is transposeDown.
Findings: results/reference/notes/transpose_pipelined.md.
"""

from __future__ import annotations

from smembench.kernels.common.grids import block_of, covering, threads_of
from smembench.kernels.intrinsics.vector import ALIGNMENT
from smembench.kernels.kernel import Kernel
from smembench.kernels.numba_cuda import cuda, number, uint32
from smembench.kernels.program import NumbaKernel
from smembench.kernels.transpose.problem import TRANSPOSE
from smembench.kernels.transpose.tile_copies import (
    IN_COLUMNS,
    Corner,
    Sides,
    in_lines,
    tile_prefetch,
    tile_store,
    tile_write,
)
from smembench.kernels.transpose.tile_geometry import resident, two_tiles, two_tiles_fit, vector_side, vectors_align
from smembench.kernels.transpose.unaligned_rows import unaligned
from smembench.kernels.types import Array, Index
from smembench.model.case import Block, Case

TILES = 4
"""Tiles per block: enough that most loads overlap, few enough that a matrix of 4096² takes two waves of blocks."""


def build(case: Case) -> NumbaKernel:
    """Program for ``(out, inp, nx, ny)``; the tiles are as in transposeVectorized."""
    if not vectors_align(case):
        return unaligned(case, order=IN_COLUMNS)
    block, side, dtype = block_of(case), vector_side(case), number(case.dtype)
    elements, height = side * side, TILES * side
    both, each = 2 * elements, elements // threads_of(case)
    share_of, prefetch_tile = in_lines(block), tile_prefetch(block, case.dtype)
    store_tile, write_tile = tile_store(block, case.dtype), tile_write(block, case.dtype)

    def transpose_pipelined(out: Array, inp: Array, nx: Index, ny: Index) -> None:
        tile = cuda.shared.array(both, dtype, alignment=ALIGNMENT)
        held = cuda.local.array(each, dtype, alignment=ALIGNMENT)
        sides = Sides(nx, ny)
        own = share_of(cuda.threadIdx.x, cuda.threadIdx.y)
        x0 = cuda.blockIdx.y * side
        y0 = cuda.blockIdx.x * height
        end = min(ny, y0 + height)
        base = uint32(0)
        prefetch_tile(held, inp, Corner(x0, y0), sides, own)
        while y0 < end:
            store_tile(tile, base, held, own)
            cuda.syncthreads()
            below = y0 + side
            if below < end:
                prefetch_tile(held, inp, Corner(x0, below), sides, own)
            write_tile(out, tile, base, Corner(x0, y0), sides, own)
            y0 = below
            base = elements - base

    columns, rows = covering(case.n, case.m, Block(side, height))
    bounds = (threads_of(case), resident(case))
    return NumbaKernel(transpose_pipelined, grid=(rows, columns), block=block, launch_bounds=bounds)


KERNEL = Kernel(
    problem="transpose",
    name="transposePipelined",
    kind="cuda",
    summary="transposeDown with several tiles per block: the next is loaded while one is written",
    build=build,
    computes=TRANSPOSE,
    results=(8 * TILES, 8),
    default_blocks=(Block(16, 32), Block(16, 16), Block(8, 16)),
    pad=False,
    tile_elements=two_tiles,
    unsupported=two_tiles_fit,
    standard=False,
    ladder="several tiles per block: the next loads while one is written",
)
