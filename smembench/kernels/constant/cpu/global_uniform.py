"""globalUniform on the CPU: the stencil on all cores, each with a share of the output; coefficients from the L1."""

from __future__ import annotations

from typing import Any

from numba import njit, prange, uint64

from smembench.kernels.constant.problem import TAPS
from smembench.kernels.program import HostFunction
from smembench.kernels.registry import Kernel


@njit(parallel=True, nogil=True)
def stencil(out: Any, inp: Any, coefficients: Any, n: Any) -> None:
    """``out[i] = Σ coefficients[j]·inp[i + j]``."""
    for i in prange(n):
        total = out.dtype.type(0)
        for tap in range(TAPS):
            total += coefficients[uint64(tap)] * inp[uint64(i + tap)]
        out[uint64(i)] = total


KERNEL = Kernel(
    problem="constant",
    name="globalUniform",
    kind="cpu",
    summary="1D stencil on all cores",
    build=lambda case: HostFunction(stencil),
    blocks=False,
)
