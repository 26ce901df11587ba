"""A CUDA kernel that leaves its output as it was."""

from __future__ import annotations

from typing import Any

from smembench.kernels.kernel import Kernel
from smembench.kernels.numba_cuda import uint32
from smembench.kernels.program import NumbaKernel
from smembench.model.case import Case


def build(case: Case) -> NumbaKernel:
    def fault(out: Any, inp: Any, nx: Any, ny: Any) -> None:
        if nx == uint32(0):
            out[0] = inp[0]

    return NumbaKernel(fault, grid=(1, 1), block=(1, 1))


KERNEL = Kernel("transpose", "wrong", "cuda", "leaves its output as it was", build, computes="transpose", blocks=False)
