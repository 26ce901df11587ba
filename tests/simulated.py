"""Numba's CUDA simulator: runs Numba kernels without a GPU, for tests; never for timing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from threading import Lock
from types import ModuleType, SimpleNamespace
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
"""Only one, so that a persistent block computes several tiles of the output even in a small case."""


def run(case: Case, kernel: Kernel, problem: Problem, inputs: tuple[Array, ...]) -> Array:
    """The output of one launch on a poisoned buffer.

    Raises:
        DeviceUnavailable: if NUMBA_ENABLE_CUDASIM was not set before Numba was imported.
        IndexError: if the kernel reads or writes outside an array.
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
    """Patch Numba: threads of a block take turns, count in uint32, and shared arrays are poisoned and found by line.

    Device functions of other modules see the simulated ``cuda``, too.
    """
    from numba.cuda.simulator import kernel, kernelapi

    manager, shared, dim3 = kernel.BlockManager, kernelapi.FakeCUDAShared, kernelapi.Dim3
    swapped = kernel.swapped_cuda_module
    kernel.swapped_cuda_module = _in_all_modules(swapped)
    kernel.BlockManager, kernelapi.FakeCUDAShared = _block_in_turns(kernel), _with_one_array_per_line(shared)
    kernel.Dim3 = kernelapi.Dim3 = lambda *axes: dim3(*map(np.uint32, axes))
    try:
        yield
    finally:
        kernel.BlockManager, kernelapi.FakeCUDAShared = manager, shared
        kernel.Dim3 = kernelapi.Dim3 = dim3
        kernel.swapped_cuda_module = swapped


def _in_all_modules(swapped: Any) -> Any:
    """Numba's context that replaces ``cuda`` in the module of a kernel, for all modules that have it."""

    @contextmanager
    def swap(function: Any, fake: Any) -> Iterator[None]:
        namespaces = {id(vars(module)): vars(module) for module in list(sys.modules.values()) if _has_cuda(module)}
        namespaces[id(function.__globals__)] = function.__globals__
        with ExitStack() as stack:
            for namespace in namespaces.values():
                stack.enter_context(swapped(SimpleNamespace(__globals__=namespace), fake))
            yield

    return swap


def _has_cuda(module: ModuleType) -> bool:
    return module.__name__.startswith("smembench") and getattr(module, "cuda", None) is cuda


def _block_in_turns(kernel: Any) -> Any:
    """Numba's block manager, but each thread runs alone until it ends or reaches a barrier.

    In Numba's own, threads run in any order that Python chooses, and one more thread polls whether all wait. That is
    slow, and the effect of a missing barrier is random. Here threads take turns, first to last and then back, so a
    thread that reads what another has yet to write fails every time.
    """

    class Turn(kernel.BlockThread):  # type: ignore[misc]
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self.mine, self.over = Lock(), Lock()
            self.mine.acquire()
            self.over.acquire()

        def run(self) -> None:
            with suppress(SystemExit):  # of a thread that waits at a barrier when another fails
                super().run()
            self.over.release()

        def take(self) -> None:
            if self.ident is None:
                self.start()
            else:
                self.mine.release()
            self.over.acquire()

        def syncthreads(self) -> None:
            self.syncthreads_blocked = True
            self.over.release()
            self.mine.acquire()
            self.syncthreads_blocked = False
            if self.abort:
                raise SystemExit

    class InTurns(kernel.BlockManager):  # type: ignore[misc]
        def run(self, grid_point: Any, *arguments: Any) -> None:
            turns = [
                Turn(lambda: self._f(*arguments), self, grid_point, place, self._debug)
                for place in np.ndindex(*self._block_dim)
            ]
            while turns:
                for turn in turns:
                    turn.take()
                    if turn.exception:
                        for waiting in turns:
                            if waiting.syncthreads_blocked:
                                waiting.abort = True
                                waiting.take()
                        raise turn.exception[0].with_traceback(turn.exception[1])
                turns = [turn for turn in reversed(turns) if turn.syncthreads_blocked]

    return InTurns


def _with_one_array_per_line(shared: Any) -> Any:
    """The simulator's ``cuda.shared``, faster: Numba's inspects the whole stack to find the line of a call."""

    class Shared(shared):  # type: ignore[misc]
        def array(self, shape: Any, dtype: Any, alignment: int | None = None) -> Any:
            if shape == 0:  # dynamic: made before the launch
                return super().array(shape, dtype, alignment)
            code, line = (frame := sys._getframe(1)).f_code, frame.f_lineno
            found = self._allocations.get((code, line))
            if found is None:
                found = self._allocations[code, line] = np.empty(shape, str(dtype))
                found.view("u1").fill(POISON)
            return found

    return Shared
