"""tiled: naive through shared memory; a block computes a square tile of C from square tiles of A and B.

Per step along k:

1. Each thread loads one element of A and one of B into shared memory, zeros beyond the edges.
2. Barrier.
3. Each thread adds the products of a row of A's tile and a column of B's.
4. Barrier.

The kernel follows the blog's matmul_cuda_shared line by line, and does what the second MatMulKernel of the programming
guide does ("Shared Memory"). Tile number ``t`` is the blog's blockIdx and the guide's m; ``e`` is the guide's.

Each element loaded is used ``block`` times: A is read n / block times, B m / block times. Reads of A's tile are
broadcasts and reads of B's are contiguous, so there are no bank conflicts. The tile is 16 wide as in the programming
guide or 32 as in the blog; any m × k × n works.
"""

from __future__ import annotations

from smembench.kernels.common.grids import block_of, covering, square_only
from smembench.kernels.kernel import Kernel
from smembench.kernels.numba_cuda import cuda, number
from smembench.kernels.program import NumbaKernel
from smembench.kernels.types import Array, Index
from smembench.model.case import Case
from smembench.model.formats import WIDE


def build(case: Case) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)``; the block is square and as wide as the tile."""
    block = block_of(case)
    tile = block.x
    dtype = number(case.dtype)
    zero = dtype(0)

    def tiled(c: Array, a: Array, b: Array, m: Index, n: Index, k: Index, lda: Index, ldb: Index, ldc: Index) -> None:
        a_sub = cuda.shared.array((tile, tile), dtype)
        b_sub = cuda.shared.array((tile, tile), dtype)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        row = cuda.blockIdx.y * tile + ty
        col = cuda.blockIdx.x * tile + tx
        total = zero
        for t in range((k + tile - 1) // tile):
            if row < m and t * tile + tx < k:
                a_sub[ty, tx] = a[row * lda + t * tile + tx]
            else:
                a_sub[ty, tx] = zero
            if col < n and t * tile + ty < k:
                b_sub[ty, tx] = b[(t * tile + ty) * ldb + col]
            else:
                b_sub[ty, tx] = zero
            cuda.syncthreads()
            for e in range(tile):
                total += a_sub[ty, e] * b_sub[e, tx]
            cuda.syncthreads()
        if row < m and col < n:
            c[row * ldc + col] = total

    return NumbaKernel(tiled, grid=covering(case.n, case.m, block), block=block)


def tile_elements(case: Case) -> int:
    """Two square tiles."""
    return 2 * block_of(case).x ** 2


KERNEL = Kernel(
    problem="matmul",
    name="tiled",
    kind="cuda",
    summary="square tiles of A and B in shared memory, each element used as often as the block is wide",
    build=build,
    dtypes=WIDE,
    tile_elements=tile_elements,
    unsupported=square_only,
    strided=True,
    ladder="square tiles in shared memory: a block loads each element once",
)
