"""A CPU transpose that goes over its output as often as PASSES says: what somebody changes between two nights."""

from __future__ import annotations

import os
from typing import Any

from smembench.kernels.program import HostFunction
from smembench.kernels.registry import Kernel
from smembench.model.case import Case

PASSES = int(os.environ.get("PASSES", "1"))


def build(case: Case) -> HostFunction:
    def transpose(out: Any, inp: Any, nx: Any, ny: Any) -> None:
        for _ in range(PASSES):
            out[:] = inp.reshape(int(ny), int(nx)).T.ravel()

    return HostFunction(transpose)


KERNEL = Kernel(
    "transpose", "passes", "cpu", 90, "a transpose, PASSES times", build, computes="transpose", blocks=False
)
