"""globalUniform on the CPU: the stencil on all cores, each with a share of the output; coefficients from the L1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smembench.kernels.constant.problem import TAPS
from smembench.kernels.kernel import Kernel
from smembench.kernels.program import HostFunction
from smembench.model.case import Case

if TYPE_CHECKING:
    from smembench.model.problem import Array


def build(case: Case) -> HostFunction:
    """Program for ``(out, inp, coefficients, n)``: ``out[i] = Σ coefficients[j]·inp[i + j]``."""
    from numba import njit, prange, uint64

    @njit(parallel=True, nogil=True)
    def stencil(out: Array, inp: Array, coefficients: Array, n: int) -> None:
        for i in prange(n):
            total = out.dtype.type(0)
            for tap in range(TAPS):
                total += coefficients[uint64(tap)] * inp[uint64(i + tap)]
            out[uint64(i)] = total

    return HostFunction(stencil)


KERNEL = Kernel(
    problem="constant",
    name="globalUniform",
    kind="cpu",
    summary="1D stencil on all cores",
    build=build,
    blocks=False,
)
