"""sumLoop: one CPU thread adds one element after the other.

Numba keeps the order of float additions, as a C compiler does without -ffast-math, so each waits for the one before.
"""

from __future__ import annotations

from smembench.kernels.kernel import Kernel
from smembench.kernels.program import HostFunction
from smembench.kernels.reduction.problem import SUM
from smembench.kernels.types import Array, Index
from smembench.model.case import Case


def build(case: Case) -> HostFunction:
    """Program for ``(out, inp, n)``."""
    from numba import njit, uint64

    @njit(nogil=True)
    def sum_loop(out: Array, inp: Array, n: Index) -> None:
        total = inp[0]
        for i in range(1, n):
            total += inp[uint64(i)]
        out[0] = total

    return HostFunction(sum_loop)


KERNEL = Kernel(
    problem="reduction",
    name="sumLoop",
    kind="cpu",
    summary="the plain loop on one CPU thread",
    build=build,
    computes=SUM,
    blocks=False,
)
