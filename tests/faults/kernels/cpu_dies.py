"""A kernel that takes its process with it."""

from __future__ import annotations

import os
import signal
from typing import Any

from smembench.kernels.program import HostFunction
from smembench.kernels.registry import Kernel
from smembench.model.case import Case


def build(case: Case) -> HostFunction:
    def fault(out: Any, inp: Any, nx: Any, ny: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    return HostFunction(fault)


KERNEL = Kernel("transpose", "dies", "cpu", 90, "takes its process with it", build, computes="transpose", blocks=False)
