"""transposeSmem: naiveGmem through a tile in static shared memory, so that reads and writes both go along rows.

1. The block reads rows of the input into the tile; barrier.
2. Threads are renumbered so that consecutive threads write consecutive elements of an output row.

Both global sides are coalesced. The strided access moves into shared memory, where a column of a 32-wide float32 tile
lies in one bank: a 32-way conflict on the load.

The kernel follows the slides' listing; blockDim and BDIMX × BDIMY are bx × by here. The listing tests the output's
coordinate against the input's bounds, and has its barrier inside that branch. Here each side is tested in its own
coordinates and every thread reaches the barrier, so any nx × ny works; ``smembench lesson bounds`` runs the listing.
"""

from __future__ import annotations

from smembench.kernels.common.grids import block_of, covering, tile_elements, tile_width
from smembench.kernels.kernel import Kernel
from smembench.kernels.numba_cuda import cuda, number
from smembench.kernels.program import NumbaKernel
from smembench.kernels.transpose.problem import TRANSPOSE
from smembench.kernels.types import Array, Index
from smembench.model.case import Case


def build(case: Case) -> NumbaKernel:
    """Program for ``(out, inp, nx, ny)``; the tile is by × (bx + pad)."""
    block = block_of(case)
    bx, by = block
    width = tile_width(case)
    dtype = number(case.dtype)

    def transpose_smem(out: Array, inp: Array, nx: Index, ny: Index) -> None:
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

        # thread synchronization
        cuda.syncthreads()

        # store data to global memory from shared memory, with boundary test
        if ix < ny and iy < nx:
            out[to] = tile[icol, irow]

    return NumbaKernel(transpose_smem, grid=covering(case.n, case.m, block), block=block)


KERNEL = Kernel(
    problem="transpose",
    name="transposeSmem",
    kind="cuda",
    summary="transpose through a shared tile: both global sides coalesced, bank conflicts in the tile",
    build=build,
    computes=TRANSPOSE,
    pad=False,
    tile_elements=tile_elements,
    ladder="through a shared tile: both global sides coalesced",
)
