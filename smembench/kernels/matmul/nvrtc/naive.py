"""naive in CUDA C: the documents' kernel, a thread an element of C.

Offsets are 64 bits wide, as in the documents' own code and in the kernel it is the twin of: with 32-bit ones, which may
wrap, the compiler computes every address anew, and the twin would be a slow yardstick.
"""

from __future__ import annotations

from smembench.kernels.cuda_c import twin
from smembench.kernels.matmul.cuda import naive

_SOURCE = """
extern "C" __global__ void naive(T *c, const T *a, const T *b, unsigned m, unsigned n, unsigned k,
                                 unsigned lda, unsigned ldb, unsigned ldc)
{
    unsigned col = blockIdx.x * BX + threadIdx.x;
    unsigned row = blockIdx.y * BY + threadIdx.y;
    if (row < m && col < n) {
        T sum = 0;
        for (unsigned i = 0; i < k; ++i)
            sum += a[(size_t)row * lda + i] * b[(size_t)i * ldb + col];
        c[(size_t)row * ldc + col] = sum;
    }
}
"""

KERNEL = twin(naive.KERNEL, _SOURCE)
