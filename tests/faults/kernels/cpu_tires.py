"""A kernel that is right once, and from then on leaves its output as it was."""

from __future__ import annotations

from itertools import count
from typing import Any

from smembench.kernels.program import HostFunction
from smembench.kernels.registry import Kernel
from smembench.model.case import Case


def build(case: Case) -> HostFunction:
    launches = count()

    def fault(out: Any, inp: Any, nx: Any, ny: Any) -> None:
        if next(launches) == 0:
            out[:] = inp.reshape(int(ny), int(nx)).T.ravel()

    return HostFunction(fault)


KERNEL = Kernel("transpose", "tires", "cpu", 90, "is right once", build, computes="transpose", blocks=False)
