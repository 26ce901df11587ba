"""Sums of runs by NumPy; what it closes over is the case's parameter."""

from __future__ import annotations

from typing import Any

from smembench.kernels.kernel import Kernel
from smembench.kernels.program import HostFunction
from smembench.model.case import Case


def build(case: Case) -> HostFunction:
    items = case.parameter("items")

    def add(out: Any, inp: Any, sums: Any) -> None:
        out[:] = inp.reshape(int(sums), items).sum(axis=1)

    return HostFunction(add)


KERNELS = [Kernel("runsums", name, "cpu", "sums of runs", build, blocks=False) for name in ("sums", "unrolledSums")]
