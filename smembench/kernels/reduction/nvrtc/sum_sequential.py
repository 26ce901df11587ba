"""sumSequential in CUDA C: the classical lesson's kernel."""

from __future__ import annotations

from smembench.kernels.common.cuda_c import port
from smembench.kernels.reduction.cuda import sum_sequential

_SOURCE = """
extern "C" __global__ void sumSequential(T *out, const T *in, unsigned n)
{
    constexpr unsigned THREADS = BX * BY;
    __shared__ T tile[THREADS];
    unsigned tid = threadIdx.y * BX + threadIdx.x;
    unsigned i = blockIdx.x * THREADS + tid;
    tile[tid] = i < n ? in[i] : T(0);
    __syncthreads();

    for (unsigned s = THREADS / 2; s > 0; s /= 2) {
        if (tid < s)
            tile[tid] += tile[tid + s];
        __syncthreads();
    }

    if (tid == 0)
        atomicAdd(out, tile[0]);
}
"""

KERNEL = port(sum_sequential.KERNEL, _SOURCE)
