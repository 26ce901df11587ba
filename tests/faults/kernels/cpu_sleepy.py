"""A kernel that takes 50 ms a launch."""

from __future__ import annotations

import time
from typing import Any

from smembench.kernels.program import HostFunction
from smembench.kernels.registry import Kernel
from smembench.model.case import Case


def build(case: Case) -> HostFunction:
    def fault(out: Any, inp: Any, nx: Any, ny: Any) -> None:
        out[:] = inp.reshape(int(ny), int(nx)).T.ravel()
        time.sleep(0.05)

    return HostFunction(fault)


KERNEL = Kernel("transpose", "sleepy", "cpu", 90, "takes 50 ms a launch", build, computes="transpose", blocks=False)
