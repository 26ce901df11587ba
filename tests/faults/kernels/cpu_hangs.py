"""A kernel that never ends."""

from __future__ import annotations

import time
from typing import Any

from smembench.case import Case
from smembench.kernels.registry import Kernel, Program


def build(case: Case) -> Program:
    def fault(out: Any, inp: Any, nx: Any, ny: Any) -> None:
        while True:
            time.sleep(1)

    return Program(fault)


KERNEL = Kernel("transpose", "hangs", "cpu", 90, "never ends", build, computes="transpose", blocks=False)
