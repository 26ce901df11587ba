"""A kernel that raises."""

from __future__ import annotations

from typing import Any

from smembench.kernels.program import HostFunction
from smembench.kernels.registry import Kernel
from smembench.model.case import Case


def build(case: Case) -> HostFunction:
    def fault(out: Any, inp: Any, nx: Any, ny: Any) -> None:
        raise MemoryError("out of memory on purpose")

    return HostFunction(fault)


KERNEL = Kernel("transpose", "raises", "cpu", 90, "raises", build, computes="transpose", blocks=False)
