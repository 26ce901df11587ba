"""A CUDA kernel that does not compile."""

from __future__ import annotations

from typing import Any

from smembench.kernels.kernel import Kernel
from smembench.kernels.program import NumbaKernel
from smembench.model.case import Case


def build(case: Case) -> NumbaKernel:
    def fault(out: Any, inp: Any, nx: Any, ny: Any) -> None:
        out[0] = no_such_name  # type: ignore[name-defined]  # noqa: F821

    return NumbaKernel(fault, grid=(1, 1), block=(1, 1))


KERNEL = Kernel("transpose", "uncompilable", "cuda", "does not compile", build, computes="transpose", blocks=False)
