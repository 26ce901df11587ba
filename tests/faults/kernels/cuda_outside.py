"""A CUDA kernel that writes beyond its output."""

from __future__ import annotations

from typing import Any

from smembench.kernels.registry import Kernel, Program
from smembench.model.case import Case


def build(case: Case) -> Program:
    def fault(out: Any, inp: Any, nx: Any, ny: Any) -> None:
        out[nx * ny] = inp[0]

    return Program(fault, (1, 1), (1, 1))


KERNEL = Kernel(
    "transpose", "outside", "cuda", 90, "writes beyond its output", build, computes="transpose", blocks=False
)
