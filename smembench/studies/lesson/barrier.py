"""transposeSmem without its barrier: a warp reads columns of the tile that other warps may not have written yet.

A block of one warp gives right results, since the warp's lanes run in step. With several warps there is a race: the
result depends on which warp comes first.
"""

from __future__ import annotations

from smembench.kernels.common.grids import block_of, covering, tile_elements, tile_width
from smembench.kernels.numba_cuda import cuda, number
from smembench.kernels.program import NumbaKernel
from smembench.kernels.registry import Kernel
from smembench.kernels.transpose.problem import TRANSPOSE
from smembench.kernels.types import Array, Index
from smembench.model.case import Case


def build(case: Case) -> NumbaKernel:
    """Program for ``(out, inp, nx, ny)``; compare with transposeSmem."""
    block = block_of(case)
    bx, by = block
    width = tile_width(case)
    dtype = number(case.dtype)

    def without_barrier(out: Array, inp: Array, nx: Index, ny: Index) -> None:
        # static shared memory
        tile = cuda.shared.array((by, width), dtype)
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
            tile[ty, tx] = inp[ti]

        # here transposeSmem waits for the whole block: cuda.syncthreads()

        # store data to global memory from shared memory, with boundary test
        if ix < ny and iy < nx:
            out[to] = tile[icol, irow]

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
