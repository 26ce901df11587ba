"""cpu: the triple loop of the blog on one thread, the baseline of its speed-ups; ``e`` is its k."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smembench.kernels.kernel import Kernel
from smembench.kernels.matmul.through_float32 import for_dtype
from smembench.kernels.program import HostFunction
from smembench.model.case import BY_COLUMNS, BY_ROWS, Case

if TYPE_CHECKING:
    from smembench.model.problem import Array


def build(case: Case) -> HostFunction:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)``: a dot product of a row and a strided column at a time."""
    from numba import njit, uint64

    @njit(nogil=True)
    def triple_loop(c: Array, a: Array, b: Array, m: int, n: int, k: int, lda: int, ldb: int, ldc: int) -> None:
        for i in range(m):
            for j in range(n):
                total = c.dtype.type(0)
                for e in range(k):
                    total += a[uint64(i * lda + e)] * b[uint64(e * ldb + j)]
                c[uint64(i * ldc + j)] = total

    return for_dtype(case, triple_loop)


KERNEL = Kernel(
    problem="matmul",
    name="cpu",
    kind="cpu",
    summary="the triple loop on one CPU thread, the documents' baseline",
    build=build,
    b_layouts=(BY_ROWS, BY_COLUMNS),
    blocks=False,
    strided=True,
)
