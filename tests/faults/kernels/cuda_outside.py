"""A CUDA kernel that writes beyond its output."""

from __future__ import annotations

from typing import Any

from smembench.kernels.kernel import Kernel
from smembench.kernels.program import NumbaKernel
from smembench.model.case import Case


def build(case: Case) -> NumbaKernel:
    def fault(out: Any, inp: Any, nx: Any, ny: Any) -> None:
        out[nx * ny] = inp[0]

    return NumbaKernel(fault, grid=(1, 1), block=(1, 1))


KERNEL = Kernel("transpose", "outside", "cuda", "writes beyond its output", build, computes="transpose", blocks=False)
