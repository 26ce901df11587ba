"""transposePersistent: transposeAsync with a persistent grid: no more blocks than run at once, for all tiles.

What changes: a block goes over the tiles in strides of the grid, in the order of transposeDown, for as long as there
are any; the copies of its next tile are on their way from its first tile to its last. What the blocks of a round write
lies side by side, and so does what those of the next do. What it relieves: latency, of every tile but a block's first,
and of starting blocks in rounds. Tiles are dealt out once and for all: an SM that is slower than the others is waited
for at the end, which a grid of many blocks avoids. Where rows are no multiples of 16 bytes there is no difference to
transposeDown. Compute capability 8.0 or newer.

An SM is given blocks with 64 KiB of tiles on their way, as far as its threads allow: 528 blocks of 64 × 64 float32 on
an H200, where 4096² has 7.8 tiles for each of them and 16384² has 124. At 2.1 TB/s of reads, half of what cudaMemcpy
reached there (2026-11-20), that much takes 4 µs to come, longer than a load. On SMs with room for fewer blocks the
others follow later, and the grid is not persistent.

Predicted: no difference to transposeAsync at 4096², with 8 rounds there instead of two of four tiles; at 16384² at most
what transposeVectorized's prototype lacked of cudaMemcpy, 1.08 times, shared with the steps between. Found
there (2026-11-20), 4096² float32 in 16x16 blocks: 0.899 of cudaMemcpy, where transposeAsync has 0.927 in 16x32.
"""

from __future__ import annotations

from typing import Any

from smembench.kernels.common.grids import block_of, covering, threads_of
from smembench.kernels.intrinsics.async_copy import commit_copies, copy_vector_async, wait_for_copies
from smembench.kernels.intrinsics.vector import ALIGNMENT, lanes
from smembench.kernels.numba_cuda import cuda, number, uint32
from smembench.kernels.program import NumbaKernel
from smembench.kernels.registry import Kernel
from smembench.kernels.transpose.pieces import IN_COLUMNS, bring, in_lines, write
from smembench.kernels.transpose.problem import TRANSPOSE
from smembench.kernels.transpose.tiles import resident, two_tiles, two_tiles_fit, vector_side, vectors_align
from smembench.kernels.transpose.unaligned import unaligned
from smembench.model.case import Block, Case


def build(case: Case) -> NumbaKernel:
    """Program for ``(out, inp, nx, ny)``; the tiles are as in transposeVectorized."""
    block, side = block_of(case), vector_side(case)
    if not vectors_align(case):
        return unaligned(case, order=IN_COLUMNS)
    elements, wide, dtype = side * side, lanes(case.dtype), number(case.dtype)
    both = 2 * elements
    position_of = in_lines(block)
    bring_tile, write_tile = bring(block, case.dtype, copy_vector_async), write(block, case.dtype)

    def transpose_persistent(out: Any, inp: Any, nx: Any, ny: Any) -> None:
        tile = cuda.shared.array(both, dtype, alignment=ALIGNMENT)
        packed = cuda.local.array(wide, dtype, alignment=ALIGNMENT)
        vector, top = position_of(uint32(cuda.threadIdx.x), uint32(cuda.threadIdx.y))
        columns = uint32(uint32(nx + uint32(side - 1)) // uint32(side))
        rows = uint32(uint32(ny + uint32(side - 1)) // uint32(side))
        count = uint32(columns * rows)
        blocks = uint32(uint32(cuda.gridDim.x) * uint32(cuda.gridDim.y))
        current = uint32(uint32(uint32(cuda.blockIdx.y) * uint32(cuda.gridDim.x)) + uint32(cuda.blockIdx.x))
        x0 = uint32(uint32(current // rows) * uint32(side))
        y0 = uint32(uint32(current % rows) * uint32(side))
        base = uint32(0)
        bring_tile(tile, base, inp, x0, y0, nx, ny, vector, top)
        commit_copies()
        while current < count:
            wait_for_copies(0)
            cuda.syncthreads()
            current = uint32(current + blocks)
            other = uint32(uint32(elements) - base)
            next_x0 = uint32(uint32(current // rows) * uint32(side))
            next_y0 = uint32(uint32(current % rows) * uint32(side))
            if current < count:
                bring_tile(tile, other, inp, next_x0, next_y0, nx, ny, vector, top)
            commit_copies()
            write_tile(out, tile, base, packed, x0, y0, nx, ny, vector, top)
            x0, y0 = next_x0, next_y0
            base = other

    columns, rows = covering(case.n, case.m, Block(side, side))
    held = resident(case)

    def blocks_on(multiprocessors: int) -> int:
        return min(rows * columns, held * multiprocessors)

    bounds = (threads_of(case), held)
    return NumbaKernel(
        transpose_persistent, grid=(rows, columns), block=block, launch_bounds=bounds, persistent_blocks=blocks_on
    )


KERNEL = Kernel(
    problem="transpose",
    name="transposePersistent",
    kind="cuda",
    step=170,
    summary="transposeAsync with a persistent grid: no more blocks than run at once, for all tiles",
    build=build,
    computes=TRANSPOSE,
    results=(8, 8),
    default_blocks=(Block(16, 32), Block(16, 16), Block(8, 16)),
    pad=False,
    tile_elements=two_tiles,
    unsupported=two_tiles_fit,
    standard=False,
    ladder="a persistent grid: no more blocks than run at once",
)
