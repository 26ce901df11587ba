"""transposeAsync: transposePipelined whose loads are asynchronous copies, from global to shared memory.

What changes: a thread starts to copy 16 bytes (``cp.async``) and goes on; they go past its registers and it never
stores them. Before a tile is written each thread waits for its own copies, and the barrier that was there makes all of
them seen. What it relieves: registers, of a thread's share of a tile; and the warps, each of which waited for its loads
before it could store them. Instructions it does not save: the stores are gone, but a copy needs both addresses when it
is started. Where rows are no multiples of 16 bytes there is no difference to transposeDown. Compute capability 8.0
or newer.

Predicted: no more than transposePipelined, which has as many bytes on their way, while the memory is what both wait
for; a gain, if any, in 16x16 blocks, whose threads otherwise hold four vectors each. Found on an H200
(2026-11-20), 4096² float32: 0.927 of cudaMemcpy, no difference to transposePipelined.
"""

from __future__ import annotations

from typing import Any

from smembench.kernels.common.grids import block_of, covering, threads_of
from smembench.kernels.intrinsics.async_copy import commit_copies, copy_vector_async, wait_for_copies
from smembench.kernels.intrinsics.vector import ALIGNMENT, lanes
from smembench.kernels.numba_cuda import cuda, number, uint32
from smembench.kernels.program import NumbaKernel
from smembench.kernels.registry import Kernel
from smembench.kernels.transpose.cuda.transpose_pipelined import TILES
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
    both, height = 2 * elements, TILES * side
    position_of = in_lines(block)
    bring_tile, write_tile = bring(block, case.dtype, copy_vector_async), write(block, case.dtype)

    def transpose_async(out: Any, inp: Any, nx: Any, ny: Any) -> None:
        tile = cuda.shared.array(both, dtype, alignment=ALIGNMENT)
        packed = cuda.local.array(wide, dtype, alignment=ALIGNMENT)
        vector, top = position_of(uint32(cuda.threadIdx.x), uint32(cuda.threadIdx.y))
        x0 = uint32(uint32(cuda.blockIdx.y) * uint32(side))
        y0 = uint32(uint32(cuda.blockIdx.x) * uint32(height))
        end = min(ny, uint32(y0 + uint32(height)))
        base = uint32(0)
        bring_tile(tile, base, inp, x0, y0, nx, ny, vector, top)
        commit_copies()
        while y0 < end:
            wait_for_copies(0)
            cuda.syncthreads()
            below = uint32(y0 + uint32(side))
            other = uint32(uint32(elements) - base)
            if below < end:
                bring_tile(tile, other, inp, x0, below, nx, ny, vector, top)
            commit_copies()
            write_tile(out, tile, base, packed, x0, y0, nx, ny, vector, top)
            y0 = below
            base = other

    columns, rows = covering(case.n, case.m, Block(side, height))
    bounds = (threads_of(case), resident(case))
    return NumbaKernel(transpose_async, grid=(rows, columns), block=block, launch_bounds=bounds)


KERNEL = Kernel(
    problem="transpose",
    name="transposeAsync",
    kind="cuda",
    step=160,
    summary="transposePipelined by asynchronous copies past the registers",
    build=build,
    computes=TRANSPOSE,
    results=(8 * TILES, 8),
    default_blocks=(Block(16, 32), Block(16, 16), Block(8, 16)),
    pad=False,
    tile_elements=two_tiles,
    unsupported=two_tiles_fit,
    standard=False,
    ladder="asynchronous copies: to shared memory past the registers",
)
