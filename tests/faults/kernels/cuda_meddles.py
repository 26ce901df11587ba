"""A CUDA kernel that transposes in one thread, and then writes to its input."""

from __future__ import annotations

from typing import Any

from smembench.kernels.kernel import Kernel
from smembench.kernels.program import NumbaKernel
from smembench.model.case import Case


def build(case: Case) -> NumbaKernel:
    def fault(out: Any, inp: Any, nx: Any, ny: Any) -> None:
        for i in range(nx * ny):
            out[i % nx * ny + i // nx] = inp[i]
        inp[0] = 0

    return NumbaKernel(fault, grid=(1, 1), block=(1, 1))


KERNEL = Kernel("transpose", "meddles", "cuda", "writes to its input", build, computes="transpose", blocks=False)
