"""A kernel that takes 50 ms a launch."""

from __future__ import annotations

import time
from typing import Any

from smembench.kernels.registry import Kernel, Program
from smembench.model.case import Case


def build(case: Case) -> Program:
    def fault(out: Any, inp: Any, nx: Any, ny: Any) -> None:
        out[:] = inp.reshape(int(ny), int(nx)).T.ravel()
        time.sleep(0.05)

    return Program(fault)


KERNEL = Kernel("transpose", "sleepy", "cpu", 90, "takes 50 ms a launch", build, computes="transpose", blocks=False)
