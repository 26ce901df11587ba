"""naiveGmem: reads rows and writes columns, straight through global memory.

A warp's reads are coalesced. Its writes lie ny elements apart, a sector each, and most bytes of a sector are wasted.
"""

from __future__ import annotations

from typing import Any

from smembench.kernels.common.grids import block_of, covering
from smembench.kernels.numba_cuda import cuda
from smembench.kernels.program import NumbaKernel
from smembench.kernels.registry import Kernel
from smembench.kernels.transpose.problem import TRANSPOSE
from smembench.model.case import Case


def build(case: Case) -> NumbaKernel:
    """Program for ``(out, inp, nx, ny)``."""
    block = block_of(case)
    bx, by = block

    def naive_gmem(out: Any, inp: Any, nx: Any, ny: Any) -> None:
        ix = cuda.blockIdx.x * bx + cuda.threadIdx.x
        iy = cuda.blockIdx.y * by + cuda.threadIdx.y
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
