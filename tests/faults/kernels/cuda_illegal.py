"""A CUDA kernel that reads an illegal address."""

from __future__ import annotations

from typing import Any

from smembench.kernels.kernel import Kernel
from smembench.kernels.numba_cuda import cuda, uint64
from smembench.kernels.program import NumbaKernel
from smembench.model.case import Case


def build(case: Case) -> NumbaKernel:
    def fault(out: Any, inp: Any, nx: Any, ny: Any) -> None:
        out[0] = inp[uint64(cuda.blockIdx.x) + 2**45]

    return NumbaKernel(fault, grid=(1, 1), block=(1, 1))


KERNEL = Kernel("transpose", "illegal", "cuda", "reads an illegal address", build, computes="transpose", blocks=False)
