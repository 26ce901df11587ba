"""A kernel that writes beyond its output."""

from __future__ import annotations

from typing import Any

from smembench.kernels.program import HostFunction
from smembench.kernels.registry import Kernel
from smembench.model.case import Case


def build(case: Case) -> HostFunction:
    def fault(out: Any, inp: Any, nx: Any, ny: Any) -> None:
        out[:] = inp.reshape(int(ny), int(nx)).T.ravel()
        out.base[-1] = 0

    return HostFunction(fault)


KERNEL = Kernel(
    "transpose", "outside", "cpu", 90, "writes beyond its output", build, computes="transpose", blocks=False
)
