"""A kernel that never ends."""

from __future__ import annotations

import time
from typing import Any

from smembench.kernels.program import HostFunction
from smembench.kernels.registry import Kernel
from smembench.model.case import Case


def build(case: Case) -> HostFunction:
    def fault(out: Any, inp: Any, nx: Any, ny: Any) -> None:
        while True:
            time.sleep(1)

    return HostFunction(fault)


KERNEL = Kernel("transpose", "hangs", "cpu", 90, "never ends", build, computes="transpose", blocks=False)
