"""A kernel that is off by one."""

from __future__ import annotations

from typing import Any

from smembench.kernels.program import HostFunction
from smembench.kernels.registry import Kernel
from smembench.model.case import Case


def build(case: Case) -> HostFunction:
    def fault(out: Any, inp: Any, nx: Any, ny: Any) -> None:
        out[:] = inp
        out[0] += 1

    return HostFunction(fault)


KERNEL = Kernel("transpose", "wrong", "cpu", 90, "is off by one", build, computes="transpose", blocks=False)
