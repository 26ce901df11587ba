"""transposeSmemUnroll: transposeSmem with two elements per thread, from a tile two blocks wide.

A block of bx × by threads handles by rows and 2·bx columns, so the grid is half as wide. A thread loads an element of
each half before it stores the first, and writes two after the barrier: twice the loads in flight, and half the barriers
and index arithmetic per element. Both global sides stay coalesced.

A row of the tile has 2·bx elements, so conflicts are at least those of transposeSmem: 32-way on both loads of a 32x32
float32 block as before, and 16-way instead of 8-way with 16x16, where the stores into the tile become 2-way.
"""

from __future__ import annotations

from smembench.kernels.common.grids import block_of, covering
from smembench.kernels.kernel import Kernel
from smembench.kernels.numba_cuda import cuda, number
from smembench.kernels.program import NumbaKernel
from smembench.kernels.transpose.problem import TRANSPOSE
from smembench.kernels.types import Array, Index
from smembench.model.case import Block, Case


def tile_width(case: Case) -> int:
    """Columns of the shared tile, two blocks and the padding."""
    return 2 * block_of(case).x + (case.pad or 0)


def tile_elements(case: Case) -> int:
    """Elements of one block's tile, padding included."""
    return block_of(case).y * tile_width(case)


def build(case: Case) -> NumbaKernel:
    """Program for ``(out, inp, nx, ny)``; the tile is by × (2·bx + pad)."""
    block = block_of(case)
    bx, by = block
    width = tile_width(case)
    dtype = number(case.dtype)

    def transpose_smem_unroll(out: Array, inp: Array, nx: Index, ny: Index) -> None:
        tile = cuda.shared.array((by, width), dtype)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        x0, y0 = cuda.blockIdx.x * (2 * bx), cuda.blockIdx.y * by

        ix, iy = x0 + tx, y0 + ty
        right = ix + bx
        if ix < nx and iy < ny:
            first = inp[iy * nx + ix]
            if right < nx:
                second = inp[iy * nx + right]
                tile[ty, tx + bx] = second
            tile[ty, tx] = first
        cuda.syncthreads()

        # Thread index in the transposed block, which is by wide and bx high; the second such block lies below.
        bidx = ty * bx + tx
        irow, icol = bidx // by, bidx % by
        ox, oy = y0 + icol, x0 + irow
        below = oy + bx
        if ox < ny and oy < nx:
            first = tile[icol, irow]
            if below < nx:
                second = tile[icol, irow + bx]
                out[below * ny + ox] = second
            out[oy * ny + ox] = first

    return NumbaKernel(transpose_smem_unroll, grid=covering(case.n, case.m, Block(2 * bx, by)), block=block)


KERNEL = Kernel(
    problem="transpose",
    name="transposeSmemUnroll",
    kind="cuda",
    summary="transposeSmem with two elements per thread, from a tile two blocks wide",
    build=build,
    computes=TRANSPOSE,
    pad=False,
    tile_elements=tile_elements,
    standard=False,
)
