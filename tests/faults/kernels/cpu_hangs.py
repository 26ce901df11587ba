"""A kernel that never ends."""

from __future__ import annotations

import time
from typing import Any

from smembench.kernels.registry import Kernel, Program
from smembench.model.case import Case


def build(case: Case) -> Program:
    def fault(out: Any, inp: Any, nx: Any, ny: Any) -> None:
        while True:
            time.sleep(1)

    return Program(fault)


KERNEL = Kernel("transpose", "hangs", "cpu", 90, "never ends", build, computes="transpose", blocks=False)
