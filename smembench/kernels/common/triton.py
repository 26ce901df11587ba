"""Kernels in Triton's language beside Numba kernels: the same tiles, and as many threads.

A kernel of Triton's is a program over a whole tile. Which thread has which elements, how a tile lies in shared memory
and when it is loaded is the compiler's choice: the port says what is done, and Triton how.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from smembench.kernels.common.grids import covering, threads_of
from smembench.kernels.kernel import Kernel
from smembench.kernels.problems import PROBLEMS
from smembench.kernels.program import TritonKernel
from smembench.model.case import Block, Case

_WARP = 32
_MOST_SHARED = 227 * 1024
"""Bytes of shared memory that a block can have on any GPU; Triton keeps as large a tile there as the Numba kernel."""
_STEP = 16
"""What Triton asks sizes for: whether 16 divides them, so that rows begin at multiples of 16 elements."""


def port(kernel: Kernel, source: Callable[[], Any], constants: Callable[[Case], Mapping[str, int]]) -> Kernel:
    """The port to Triton of a Numba kernel.

    Args:
        kernel: the Numba kernel.
        source: imports Triton and makes the ``triton.jit`` function. It is called with the output, the inputs and the
            problem's scalars as ``uint32``, and with the constants.
        constants: powers of two by name, of a case; ``BX`` columns and ``BY`` rows are a block's tile.
    """

    def build(case: Case) -> TritonKernel:
        given = constants(case)
        divisible = tuple(value % _STEP == 0 for value in PROBLEMS[case.problem].scalars(case))
        return TritonKernel(
            source,
            given,
            divisible,
            grid=covering(case.n, case.m, Block(given["BX"], given["BY"])),
            block=(threads_of(case), 1),
            variant="".join("01"[yes] for yes in divisible),
        )

    def unsupported(case: Case) -> str | None:
        if reason := kernel.unsupported(case):
            return reason
        threads = threads_of(case)
        if threads < _WARP or any(value & (value - 1) for value in (threads, *constants(case).values())):
            return f"{kernel.name} by Triton needs sides that are powers of two, and a warp or more, not {case.block}"
        if kernel.shared_bytes(case) > _MOST_SHARED:
            return f"{kernel.name} by Triton needs more than {_MOST_SHARED} bytes of shared memory for {case.block}"
        return None

    return replace(kernel, compiler="triton", build=build, tile_elements=_of_the_compiler, unsupported=unsupported)


def _of_the_compiler(case: Case) -> int:
    """No tile that the kernel asks for: Triton decides what it keeps in shared memory."""
    return 0
