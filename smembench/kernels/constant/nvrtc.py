"""The stencils in CUDA C, by where the coefficients lie.

cudaMemcpyToSymbol knows only the symbols of a host program that nvcc compiled. In its place the device copies to the
address that the driver gives for the name of the ``__constant__`` array.
"""

from __future__ import annotations

from functools import partial

from smembench.kernels.common.cuda_c import port
from smembench.kernels.common.grids import threads_of
from smembench.kernels.constant import cuda
from smembench.kernels.constant.problem import RADIUS, TAPS
from smembench.kernels.constant.stencil import DIVERGING, UNIFORM
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
_DECLARED = {"constant": "__constant__ T coefficients[TAPS];\n"}
"""CUDA C before the kernel, by memory."""
_TABLE = {
    "global": "const T *coefficients = given;",
    "shared": """__shared__ T coefficients[TAPS];
    if (t < TAPS)
        coefficients[t] = given[t];""",
}
"""CUDA C in the kernel that makes ``coefficients`` of the argument ``given``, by thread ``t``; by memory."""


def _constants(case: Case, lanes: int) -> dict[str, int]:
    return {"THREADS": threads_of(case), "RADIUS": RADIUS, "TAPS": TAPS, "LANES": lanes}


def _port(kernel: Kernel) -> Kernel:
    uniform = kernel.name.endswith("Uniform")
    memory = kernel.name.removesuffix("Uniform").removesuffix("Diverging")
    source = _SOURCE.replace("NAME", kernel.name).replace("TABLE", _TABLE.get(memory, ""))
    constants = partial(_constants, lanes=UNIFORM if uniform else DIVERGING)
    return port(kernel, _DECLARED.get(memory, "") + source, constants)


KERNELS = tuple(map(_port, cuda.KERNELS))
