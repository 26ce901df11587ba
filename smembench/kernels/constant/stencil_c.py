"""The stencil in CUDA C, for coefficients in any memory."""

from __future__ import annotations

from smembench.kernels.common.cuda_c import port
from smembench.kernels.common.grids import threads_of
from smembench.kernels.constant.problem import RADIUS, TAPS
from smembench.kernels.kernel import Kernel
from smembench.model.case import Case

_SOURCE = """
extern "C" __global__ void NAME(T *out, const T *in, const T *given, unsigned n)
{
    __shared__ T tile[THREADS + 2 * RADIUS];

    unsigned t = threadIdx.y * BX + threadIdx.x;
    unsigned i = blockIdx.x * THREADS + t, end = n + 2 * RADIUS;
    if (i < end)
        tile[t] = in[i];
    if (t < 2 * RADIUS && i + THREADS < end)
        tile[t + THREADS] = in[i + THREADS];
    TABLE
    __syncthreads();

    if (i < n) {
        T total = 0;
        unsigned tap = TAPS - t / LANES % TAPS;
        for (unsigned step = 0; step < TAPS; ++step, ++tap) {
            if (tap == TAPS)
                tap = 0;
            total += coefficients[tap] * tile[t + tap];
        }
        out[i] = total;
    }
}
"""


def stencil_port(kernel: Kernel, lanes: int, *, table: str = "", declared: str = "") -> Kernel:
    """The CUDA C port of a stencil kernel.

    Args:
        kernel: the Numba kernel.
        lanes: neighbouring lanes that begin with the same tap.
        table: CUDA C in the kernel that makes ``coefficients`` of the argument ``given``, by thread ``t``.
        declared: CUDA C before the kernel.
    """

    def constants(case: Case) -> dict[str, int]:
        return {"THREADS": threads_of(case), "RADIUS": RADIUS, "TAPS": TAPS, "LANES": lanes}

    return port(kernel, declared + _SOURCE.replace("NAME", kernel.name).replace("TABLE", table), constants)
