"""transposeSmem without its barrier: a warp reads columns of the tile that other warps may not have written yet.

A block of one warp gives right results, since the warp's lanes run in step. With several warps there is a race: the
result depends on which warp comes first.
"""

from __future__ import annotations

from typing import Any

from smembench.kernels.common.grids import block_of, covering, tile_elements, tile_width
from smembench.kernels.numba_cuda import cuda, number
from smembench.kernels.program import NumbaKernel
from smembench.kernels.registry import Kernel
from smembench.kernels.transpose.problem import TRANSPOSE
from smembench.model.case import Case


def build(case: Case) -> NumbaKernel:
    """Program for ``(out, inp, nx, ny)``; compare with transposeSmem."""
    block = block_of(case)
    bx, by = block
    width = tile_width(case)
    dtype = number(case.dtype)

    def without_barrier(out: Any, inp: Any, nx: Any, ny: Any) -> None:
        tile = cuda.shared.array((by, width), dtype)
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        x0 = cuda.blockIdx.x * bx
        y0 = cuda.blockIdx.y * by
        ix = x0 + tx
        iy = y0 + ty
        if ix < nx and iy < ny:
            tile[ty, tx] = inp[iy * nx + ix]
        # Here transposeSmem waits for the whole block: cuda.syncthreads()
        bidx = ty * bx + tx
        irow = bidx // by
        icol = bidx % by
        ox = y0 + icol
        oy = x0 + irow
        if ox < ny and oy < nx:
            out[oy * ny + ox] = tile[icol, irow]

    return NumbaKernel(without_barrier, grid=covering(case.n, case.m, block), block=block)


KERNEL = Kernel(
    problem="transpose",
    name="transposeSmemNoBarrier",
    kind="cuda",
    summary="transposeSmem without __syncthreads: a race that verification catches",
    build=build,
    computes=TRANSPOSE,
    pad=False,
    tile_elements=tile_elements,
    standard=False,
)
