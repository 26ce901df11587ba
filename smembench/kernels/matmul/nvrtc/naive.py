"""naive in CUDA C: the documents' kernel, one thread per element of C.

Indices are ``int``, as in the documents: signed ones may not wrap, so the compiler turns them into pointers. Unsigned
ones are slower and would be no fair yardstick. Findings: results/reference/notes/naive.md.
"""

from __future__ import annotations

from collections.abc import Callable

from smembench.kernels.common.cuda_c import port
from smembench.kernels.kernel import Kernel
from smembench.kernels.matmul.cuda import naive
from smembench.model.case import Case

_SOURCE = """
extern "C" __global__ void naive(T *c, const T *a, const T *b, unsigned m, unsigned n, unsigned k,
                                 unsigned lda, unsigned ldb, unsigned ldc)
{
    int col = blockIdx.x * BX + threadIdx.x, row = blockIdx.y * BY + threadIdx.y;
    int depth = k, a_row = lda, b_row = ldb, c_row = ldc;
    if (row < (int)m && col < (int)n) {
        T sum = 0;
        for (int i = 0; i < depth; ++i)
            sum += a[row * a_row + i] * b[i * b_row + col];
        c[row * c_row + col] = sum;
    }
}
"""

_INT_MAX = 2**31 - 1


def int_indices(kernel: Kernel) -> Callable[[Case], str | None]:
    """The reason that the port of a kernel with ``int`` indices cannot run a case: the kernel's own, or the size."""

    def unsupported(case: Case) -> str | None:
        largest = max(case.m, case.depth) * (case.stride or max(case.n, case.depth))
        if largest > _INT_MAX:
            return f"the CUDA C port of {case.kernel} has int indices, which reach {_INT_MAX} elements, not {largest}"
        return kernel.unsupported(case)

    return unsupported


KERNEL = port(naive.KERNEL, _SOURCE, unsupported=int_indices(naive.KERNEL))
