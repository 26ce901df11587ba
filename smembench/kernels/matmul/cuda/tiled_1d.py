"""tiled1D: tiled with a column of 8 results per thread, so that each element of B serves 8 multiplications.

A block of bx × by threads computes 8·by rows and bx columns of C, from 8 columns of A and 8 rows of B per step. The 8
rows of a thread are by apart.

It relieves shared memory, which serves one warp's load per clock while an SM can do four warps' multiplications. tiled
loads two elements per multiplication; here nine loads serve eight. Reads of A are broadcasts and reads of B contiguous:
no bank conflicts. Predictions: results/reference/notes/tiled_1d.md.
"""

from __future__ import annotations

from smembench.kernels.common.grids import block_of, ceil_div, covering
from smembench.kernels.kernel import Kernel
from smembench.kernels.matmul.tiled_kernel import results_fit
from smembench.kernels.numba_cuda import cuda, number, uint32, uint64
from smembench.kernels.program import NumbaKernel
from smembench.kernels.types import Array, Index
from smembench.model.case import Block, Case
from smembench.model.formats import WIDE

DEPTH = 8
DOWN = 8


def program(case: Case, across: int) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)``, a thread computing 8 rows of ``across`` columns."""
    block = block_of(case)
    bx, by = block
    threads, rows, columns = bx * by, DOWN * by, across * bx
    a_elements, b_elements = rows * DEPTH, DEPTH * columns
    a_share, b_share = ceil_div(a_elements, threads), ceil_div(b_elements, threads)
    dtype = number(case.dtype)
    zero = dtype(0)

    def tiled(c: Array, a: Array, b: Array, m: Index, n: Index, k: Index, lda: Index, ldb: Index, ldc: Index) -> None:
        a_tile = cuda.shared.array((rows, DEPTH), dtype)
        b_tile = cuda.shared.array((DEPTH, columns), dtype)
        accumulators = cuda.local.array((DOWN, across), dtype)
        a_fragment = cuda.local.array(DOWN, dtype)
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        thread = ty * bx + tx
        row0 = cuda.blockIdx.y * rows
        col0 = cuda.blockIdx.x * columns
        for i in range(DOWN):
            for j in range(across):
                accumulators[i, j] = zero
        k0 = uint32(0)
        while k0 < k:
            for i in range(a_share):
                at = thread + i * threads
                if at < a_elements:
                    row, col = at // DEPTH, at % DEPTH
                    if row0 + row < m and k0 + col < k:
                        a_tile[row, col] = a[(row0 + row) * lda + k0 + col]
                    else:
                        a_tile[row, col] = zero
            for i in range(b_share):
                at = thread + i * threads
                if at < b_elements:
                    row, col = at // columns, at % columns
                    if k0 + row < k and col0 + col < n:
                        b_tile[row, col] = b[(k0 + row) * ldb + col0 + col]
                    else:
                        b_tile[row, col] = zero
            cuda.syncthreads()
            for e in range(DEPTH):
                for i in range(DOWN):
                    a_fragment[i] = a_tile[ty + i * by, uint32(e)]
                for j in range(across):
                    factor = b_tile[uint32(e), tx + j * bx]
                    for i in range(DOWN):
                        accumulators[i, j] += a_fragment[i] * factor
            cuda.syncthreads()
            k0 = k0 + DEPTH
        for i in range(DOWN):
            row = uint32(uint64(row0) + ty + i * by)
            for j in range(across):
                col = uint32(uint64(col0) + tx + j * bx)
                if row < m and col < n:
                    c[uint32(uint64(row) * ldc + col)] = accumulators[i, j]

    # The bounds keep the registers per thread so few that every block that results_fit accepts can be launched.
    return NumbaKernel(
        tiled, grid=covering(case.n, case.m, Block(columns, rows)), block=block, launch_bounds=(threads, 1)
    )


def build(case: Case) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)``."""
    return program(case, across=1)


def tile_elements(case: Case) -> int:
    """8 columns of A and 8 rows of B."""
    block = block_of(case)
    return DEPTH * (DOWN * block.y + block.x)


def unsupported(case: Case) -> str | None:
    """The refusal of a block whose threads' results do not fit in registers, or None."""
    return results_fit(case.kernel, block_of(case), case.dtype, DOWN, 1)


KERNEL = Kernel(
    problem="matmul",
    name="tiled1D",
    kind="cuda",
    summary="tiled, with a column of 8 results per thread",
    build=build,
    results=(1, DOWN),
    default_blocks=(Block(64, 8),),
    tile_elements=tile_elements,
    dtypes=WIDE,
    unsupported=unsupported,
    strided=True,
    standard=False,
    ladder="8 results per thread",
)
