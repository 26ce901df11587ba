"""transposeAsync: transposePipelined with asynchronous copies from global to shared memory.

A thread starts copies of 16 bytes (``cp.async``) that bypass its registers. Before a tile is written, each thread waits
for its own copies, and a barrier makes those of all threads visible.

It frees the registers that held a thread's share of a tile, and hides latency: warps no longer wait for loads before
they store. It saves no instructions: the stores are gone, but a copy needs both addresses when it starts. Where rows
are not multiples of 16 bytes the kernel is transposeDown. Needs compute capability 8.0. Findings:
results/reference/notes/transpose_async.md.
"""

from __future__ import annotations

from dataclasses import replace

from smembench.kernels.common.grids import block_of, covering, threads_of
from smembench.kernels.intrinsics.async_copy import commit_copies, copy_vector_async, wait_for_copies
from smembench.kernels.intrinsics.vector import ALIGNMENT
from smembench.kernels.numba_cuda import cuda, number, uint32
from smembench.kernels.program import NumbaKernel
from smembench.kernels.transpose.cuda import transpose_pipelined
from smembench.kernels.transpose.cuda.transpose_pipelined import TILES
from smembench.kernels.transpose.tile_copies import IN_COLUMNS, Corner, Sides, in_lines, tile_load, tile_write
from smembench.kernels.transpose.tile_geometry import resident, vector_side, vectors_align
from smembench.kernels.transpose.unaligned_rows import unaligned
from smembench.kernels.types import Array, Index
from smembench.model.case import Block, Case


def build(case: Case) -> NumbaKernel:
    """Program for ``(out, inp, nx, ny)``; the tiles are as in transposeVectorized."""
    if not vectors_align(case):
        return unaligned(case, order=IN_COLUMNS)
    block, side, dtype = block_of(case), vector_side(case), number(case.dtype)
    elements, height = side * side, TILES * side
    both = 2 * elements
    share_of, load_tile = in_lines(block), tile_load(block, case.dtype, copy_vector_async)
    write_tile = tile_write(block, case.dtype)

    def transpose_async(out: Array, inp: Array, nx: Index, ny: Index) -> None:
        tile = cuda.shared.array(both, dtype, alignment=ALIGNMENT)
        sides = Sides(nx, ny)
        own = share_of(cuda.threadIdx.x, cuda.threadIdx.y)
        x0 = cuda.blockIdx.y * side
        y0 = cuda.blockIdx.x * height
        end = min(ny, y0 + height)
        base = uint32(0)
        load_tile(tile, base, inp, Corner(x0, y0), sides, own)
        commit_copies()
        while y0 < end:
            wait_for_copies(0)
            cuda.syncthreads()
            below = y0 + side
            other = elements - base
            if below < end:
                load_tile(tile, other, inp, Corner(x0, below), sides, own)
            commit_copies()
            write_tile(out, tile, base, Corner(x0, y0), sides, own)
            y0 = below
            base = other

    columns, rows = covering(case.n, case.m, Block(side, height))
    bounds = (threads_of(case), resident(case))
    return NumbaKernel(transpose_async, grid=(rows, columns), block=block, launch_bounds=bounds)


KERNEL = replace(
    transpose_pipelined.KERNEL,
    name="transposeAsync",
    summary="transposePipelined by asynchronous copies past the registers",
    build=build,
    needs="8.0",
    ladder="asynchronous copies: to shared memory without registers",
)
