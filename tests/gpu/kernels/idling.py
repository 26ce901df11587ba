"""A copy, a transpose and a chain of loads that idle at their end, on one GPU.

With SMEMBENCH_IDLING=cuda:1=3 they take 3 % longer on cuda:1. All blocks of a launch run at once, and each thread idles
in proportion to its own time, so the launch takes so many percent longer.
"""

from __future__ import annotations

import os
from functools import partial

from smembench.kernels.kernel import Kernel
from smembench.kernels.numba_cuda import uint32
from smembench.kernels.program import CudaCKernel, NumbaKernel
from smembench.kernels.types import Array, Index
from smembench.model.case import Case

DEVICE, _, PERCENT = os.environ.get("SMEMBENCH_IDLING", "=0").rpartition("=")
SIDE, DOWN = 32, 8
"""Of a tile, and rows of it that threads copy at a time."""
BLOCKS = 4
"""Per multiprocessor."""

_SOURCE = """
// In memory, so that a kernel that idles and one that does not have the same machine code.
__device__ volatile unsigned permille = PERMILLE;

__device__ void idle(long long begin)
{
    long long end = clock64();
    end += (end - begin) * permille / 1000;
    while (clock64() < end);
}

extern "C" __global__ void idlingCopy(float *out, const float *in, unsigned nx, unsigned ny)
{
    long long begin = clock64();
    unsigned thread = threadIdx.y * SIDE + threadIdx.x, step = gridDim.x * SIDE * DOWN;
    for (unsigned i = blockIdx.x * SIDE * DOWN + thread; i < nx * ny; i += step)
        out[i] = in[i];
    idle(begin);
}

extern "C" __global__ void idlingTranspose(float *out, const float *in, unsigned nx, unsigned ny)
{
    __shared__ float tile[SIDE][SIDE + 1];
    long long begin = clock64();
    unsigned across = (nx + SIDE - 1) / SIDE, tiles = across * ((ny + SIDE - 1) / SIDE);
    for (unsigned t = blockIdx.x; t < tiles; t += gridDim.x) {
        unsigned x = t % across * SIDE, y = t / across * SIDE;
        for (unsigned j = threadIdx.y; j < SIDE; j += DOWN)
            if (x + threadIdx.x < nx && y + j < ny)
                tile[j][threadIdx.x] = in[(y + j) * nx + x + threadIdx.x];
        __syncthreads();
        for (unsigned j = threadIdx.y; j < SIDE; j += DOWN)
            if (y + threadIdx.x < ny && x + j < nx)
                out[(x + j) * ny + y + threadIdx.x] = tile[threadIdx.x][j];
        __syncthreads();
    }
    idle(begin);
}
"""


def permille(case: Case) -> int:
    """How long the case's device idles."""
    return round(10 * float(PERCENT)) if case.device == DEVICE else 0


def in_cuda_c(case: Case, entry: str) -> CudaCKernel:
    """Program for ``(out, inp, nx, ny)``."""
    constants = {"SIDE": SIDE, "DOWN": DOWN, "PERMILLE": permille(case)}
    declared = "".join(f"constexpr unsigned {name} = {value};\n" for name, value in constants.items())
    return CudaCKernel(
        declared + _SOURCE, entry, grid=(1, 1), block=(SIDE, DOWN), persistent_blocks=lambda count: BLOCKS * count
    )


def in_numba(case: Case) -> NumbaKernel:
    """Program for ``(out, chain, n, loads)``: further loads, whose words nobody needs, are its idle time."""
    more = uint32(permille(case))

    def idling_chain(out: Array, chain: Array, n: Index, loads: Index) -> None:
        at = uint32(0)
        done = uint32(0)
        while done < loads:
            at = uint32(int(chain[at]))
            done = done + 1
        end = at
        while done < loads + loads * more // 1000:
            at = uint32(int(chain[at]))
            done = done + 1
        out[0] = end if at < n else at  # always the first, which the compiler does not know

    return NumbaKernel(idling_chain, grid=(1, 1), block=(1, 1))


def _transpose(name: str, computes: str) -> Kernel:
    build = partial(in_cuda_c, entry=name)
    return Kernel("transpose", name, "cuda", build=build, computes=computes, blocks=False, compiler="nvrtc")


KERNELS = (
    _transpose("idlingCopy", "copy"),
    _transpose("idlingTranspose", "transpose"),
    Kernel("latency", "idlingChain", "cuda", build=in_numba, blocks=False),
)
