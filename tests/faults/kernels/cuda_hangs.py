"""A CUDA kernel that never ends."""

from __future__ import annotations

from typing import Any

from smembench.kernels.kernel import Kernel
from smembench.kernels.numba_cuda import uint32
from smembench.kernels.program import NumbaKernel
from smembench.model.case import Case


def build(case: Case) -> NumbaKernel:
    def fault(out: Any, inp: Any, nx: Any, ny: Any) -> None:
        i = uint32(0)
        while out[0] != inp[0] or i < uint32(2):
            i = uint32(1)
            out[0] = out[0]

    return NumbaKernel(fault, grid=(1, 1), block=(1, 1))


KERNEL = Kernel("transpose", "hangs", "cuda", "never ends", build, computes="transpose", blocks=False)
