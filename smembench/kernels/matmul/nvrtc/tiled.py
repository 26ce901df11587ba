"""tiled in CUDA C: the blog's matmul_cuda_shared for any m × k × n, with ``int`` indices as there (see naive).

Findings: results/reference/notes/tiled.md.
"""

from __future__ import annotations

from smembench.kernels.common.cuda_c import port
from smembench.kernels.matmul.cuda import tiled
from smembench.kernels.matmul.nvrtc.naive import int_indices

_SOURCE = """
extern "C" __global__ void tiled(T *c, const T *a, const T *b, int m, int n, int k, int lda, int ldb, int ldc)
{
    __shared__ T a_sub[BX][BX];
    __shared__ T b_sub[BX][BX];

    const int width = BX, tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * width + ty;
    int col = blockIdx.x * width + tx;
    T sum = 0;
    for (int t = 0; t < (k + width - 1) / width; ++t) {
        a_sub[ty][tx] = row < m && t * width + tx < k ? a[row * lda + t * width + tx] : T(0);
        b_sub[ty][tx] = col < n && t * width + ty < k ? b[(t * width + ty) * ldb + col] : T(0);
        __syncthreads();
        for (int e = 0; e < width; ++e)
            sum += a_sub[ty][e] * b_sub[e][tx];
        __syncthreads();
    }
    if (row < m && col < n)
        c[row * ldc + col] = sum;
}
"""

KERNEL = port(tiled.KERNEL, _SOURCE, unsupported=int_indices(tiled.KERNEL))
