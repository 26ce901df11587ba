"""Triton's interpreter: runs Triton kernels without a GPU, for tests. ``python interpreted.py KERNEL`` checks one.

It must know that it interprets when Triton is imported, so it needs a process of its own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from programs import assert_right, case_of
from smembench.devices.base import POISON
from smembench.kernels import registry
from smembench.kernels.problems import PROBLEMS
from smembench.kernels.program import TritonKernel
from smembench.model.case import Block, Case

SHAPES = [(1, 1, 1), (64, 128, 32), (33, 65, 17)]


@dataclass
class _Tensor:
    """As much of a PyTorch tensor as the interpreter needs, over a NumPy array."""

    array: Any

    @property
    def dtype(self) -> str:
        return str(self.array.dtype)

    def data_ptr(self) -> int:
        return int(self.array.ctypes.data)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *arguments, **named: self


def run(case: Case, inputs: tuple[Any, ...]) -> Any:
    """The output of one launch on a poisoned buffer."""
    program, problem = registry.kernel_of(case).build(case), PROBLEMS[case.problem]
    assert isinstance(program, TritonKernel), case.id
    out = np.empty(problem.output_length(case), case.dtype)
    out.view("u1")[:] = POISON
    arrays = [_Tensor(array[problem.first(case) :]) for array in (out, *inputs)]
    program.source()[program.grid](*arrays, *problem.scalars(case), **program.constants)
    return out


def main() -> None:
    os.environ["TRITON_INTERPRET"] = "1"
    (kernel,) = (item for item in registry.kernels() if (item.compiler, item.name) == ("triton", sys.argv[1]))
    block = None if kernel.default_blocks else Block(16, 16)
    for (m, n, k), stride in product(SHAPES, (None, 130) if kernel.strided else (None,)):
        case = case_of(kernel, m, n, k, block=block, stride=stride)
        assert_right(case, partial(run, case))


if __name__ == "__main__":
    main()
