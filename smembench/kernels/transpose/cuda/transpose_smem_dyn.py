"""transposeSmemDyn: transposeSmem with its tile in dynamic shared memory.

The kernel declares an array without a size, and the launch gives its bytes. The array has one dimension, so the kernel
computes row · width + column itself. Accesses are transposeSmem's. The width is a constant of the compiled kernel here
too, so the instructions are nearly the same and the times should be.
"""

from __future__ import annotations

from typing import Any

from smembench.kernels.common.grids import block_of, covering, tile_elements, tile_width
from smembench.kernels.numba_cuda import cuda, number
from smembench.kernels.program import NumbaKernel
from smembench.kernels.registry import Kernel
from smembench.kernels.transpose.problem import TRANSPOSE
from smembench.model.case import Case
from smembench.model.problem import ITEMSIZE


def build(case: Case) -> NumbaKernel:
    """Program for ``(out, inp, nx, ny)``; the launch gives the tile by · (bx + pad) elements."""
    block = block_of(case)
    bx, by = block
    width = tile_width(case)
    dtype = number(case.dtype)

    def transpose_smem_dyn(out: Any, inp: Any, nx: Any, ny: Any) -> None:
        tile = cuda.shared.array(0, dtype)
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        x0 = cuda.blockIdx.x * bx
        y0 = cuda.blockIdx.y * by

        ix = x0 + tx
        iy = y0 + ty
        if ix < nx and iy < ny:
            tile[ty * width + tx] = inp[iy * nx + ix]
        cuda.syncthreads()

        # Thread index in the transposed block, which is by wide and bx high.
        bidx = ty * bx + tx
        irow = bidx // by
        icol = bidx % by
        ox = y0 + icol
        oy = x0 + irow
        if ox < ny and oy < nx:
            out[oy * ny + ox] = tile[icol * width + irow]

    dynamic_bytes = tile_elements(case) * ITEMSIZE[case.dtype]
    return NumbaKernel(
        transpose_smem_dyn, grid=covering(case.n, case.m, block), block=block, dynamic_bytes=dynamic_bytes
    )


KERNEL = Kernel(
    problem="transpose",
    name="transposeSmemDyn",
    kind="cuda",
    summary="transposeSmem in dynamic shared memory, whose size the launch gives",
    build=build,
    computes=TRANSPOSE,
    pad=False,
    tile_elements=tile_elements,
    standard=False,
)
