"""readGmem: reads all elements by 128-bit loads and combines nothing between threads, the ceiling of every sum.

A thread adds up what it reads. One element of the input is odd, so one thread has an odd sum: it writes a 1, which
proves that the element was read, wherever it is, and keeps the compiler from removing loads. There is no shared memory,
no barrier and no atomic.
"""

from __future__ import annotations

from smembench.kernels.intrinsics.vector import load_vector, vector_width
from smembench.kernels.kernel import Kernel
from smembench.kernels.numba_cuda import cuda, number
from smembench.kernels.program import NumbaKernel
from smembench.kernels.reduction.problem import READ
from smembench.kernels.reduction.threads import VECTORS, blocks_of_vectors
from smembench.kernels.types import Array, Index
from smembench.model.case import Case

THREADS = 256


def build(case: Case) -> NumbaKernel:
    """Program for ``(out, inp, n)``."""
    span, wide = VECTORS * THREADS, vector_width(case.dtype)
    zero, one = number(case.dtype)(0), number(case.dtype)(1)

    def read_gmem(out: Array, inp: Array, n: Index) -> None:
        tid = cuda.threadIdx.x
        total = zero
        for first in range(0, span, THREADS):
            v = cuda.blockIdx.x * span + first + tid
            if v < n // wide:
                vector = load_vector(inp, v * wide)
                for lane in range(wide):
                    total += vector[lane]
        if cuda.blockIdx.x == 0 and tid < n % wide:
            total += inp[n - 1 - tid]
        if int(total) % 2 != 0:
            out[0] = one

    grid = blocks_of_vectors(case, THREADS), 1
    return NumbaKernel(read_gmem, grid=grid, block=(THREADS, 1))


KERNEL = Kernel(
    problem="reduction",
    name="readGmem",
    kind="cuda",
    summary="reads all elements and combines none: the ceiling of % of readGmem",
    build=build,
    computes=READ,
    blocks=False,
    results=(16, 1),
)
