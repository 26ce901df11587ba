"""Kernels that timing needs: an empty one, one that takes a few µs, and one that flushes the L2."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Literal

import numpy as np

from smembench.kernels.program import CudaCKernel
from smembench.toolchains.loaded import Loaded
from smembench.toolchains.nvrtc import compiled

Helper = Literal["empty", "busy", "read_all"]
"""All the time of ``empty`` is its launch. ``busy`` multiplies dependent numbers for the given rounds; ``read_all``
reads the given count of numbers, so that the L2 has only their lines, which are clean. Both get a buffer of zeros,
which they leave as it is: what they compute of zeros never exceeds 1, but the compiler does not know that."""

SOURCE = """
extern "C" __global__ void empty() {}

extern "C" __global__ void busy(float *buffer, unsigned rounds)
{
    float total = buffer[0];
    #pragma unroll 1
    for (unsigned i = 0; i < rounds; ++i)
        total = total * total;
    if (total > 1)
        buffer[0] = total;
}

extern "C" __global__ void read_all(float *buffer, unsigned count)
{
    float total = buffer[0];
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        total += buffer[i];
    if (total > 1)
        buffer[0] = total;
}
"""


def launcher(
    helper: Helper, capability: str, stream: int, scalars: Sequence[np.uint32] = (), *, grid: int, block: int
) -> Callable[..., Any]:
    """A function of the helper's buffer, if it has one, that enqueues a launch with these scalars."""
    program = CudaCKernel(SOURCE, helper, grid=(grid, 1), block=(block, 1))
    kernel: Loaded[CudaCKernel] = Loaded(_compiled(capability), helper)
    return kernel.launcher(program, stream, scalars)


@cache
def _compiled(capability: str) -> Any:
    return compiled(CudaCKernel(SOURCE, "", grid=(1, 1), block=(1, 1)), capability)
