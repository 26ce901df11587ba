"""sumPersistent in CUDA C: a grid-stride loop of 128-bit loads, then warp shuffles."""

from __future__ import annotations

from smembench.kernels.common.cuda_c import port
from smembench.kernels.common.grids import SM_THREADS, threads_of
from smembench.kernels.intrinsics.vector import vector_width
from smembench.kernels.reduction.cuda import sum_persistent
from smembench.kernels.reduction.threads import VECTORS, warps_of
from smembench.model.case import Case
from smembench.model.hardware import WARP

_SOURCE = """
union alignas(16) Vector { T lane[WIDE]; uint4 words; };

__device__ T warp_sum(T total)
{
    for (unsigned lanes = WARP / 2; lanes > 0; lanes /= 2)
        total += __shfl_down_sync(0xffffffff, total, lanes);
    return total;
}

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) sumPersistent(T *out, const T *in, unsigned n)
{
    __shared__ T tile[WARPS];
    unsigned tid = threadIdx.y * BX + threadIdx.x;
    T total = 0;
    for (unsigned start = blockIdx.x * SPAN; start < n / WIDE; start += gridDim.x * SPAN)
        for (unsigned first = 0; first < SPAN; first += THREADS) {
            unsigned v = start + first + tid;
            if (v < n / WIDE) {
                Vector vector = *(const Vector *)&in[v * WIDE];
                for (unsigned lane = 0; lane < WIDE; ++lane)
                    total += vector.lane[lane];
            }
        }
    if (blockIdx.x == 0 && tid < n % WIDE)
        total += in[n - 1 - tid];

    T of_warp = warp_sum(total);
    if (tid % WARP == 0)
        tile[tid / WARP] = of_warp;
    __syncthreads();
    if (tid < WARP) {
        T of_block = warp_sum(tid < WARPS ? tile[tid] : T(0));
        if (tid == 0)
            atomicAdd(out, of_block);
    }
}
"""


def _constants(case: Case) -> dict[str, int]:
    threads = threads_of(case)
    return {
        "WARP": WARP,
        "WARPS": warps_of(case),
        "THREADS": threads,
        "RESIDENT": SM_THREADS // threads,
        "SPAN": VECTORS * threads,
        "WIDE": vector_width(case.dtype),
    }


KERNEL = port(sum_persistent.KERNEL, _SOURCE, _constants)
