"""naive on the CPU: the triple loop over blocks of C on all cores, operands straight from memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smembench.kernels.common.grids import block_of
from smembench.kernels.kernel import Kernel
from smembench.kernels.matmul.through_float32 import for_dtype
from smembench.kernels.program import HostFunction
from smembench.model.case import BY_COLUMNS, BY_ROWS, Case

if TYPE_CHECKING:
    from smembench.model.problem import Array


def build(case: Case) -> HostFunction:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)``."""
    from numba import njit, prange, uint64

    bx, by = block_of(case)

    @njit(parallel=True, nogil=True)
    def naive(c: Array, a: Array, b: Array, m: int, n: int, k: int, lda: int, ldb: int, ldc: int) -> None:
        for row_of_blocks in prange((m + by - 1) // by):
            y0 = row_of_blocks * by
            for x0 in range(0, n, bx):
                for row in range(y0, min(y0 + by, m)):
                    for col in range(x0, min(x0 + bx, n)):
                        total = c.dtype.type(0)
                        for i in range(k):
                            total += a[uint64(row * lda + i)] * b[uint64(i * ldb + col)]
                        c[uint64(row * ldc + col)] = total

    return for_dtype(case, naive)


KERNEL = Kernel(
    problem="matmul",
    name="naive",
    kind="cpu",
    summary="the triple loop over blocks of C on all cores",
    build=build,
    b_layouts=(BY_ROWS, BY_COLUMNS),
    strided=True,
    ladder="blocks of C on all cores, operands straight from memory",
)
