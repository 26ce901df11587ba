"""tiled in CUDA C: the documents' kernel, square tiles of A and B in shared memory, zeros beyond the edges."""

from __future__ import annotations

from smembench.kernels.common.cuda_c import port
from smembench.kernels.matmul.cuda import tiled

_SOURCE = """
extern "C" __global__ void tiled(T *c, const T *a, const T *b, unsigned m, unsigned n, unsigned k,
                                 unsigned lda, unsigned ldb, unsigned ldc)
{
    __shared__ T a_tile[BY][BX];
    __shared__ T b_tile[BY][BX];

    unsigned tx = threadIdx.x, ty = threadIdx.y;
    unsigned col = blockIdx.x * BX + tx;
    unsigned row = blockIdx.y * BY + ty;
    T sum = 0;
    for (unsigned k0 = 0; k0 < k; k0 += BX) {
        a_tile[ty][tx] = row < m && k0 + tx < k ? a[row * lda + k0 + tx] : T(0);
        b_tile[ty][tx] = col < n && k0 + ty < k ? b[(k0 + ty) * ldb + col] : T(0);
        __syncthreads();
        for (unsigned i = 0; i < BX; ++i)
            sum += a_tile[ty][i] * b_tile[i][tx];
        __syncthreads();
    }
    if (row < m && col < n)
        c[row * ldc + col] = sum;
}
"""

KERNEL = port(tiled.KERNEL, _SOURCE)
