"""transposeCoarsened: transposeSmemPad with several rows per thread, from a square tile as wide as the block.

A block of bx × by threads handles a tile of bx × bx elements, so each thread loads bx / by of them before the barrier
and stores as many after it.

It hides latency: a thread's loads do not depend on each other, so all of them are in flight at once. One barrier, and
the index arithmetic before it, serve bx / by elements per thread instead of one. Findings:
results/reference/notes/transpose_coarsened.md.
"""

from __future__ import annotations

from smembench.kernels.common.grids import block_of, covering
from smembench.kernels.kernel import Kernel
from smembench.kernels.numba_cuda import cuda, number
from smembench.kernels.program import NumbaKernel
from smembench.kernels.transpose.problem import TRANSPOSE
from smembench.kernels.transpose.tile_geometry import rows_fit
from smembench.kernels.types import Array, Index
from smembench.model.case import Block, Case


def build(case: Case) -> NumbaKernel:
    """Program for ``(out, inp, nx, ny)``; the tile is bx × (bx + pad)."""
    block = block_of(case)
    side, by = block
    width = side + (case.pad or 0)
    dtype = number(case.dtype)

    def transpose_coarsened(out: Array, inp: Array, nx: Index, ny: Index) -> None:
        tile = cuda.shared.array((side, width), dtype)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        x0, y0 = cuda.blockIdx.x * side, cuda.blockIdx.y * side

        ix = x0 + tx
        for first in range(0, side, by):
            row = ty + first
            iy = y0 + row
            if ix < nx and iy < ny:
                tile[row, tx] = inp[iy * nx + ix]
        cuda.syncthreads()

        ox = y0 + tx
        for first in range(0, side, by):
            row = ty + first
            oy = x0 + row
            if ox < ny and oy < nx:
                out[oy * ny + ox] = tile[tx, row]

    return NumbaKernel(transpose_coarsened, grid=covering(case.n, case.m, Block(side, side)), block=block)


def tile_elements(case: Case) -> int:
    """Elements of a tile as high as the block is wide, padding included."""
    side = block_of(case).x
    return side * (side + (case.pad or 0))


KERNEL = Kernel(
    problem="transpose",
    name="transposeCoarsened",
    kind="cuda",
    summary="transposeSmemPad with several rows per thread, from a square tile as wide as the block",
    build=build,
    computes=TRANSPOSE,
    results=(1, 8),
    default_blocks=(Block(32, 8), Block(32, 4)),
    pad=True,
    tile_elements=tile_elements,
    unsupported=rows_fit,
    standard=False,
    ladder="several rows per thread: more loads in flight",
)
