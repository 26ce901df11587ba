"""tiledHalf: tiled for 16-bit elements, without tensor cores.

Tiles have 16-bit elements, so twice as many per byte. They are converted to float32 to be multiplied and added up, and
each result is rounded once at the end.
"""

from __future__ import annotations

from dataclasses import replace

from smembench.kernels.common.grids import block_of, covering
from smembench.kernels.intrinsics.halves import narrowed, widened
from smembench.kernels.matmul.cuda import tiled
from smembench.kernels.numba_cuda import cuda, number
from smembench.kernels.program import NumbaKernel
from smembench.kernels.types import Array, Index
from smembench.model.case import Case
from smembench.model.formats import HALVES


def build(case: Case) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)``."""
    block = block_of(case)
    tile = block.x
    dtype = number(case.dtype)
    zero = number("float32")(0)
    widen, narrow = widened(case.dtype), narrowed(case.dtype)

    def tiled_half(
        c: Array, a: Array, b: Array, m: Index, n: Index, k: Index, lda: Index, ldb: Index, ldc: Index
    ) -> None:
        a_sub = cuda.shared.array((tile, tile), dtype)
        b_sub = cuda.shared.array((tile, tile), dtype)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        row, col = cuda.blockIdx.y * tile + ty, cuda.blockIdx.x * tile + tx
        tiles = (k + (tile - 1)) // tile
        total = zero
        for t in range(tiles):
            if row < m and t * tile + tx < k:
                a_sub[ty, tx] = a[row * lda + t * tile + tx]
            else:
                a_sub[ty, tx] = narrow(zero)
            if col < n and t * tile + ty < k:
                b_sub[ty, tx] = b[(t * tile + ty) * ldb + col]
            else:
                b_sub[ty, tx] = narrow(zero)
            cuda.syncthreads()
            for e in range(tile):
                total += widen(a_sub[ty, e]) * widen(b_sub[e, tx])
            cuda.syncthreads()
        if row < m and col < n:
            c[row * ldc + col] = narrow(total)

    return NumbaKernel(tiled_half, grid=covering(case.n, case.m, block), block=block)


KERNEL = replace(
    tiled.KERNEL,
    name="tiledHalf",
    summary="tiled for 16-bit elements, multiplied and added up in float32",
    build=build,
    dtypes=HALVES,
    ladder="elements of 16 bits",
)
