"""naiveGmem: transpose straight through global memory; a warp reads along a row and writes down a column.

The reads are coalesced. The writes are ny elements apart, each in a sector of its own, most bytes of which are wasted.
The kernel follows the slides' listing line by line; blockDim is bx × by here.
"""

from __future__ import annotations

from smembench.kernels.common.grids import block_of, covering
from smembench.kernels.kernel import Kernel
from smembench.kernels.numba_cuda import cuda
from smembench.kernels.program import NumbaKernel
from smembench.kernels.transpose.problem import TRANSPOSE
from smembench.kernels.types import Array, Index
from smembench.model.case import Case


def build(case: Case) -> NumbaKernel:
    """Program for ``(out, inp, nx, ny)``."""
    block = block_of(case)
    bx, by = block

    def naive_gmem(out: Array, inp: Array, nx: Index, ny: Index) -> None:
        # matrix coordinate (ix, iy)
        ix = cuda.blockIdx.x * bx + cuda.threadIdx.x
        iy = cuda.blockIdx.y * by + cuda.threadIdx.y

        # transpose with boundary test
        if ix < nx and iy < ny:
            out[ix * ny + iy] = inp[iy * nx + ix]

    return NumbaKernel(naive_gmem, grid=covering(case.n, case.m, block), block=block)


KERNEL = Kernel(
    problem="transpose",
    name="naiveGmem",
    kind="cuda",
    summary="transpose through global memory: reads coalesced, writes strided",
    build=build,
    computes=TRANSPOSE,
    ladder="from global memory to global memory: writes strided",
)
