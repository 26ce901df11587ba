"""Products of 16-bit types on the CPU: converted to float32, multiplied, and rounded.

Numba computes with neither type there. The conversions are part of a launch's time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from smembench.kernels.program import HostFunction
from smembench.model.case import Case
from smembench.model.formats import HALVES, rounded, widened

if TYPE_CHECKING:
    from smembench.model.problem import Array


def for_dtype(case: Case, function: Callable[..., Any]) -> HostFunction:
    """The program of a case, by a function for ``(c, a, b, m, n, k, lda, ldb, ldc)`` that computes in float32 too."""
    if case.dtype not in HALVES:
        return HostFunction(function)

    def through_float32(c: Array, a: Array, b: Array, m: int, n: int, *others: int) -> None:
        import numpy as np

        wide = np.empty(c.size, np.float32)
        function(wide, *(widened(array, case.dtype, "float32") for array in (a, b)), m, n, *others)
        ldc = others[-1]
        for first in range(0, m * ldc, ldc):  # what lies between rows of a sub-matrix stays as it is
            c[first : first + n] = rounded(wide[first : first + n], case.dtype).view(c.dtype)

    return HostFunction(through_float32)
