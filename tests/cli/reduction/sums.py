"""Sums of runs by NumPy; what it closes over is the case's parameter."""

from __future__ import annotations

from typing import Any

from smembench.kernels.registry import Kernel, Program
from smembench.model.case import Case


def build(case: Case) -> Program:
    items = case.parameter("items")

    def add(out: Any, inp: Any, sums: Any) -> None:
        out[:] = inp.reshape(int(sums), items).sum(axis=1)

    return Program(add)


KERNELS = [
    Kernel("reduction", name, "cpu", step, "sums of runs", build, blocks=False)
    for step, name in ((10, "sums"), (20, "unrolledSums"))
]
