"""naive: each thread computes one element of C from a row of A and a column of B in global memory.

Per step a warp reads one element of A, a broadcast, and consecutive elements of a row of B. A is read n times in all, B
m times. Findings: results/reference/notes/naive.md.
"""

from __future__ import annotations

from smembench.kernels.common.grids import block_of, covering
from smembench.kernels.numba_cuda import cuda, number, uint64
from smembench.kernels.program import NumbaKernel
from smembench.kernels.registry import Kernel
from smembench.kernels.types import Array, Index
from smembench.model.case import Case


def build(case: Case) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)``."""
    block = block_of(case)
    bx, by = block
    zero = number(case.dtype)(0)

    def naive(c: Array, a: Array, b: Array, m: Index, n: Index, k: Index, lda: Index, ldb: Index, ldc: Index) -> None:
        col = cuda.blockIdx.x * bx + cuda.threadIdx.x
        row = cuda.blockIdx.y * by + cuda.threadIdx.y
        if row < m and col < n:
            total = zero
            # Growing 64-bit offsets: NVVM turns them into pointers with constant steps, where 32-bit ones cost an
            # address per load. Numba's range over a run-time bound does not unroll. != is faster than <: see the notes.
            ia = uint64(row * lda)
            end = ia + uint64(k)
            ib = uint64(col)
            step = uint64(ldb)
            while ia != end:
                total += a[ia] * b[ib]
                ia = ia + 1
                ib = ib + step
            c[row * ldc + col] = total

    return NumbaKernel(naive, grid=covering(case.n, case.m, block), block=block)


KERNEL = Kernel(
    problem="matmul",
    name="naive",
    kind="cuda",
    summary="a thread an element of C, operands straight from global memory",
    build=build,
    strided=True,
    ladder="a thread an element of C, all operands from global memory",
)
