"""interchanged: naive with its two inner loops interchanged, operands straight from memory, on all cores.

naive computes an element of C from a row of A and a column of B, whose elements lie a row apart. Here a multiple of a
row of B is added to a row of C, elements that lie beside each other: LLVM uses vector instructions. Unlike tiled, this
has no tiles.
"""

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
    def interchanged(c: Array, a: Array, b: Array, m: int, n: int, k: int, lda: int, ldb: int, ldc: int) -> None:
        for row_of_blocks in prange((m + by - 1) // by):
            y0 = row_of_blocks * by
            for x0 in range(0, n, bx):
                for row in range(y0, min(y0 + by, m)):
                    for col in range(x0, min(x0 + bx, n)):
                        c[uint64(row * ldc + col)] = 0
                    for i in range(k):
                        factor = a[uint64(row * lda + i)]
                        for col in range(x0, min(x0 + bx, n)):
                            c[uint64(row * ldc + col)] += factor * b[uint64(i * ldb + col)]

    return for_dtype(case, interchanged)


KERNEL = Kernel(
    problem="matmul",
    name="interchanged",
    kind="cpu",
    summary="naive with its inner loops interchanged: rows of B and C by vector instructions",
    build=build,
    b_layouts=(BY_ROWS, BY_COLUMNS),
    strided=True,
    standard=False,
    ladder="not tiled, inner loops interchanged: vectors of rows of B and C",
)
