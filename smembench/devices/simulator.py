"""Numba's CUDA simulator as a device: it runs the real CUDA kernels without a GPU, and never times them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from smembench.devices.base import POISON
from smembench.kernels.numba_cuda import SIMULATED, cuda
from smembench.kernels.program import NumbaKernel
from smembench.kernels.registry import Kernel
from smembench.model.case import Case
from smembench.model.errors import DeviceUnavailable
from smembench.model.problem import Problem

if TYPE_CHECKING:
    from smembench.model.problem import Array

_MULTIPROCESSORS = 1
"""As few as can be, so that blocks of a persistent grid have more than one share of the output even in a small case."""

_SWITCH_INTERVAL = 0.001
"""Seconds a Python thread runs before another: the simulator's own only asks whether the others wait."""


def run(case: Case, kernel: Kernel, problem: Problem, inputs: tuple[Array, ...]) -> Array:
    """The output of one launch on a poisoned buffer.

    Raises:
        DeviceUnavailable: when NUMBA_ENABLE_CUDASIM was not set before Numba was imported.
        IndexError: when the kernel reads or writes outside an array.
    """
    if not SIMULATED:
        raise DeviceUnavailable("simulator: set NUMBA_ENABLE_CUDASIM=1 before the start")
    output = np.empty(problem.output_length(case), inputs[0].dtype)
    output.view("u1")[:] = POISON
    program = kernel.build(case)
    assert isinstance(program, NumbaKernel), case.id
    program = program.on(_MULTIPROCESSORS)
    launch: Any = cuda.jit(program.function)[program.grid, program.block, None, program.dynamic_bytes]
    with _numba_mended():
        launch(output, *inputs, *(np.uint32(value) for value in problem.scalars(case)))
    return output


@contextmanager
def _numba_mended() -> Iterator[None]:
    """Threads of the simulator switch often, and have each shared array in common however they do."""
    from numba.cuda.simulator import kernelapi

    interval, shared = sys.getswitchinterval(), kernelapi.FakeCUDAShared
    sys.setswitchinterval(_SWITCH_INTERVAL)
    kernelapi.FakeCUDAShared = with_one_array_a_line(shared)
    try:
        yield
    finally:
        kernelapi.FakeCUDAShared = shared
        sys.setswitchinterval(interval)


def with_one_array_a_line(shared: Any) -> Any:
    """Numba's ``cuda.shared`` of the simulator, but for a race.

    Its own asks whether the array of a line is there and makes one if not, so that a thread that asks meanwhile makes
    another, and has a tile for itself.
    """

    class Shared(shared):  # type: ignore[misc]
        def array(self, shape: Any, dtype: Any, alignment: int | None = None) -> Any:
            if shape == 0:  # dynamic: made before the launch
                return super().array(shape, dtype, alignment)
            caller = sys._getframe(1)
            made = np.empty(shape, str(dtype))
            return self._allocations.setdefault((caller.f_code.co_filename, caller.f_lineno), made)

    return Shared
