"""transposeHalfWarp in CUDA C: a thread's vector as in its block, tiles column after column, streaming accesses."""

from __future__ import annotations

from smembench.kernels.transpose.cuda import transpose_half_warp
from smembench.kernels.transpose.nvrtc.transpose_vectorized import vectorized

_AS_IN_BLOCK = """
__device__ Position tile_of_block()
{
    return {blockIdx.y, blockIdx.x};
}

__device__ Position vector_of_thread()
{
    return {threadIdx.x, threadIdx.y};
}

__device__ Vector load(const T *from)
{
    Vector vector;
    vector.words = __ldcs((const uint4 *)from);
    return vector;
}

__device__ void store(T *to, Vector vector)
{
    __stcs((uint4 *)to, vector.words);
}
"""

KERNEL = vectorized(transpose_half_warp.KERNEL, _AS_IN_BLOCK)
