"""transposePersistent: transposeAsync with a persistent grid: no more blocks than run at once, for all tiles.

A block goes over the tiles in strides of the grid, in the order of transposeDown. The copies of its next tile are under
way from its first tile to its last, and the blocks of a round write contiguous rows.

It relieves latency: of every tile but a block's first, and of starting blocks in rounds. The assignment of tiles is
fixed, so a slow SM delays the end. An SM gets blocks with 64 KiB of tiles in flight, as far as its threads allow; where
fewer fit, the others follow later and the grid is not persistent. Where rows are no multiples of 16 bytes it is
transposeDown. Compute capability 8.0 or newer. Findings: results/reference/notes/transpose_persistent.md.
"""

from __future__ import annotations

from typing import Any

from smembench.kernels.common.grids import block_of, covering, threads_of
from smembench.kernels.intrinsics.async_copy import commit_copies, copy_vector_async, wait_for_copies
from smembench.kernels.intrinsics.vector import ALIGNMENT, vector_width
from smembench.kernels.numba_cuda import cuda, number, uint32
from smembench.kernels.program import NumbaKernel
from smembench.kernels.registry import Kernel
from smembench.kernels.transpose.problem import TRANSPOSE
from smembench.kernels.transpose.tile_copies import IN_COLUMNS, in_lines, tile_load, tile_write
from smembench.kernels.transpose.tile_geometry import resident, two_tiles, two_tiles_fit, vector_side, vectors_align
from smembench.kernels.transpose.unaligned_rows import unaligned
from smembench.model.case import Block, Case


def build(case: Case) -> NumbaKernel:
    """Program for ``(out, inp, nx, ny)``; the tiles are as in transposeVectorized."""
    block, side = block_of(case), vector_side(case)
    if not vectors_align(case):
        return unaligned(case, order=IN_COLUMNS)
    elements, wide, dtype = side * side, vector_width(case.dtype), number(case.dtype)
    both = 2 * elements
    position_of = in_lines(block)
    load_tile, write_tile = tile_load(block, case.dtype, copy_vector_async), tile_write(block, case.dtype)

    def transpose_persistent(out: Any, inp: Any, nx: Any, ny: Any) -> None:
        tile = cuda.shared.array(both, dtype, alignment=ALIGNMENT)
        packed = cuda.local.array(wide, dtype, alignment=ALIGNMENT)
        vector, top = position_of(cuda.threadIdx.x, cuda.threadIdx.y)
        columns = (nx + (side - 1)) // side
        rows = (ny + (side - 1)) // side
        count = columns * rows
        blocks = cuda.gridDim.x * cuda.gridDim.y
        current = cuda.blockIdx.y * cuda.gridDim.x + cuda.blockIdx.x
        x0 = current // rows * side
        y0 = current % rows * side
        base = uint32(0)
        load_tile(tile, base, inp, x0, y0, nx, ny, vector, top)
        commit_copies()
        while current < count:
            wait_for_copies(0)
            cuda.syncthreads()
            current = current + blocks
            other = elements - base
            next_x0 = current // rows * side
            next_y0 = current % rows * side
            if current < count:
                load_tile(tile, other, inp, next_x0, next_y0, nx, ny, vector, top)
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
