"""naive: each thread computes one element of C from a row of A and a column of B in global memory.

A is read n times and B m times over. A warp reads one element of A (a broadcast) and a contiguous piece of B's
row at each step.
"""

from __future__ import annotations

from typing import Any

from smembench.case import Case
from smembench.cuda_api import cuda, number, uint32
from smembench.kernels.grids import block_of, covering
from smembench.kernels.registry import Kernel, Program


def build(case: Case) -> Program:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)``."""
    block = block_of(case)
    bx, by = block
    zero = number(case.dtype)(0)

    def naive(c: Any, a: Any, b: Any, m: Any, n: Any, k: Any, lda: Any, ldb: Any, ldc: Any) -> None:
        col = uint32(uint32(cuda.blockIdx.x) * uint32(bx) + uint32(cuda.threadIdx.x))
        row = uint32(uint32(cuda.blockIdx.y) * uint32(by) + uint32(cuda.threadIdx.y))
        if row < m and col < n:
            total = zero
            i = uint32(0)
            # The textbook's loop, and CUDA C's in machine code. Two things keep it so: while, since Numba's range takes
            # twice the instructions a step and more; and B before A, since with A first NVVM keeps four offsets into A
            # where one would do, and ptxas sends half of the loads of four steps only after the first multiply-add.
            while i < k:
                total += b[uint32(i * ldb + col)] * a[uint32(row * lda + i)]
                i = uint32(i + uint32(1))
            c[uint32(row * ldc + col)] = total

    return Program(naive, covering(case.n, case.m, block), block)


KERNEL = Kernel(
    problem="matmul",
    name="naive",
    kind="cuda",
    step=20,
    summary="a thread an element of C, operands straight from global memory",
    build=build,
    strided=True,
    ladder="a thread an element of C, all operands from global memory",
)
