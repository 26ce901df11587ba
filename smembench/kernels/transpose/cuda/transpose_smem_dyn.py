"""transposeSmemDyn: transposeSmem with its tile in dynamic shared memory.

The kernel declares an array without a size, and the launch gives its bytes. The array has one dimension, so the kernel
computes row · width + column itself. Accesses are those of transposeSmem. The width is a constant of the compiled
kernel here too, so the instructions are nearly the same, and the times should be.
"""

from __future__ import annotations

from smembench.kernels.common.grids import block_of, covering, tile_elements, tile_width
from smembench.kernels.kernel import Kernel
from smembench.kernels.numba_cuda import cuda, number
from smembench.kernels.program import NumbaKernel
from smembench.kernels.transpose.problem import TRANSPOSE
from smembench.kernels.types import Array, Index
from smembench.model.case import Case
from smembench.model.problem import ITEMSIZE


def build(case: Case) -> NumbaKernel:
    """Program for ``(out, inp, nx, ny)``; the launch gives the tile by · (bx + pad) elements."""
    block = block_of(case)
    bx, by = block
    width = tile_width(case)
    dtype = number(case.dtype)

    def transpose_smem_dyn(out: Array, inp: Array, nx: Index, ny: Index) -> None:
        # dynamic shared memory
        tile = cuda.shared.array(0, dtype)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y

        # coordinate in original matrix
        ix = cuda.blockIdx.x * bx + tx
        iy = cuda.blockIdx.y * by + ty
        inside = ix < nx and iy < ny

        # linear global memory index for original matrix
        ti = iy * nx + ix

        # thread index in transposed block
        bidx = ty * bx + tx
        irow = bidx // by
        icol = bidx % by

        # coordinate in transposed matrix
        ix = cuda.blockIdx.y * by + icol
        iy = cuda.blockIdx.x * bx + irow

        # linear global memory index for transposed matrix
        to = iy * ny + ix

        # load data from global memory to shared memory, with boundary test
        if inside:
            tile[ty * width + tx] = inp[ti]

        # thread synchronization
        cuda.syncthreads()

        # store data to global memory from shared memory, with boundary test
        if ix < ny and iy < nx:
            out[to] = tile[icol * width + irow]

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
    dynamic_elements=tile_elements,
    standard=False,
)
