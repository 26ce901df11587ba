"""naiveGmemUnroll: naiveGmem with two elements per thread, from two neighbouring blocks.

The grid is half as wide. A thread loads both elements before it writes either: two reads in flight per thread instead
of one. Accesses are those of naiveGmem. Where the memory is already kept busy by sectors that are mostly wasted, more
requests in flight do not help.
"""

from __future__ import annotations

from smembench.kernels.common.grids import block_of, covering
from smembench.kernels.kernel import Kernel
from smembench.kernels.numba_cuda import cuda
from smembench.kernels.program import NumbaKernel
from smembench.kernels.transpose.problem import TRANSPOSE
from smembench.kernels.types import Array, Index
from smembench.model.case import Block, Case


def build(case: Case) -> NumbaKernel:
    """Program for ``(out, inp, nx, ny)``."""
    block = block_of(case)
    bx, by = block

    def naive_gmem_unroll(out: Array, inp: Array, nx: Index, ny: Index) -> None:
        ix = cuda.blockIdx.x * (2 * bx) + cuda.threadIdx.x
        iy = cuda.blockIdx.y * by + cuda.threadIdx.y
        right = ix + bx
        if ix < nx and iy < ny:
            first = inp[iy * nx + ix]
            if right < nx:
                second = inp[iy * nx + right]
                out[right * ny + iy] = second
            out[ix * ny + iy] = first

    return NumbaKernel(naive_gmem_unroll, grid=covering(case.n, case.m, Block(2 * bx, by)), block=block)


KERNEL = Kernel(
    problem="transpose",
    name="naiveGmemUnroll",
    kind="cuda",
    summary="naiveGmem with two elements per thread: twice the reads in flight, equally strided writes",
    build=build,
    computes=TRANSPOSE,
    standard=False,
)
