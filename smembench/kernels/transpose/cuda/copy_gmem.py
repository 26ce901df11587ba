"""copyGmem: each thread copies one element; the upper bound for a transpose with one element per thread.

The reads and writes of a warp are contiguous, so both are fully coalesced where the block is a warp wide. The kernel
follows the slides' listing line by line; blockDim is bx × by here.
"""

from __future__ import annotations

from smembench.kernels.common.grids import block_of, covering
from smembench.kernels.kernel import Kernel
from smembench.kernels.numba_cuda import cuda
from smembench.kernels.program import NumbaKernel
from smembench.kernels.transpose.problem import COPY
from smembench.kernels.types import Array, Index
from smembench.model.case import Case


def build(case: Case) -> NumbaKernel:
    """Program for ``(out, inp, nx, ny)``."""
    block = block_of(case)
    bx, by = block

    def copy_gmem(out: Array, inp: Array, nx: Index, ny: Index) -> None:
        # matrix coordinate (ix, iy)
        ix = cuda.blockIdx.x * bx + cuda.threadIdx.x
        iy = cuda.blockIdx.y * by + cuda.threadIdx.y

        # copy with boundary test
        if ix < nx and iy < ny:
            out[iy * nx + ix] = inp[iy * nx + ix]

    return NumbaKernel(copy_gmem, grid=covering(case.n, case.m, block), block=block)


KERNEL = Kernel(
    problem="transpose",
    name="copyGmem",
    kind="cuda",
    summary="copy, one thread per element: what a transpose of this shape can reach at best",
    build=build,
    computes=COPY,
)
