"""transposeSmem: naiveGmem through a static shared tile, rows in and rows out.

1. The block reads rows of the input into the tile; barrier.
2. Threads are renumbered so that consecutive threads write consecutive elements of an output row.

Both global sides are coalesced. The strided access moves into shared memory, where a column of a 32-wide float32 tile
lies in one bank: a 32-way conflict on the load.

The documents' kernel tests the output coordinate against the input's bounds and waits at the barrier inside that
branch. Here each side is tested in its own coordinates and every thread reaches the barrier, so any nx × ny works.
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
    """Program for ``(out, inp, nx, ny)``; the tile is by × (bx + pad)."""
    block = block_of(case)
    bx, by = block
    width = tile_width(case)
    dtype = number(case.dtype)

    def transpose_smem(out: Any, inp: Any, nx: Any, ny: Any) -> None:
        tile = cuda.shared.array((by, width), dtype)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        x0, y0 = cuda.blockIdx.x * bx, cuda.blockIdx.y * by

        ix, iy = x0 + tx, y0 + ty
        if ix < nx and iy < ny:
            tile[ty, tx] = inp[iy * nx + ix]
        cuda.syncthreads()

        # Thread index in the transposed block, which is by wide and bx high.
        bidx = ty * bx + tx
        irow, icol = bidx // by, bidx % by
        ox, oy = y0 + icol, x0 + irow
        if ox < ny and oy < nx:
            out[oy * ny + ox] = tile[icol, irow]

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
