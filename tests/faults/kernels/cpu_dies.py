"""A kernel that takes its process with it."""

from __future__ import annotations

import os
import signal
from typing import Any

from smembench.kernels.registry import Kernel, Program
from smembench.model.case import Case


def build(case: Case) -> Program:
    def fault(out: Any, inp: Any, nx: Any, ny: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    return Program(fault)


KERNEL = Kernel("transpose", "dies", "cpu", 90, "takes its process with it", build, computes="transpose", blocks=False)
