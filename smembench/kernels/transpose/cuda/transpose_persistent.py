"""transposePersistent: transposeAsync with a persistent grid: only as many blocks as run at once, for all tiles.

A block goes over the tiles in strides of the grid, in the order of transposeDown. The next tile's copies are in flight
from a block's first tile to its last, and blocks that run at the same time write contiguous rows.

It hides the latency of every tile but a block's first, and saves starting blocks in waves. The assignment of tiles is
fixed, so one slow SM delays the end. An SM gets blocks with 64 KiB of tiles in flight, as far as its threads allow;
where fewer fit, the others follow later and the grid is not persistent. Where rows are not multiples of 16 bytes the
kernel is transposeDown. Needs compute capability 8.0. Findings: results/reference/notes/transpose_persistent.md.
"""

from __future__ import annotations

from dataclasses import replace

from smembench.kernels.common.grids import block_of, covering, threads_of
from smembench.kernels.intrinsics.async_copy import commit_copies, copy_vector_async, wait_for_copies
from smembench.kernels.intrinsics.vector import ALIGNMENT
from smembench.kernels.numba_cuda import cuda, number, uint32
from smembench.kernels.program import NumbaKernel
from smembench.kernels.transpose.cuda import transpose_async
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
    elements = side * side
    both = 2 * elements
    share_of, load_tile = in_lines(block), tile_load(block, case.dtype, copy_vector_async)
    write_tile = tile_write(block, case.dtype)

    def transpose_persistent(out: Array, inp: Array, nx: Index, ny: Index) -> None:
        tile = cuda.shared.array(both, dtype, alignment=ALIGNMENT)
        sides = Sides(nx, ny)
        own = share_of(cuda.threadIdx.x, cuda.threadIdx.y)
        columns = (nx + (side - 1)) // side
        rows = (ny + (side - 1)) // side
        count = columns * rows
        blocks = cuda.gridDim.x * cuda.gridDim.y
        current = cuda.blockIdx.y * cuda.gridDim.x + cuda.blockIdx.x
        corner = Corner(current // rows * side, current % rows * side)
        base = uint32(0)
        load_tile(tile, base, inp, corner, sides, own)
        commit_copies()
        while current < count:
            wait_for_copies(0)
            cuda.syncthreads()
            current = current + blocks
            other = elements - base
            following = Corner(current // rows * side, current % rows * side)
            if current < count:
                load_tile(tile, other, inp, following, sides, own)
            commit_copies()
            write_tile(out, tile, base, corner, sides, own)
            corner = following
            base = other

    columns, rows = covering(case.n, case.m, Block(side, side))
    blocks_per_sm = resident(case)

    def blocks_on(multiprocessors: int) -> int:
        return min(rows * columns, blocks_per_sm * multiprocessors)

    bounds = (threads_of(case), blocks_per_sm)
    return NumbaKernel(
        transpose_persistent, grid=(rows, columns), block=block, launch_bounds=bounds, persistent_blocks=blocks_on
    )


KERNEL = replace(
    transpose_async.KERNEL,
    name="transposePersistent",
    summary="transposeAsync with a persistent grid: only as many blocks as run at once, for all tiles",
    build=build,
    results=(8, 8),
    ladder="a persistent grid: only as many blocks as run at once",
)
