"""transposeSmem on the CPU: naiveGmem with each block through a small buffer that stays in the L1 cache.

The cache plays shared memory's part: memory is read and written along rows, and the strided access is in the buffer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from smembench.kernels.common.grids import block_of, tile_elements, tile_width
from smembench.kernels.kernel import Kernel
from smembench.kernels.program import HostFunction
from smembench.kernels.transpose.problem import TRANSPOSE
from smembench.model.case import Case

if TYPE_CHECKING:
    from smembench.model.problem import Array


def build(case: Case) -> HostFunction:
    """Program for ``(out, inp, nx, ny)``; the buffer is by × (bx + pad)."""
    import numpy as np
    from numba import njit, prange, uint64

    bx, by = block_of(case)
    width = tile_width(case)

    @njit(parallel=True, nogil=True)
    def transpose_smem(out: Array, inp: Array, nx: int, ny: int) -> None:
        for row_of_blocks in prange((ny + by - 1) // by):
            tile = np.empty((by, width), inp.dtype)
            y0 = row_of_blocks * by
            height = min(by, ny - y0)
            for x0 in range(0, nx, bx):
                across = min(bx, nx - x0)
                for y in range(height):
                    for x in range(across):
                        tile[uint64(y), uint64(x)] = inp[uint64((y0 + y) * nx + x0 + x)]
                for x in range(across):
                    for y in range(height):
                        out[uint64((x0 + x) * ny + y0 + y)] = tile[uint64(y), uint64(x)]

    return HostFunction(transpose_smem)


KERNEL = Kernel(
    problem="transpose",
    name="transposeSmem",
    kind="cpu",
    summary="transpose through a tile buffer that stays in the L1 cache, on all cores",
    build=build,
    computes=TRANSPOSE,
    pad=False,
    tile_elements=tile_elements,
    ladder="through a tile in the cache: both sides along rows",
)
