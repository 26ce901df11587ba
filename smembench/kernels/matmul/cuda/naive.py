"""naive: each thread computes one element of C from a row of A and a column of B in global memory.

The kernel follows MatMulKernel of the programming guide ("Shared Memory", the first listing) and the blog's
matmul_cuda_naive; only the loop is written differently. Per step a warp reads one element of A, a broadcast, and
consecutive elements of a row of B. A is read n times in all, B m times. Findings: results/reference/notes/naive.md.
"""

from __future__ import annotations

from smembench.kernels.common.grids import block_of, covering
from smembench.kernels.kernel import Kernel
from smembench.kernels.numba_cuda import cuda, number, uint64
from smembench.kernels.program import NumbaKernel
from smembench.kernels.types import Array, Index
from smembench.model.case import Case
from smembench.model.formats import WIDE


def build(case: Case) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)``."""
    block = block_of(case)
    bx, by = block
    zero = number(case.dtype)(0)

    def naive(c: Array, a: Array, b: Array, m: Index, n: Index, k: Index, lda: Index, ldb: Index, ldc: Index) -> None:
        row = cuda.blockIdx.y * by + cuda.threadIdx.y
        col = cuda.blockIdx.x * bx + cuda.threadIdx.x
        if row < m and col < n:
            total = zero
            # for e in range(k): total += a[row * lda + e] * b[e * ldb + col]
            # Two 64-bit indices that only grow: NVVM turns them into pointers. != is faster than <: see the notes.
            in_a, in_b = uint64(row * lda), uint64(col)
            end = in_a + k
            while in_a != end:
                total += a[in_a] * b[in_b]
                in_a += 1
                in_b += ldb
            c[row * ldc + col] = total

    return NumbaKernel(naive, grid=covering(case.n, case.m, block), block=block)


KERNEL = Kernel(
    problem="matmul",
    name="naive",
    kind="cuda",
    summary="one thread per element of C, operands straight from global memory",
    build=build,
    dtypes=WIDE,
    strided=True,
    ladder="one thread per element of C, all operands from global memory",
)
