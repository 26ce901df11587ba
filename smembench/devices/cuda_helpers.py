"""Kernels that timing needs: an empty one, one that takes a few µs, and one that flushes the L2."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from smembench.kernels.numba_cuda import cuda, number, uint32
from smembench.kernels.program import NumbaKernel
from smembench.toolchains.numba import link, loaded
from smembench.toolchains.nvvm import compiled

_NEVER = 1.0
"""A sum of zeros never exceeds it, but the compiler does not know that."""


def empty() -> None:
    """Do nothing: all its time is the launch."""
    pass  # noqa: PIE790  # Numba looks for a line behind the docstring


def busy(buffer: Any, rounds: Any) -> None:
    """Keep a thread busy with dependent multiplications; the buffer begins with 0 and does not change."""
    total = buffer[0]
    i = uint32(0)
    while i < rounds:
        total = total * total
        i = uint32(i + uint32(1))
    if total > _NEVER:
        buffer[0] = total


def read_all(buffer: Any, count: Any) -> None:
    """Read a buffer of zeros, so that the L2 holds only its lines, which are clean."""
    total = buffer[0]
    i = uint32(cuda.grid(1))
    while i < count:
        total += buffer[i]
        i = uint32(i + uint32(cuda.gridsize(1)))
    if total > _NEVER:
        buffer[0] = total


def launcher(
    helper: Callable[..., None],
    capability: str,
    stream: int,
    scalars: Sequence[np.uint32] = (),
    *,
    grid: int,
    block: int,
) -> Callable[..., None]:
    """A function of the helper's buffer, if it has one, that enqueues a launch with these scalars."""
    major, minor = map(int, capability.split("."))
    takes = (number("float32")[::1], uint32)[: helper.__code__.co_argcount]
    code = compiled(helper, takes, (major, minor), at_link_time=True, unsigned=False)
    program = NumbaKernel(function=helper, grid=(grid, 1), block=(block, 1))
    return loaded(link(code, f"{major}{minor}", at_link_time=True)[1]).launcher(program, stream, scalars)
