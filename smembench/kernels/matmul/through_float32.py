"""Products on the CPU of matrices that its kernels do not read: of 16-bit and 8-bit types, and with B by columns.

Such matrices are converted to float32 and B to rows, and the product is rounded. The conversions are part of a launch's
time. tf32 is float32 there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from smembench.kernels.program import HostFunction
from smembench.model.case import BY_ROWS, Case
from smembench.model.formats import accumulated, carried, produced, rounded, widened

if TYPE_CHECKING:
    from smembench.model.problem import Array


def for_dtype(case: Case, function: Callable[..., Any], compiled: Callable[..., Any] | None = None) -> HostFunction:
    """The program of a case, by a function for ``(c, a, b, m, n, k, lda, ldb, ldc)`` that takes wide types alone.

    Args:
        compiled: what Numba compiles of it, where that is another function.
    """
    wide = accumulated(case.dtype)
    if (carried(case.dtype), case.b_layout) == (wide, BY_ROWS):
        return HostFunction(function, compiled)

    def converted(c: Array, a: Array, b: Array, m: int, n: int, k: int, lda: int, ldb: int, ldc: int) -> None:
        import numpy as np

        a, b = (widened(array, case.dtype, wide) for array in (a, b))
        if case.b_layout != BY_ROWS:
            transposed = np.lib.stride_tricks.as_strided(b, (k, n), (b.itemsize, ldb * b.itemsize))
            b, ldb = np.ascontiguousarray(transposed).reshape(-1), n
        total = np.empty(c.size, wide)
        function(total, a, b, m, n, k, lda, ldb, ldc)
        of_c = produced(case.dtype)
        for first in range(0, m * ldc, ldc):  # what lies between rows of a sub-matrix stays as it is
            c[first : first + n] = rounded(total[first : first + n], of_c).view(c.dtype)

    return HostFunction(converted, compiled or function)
