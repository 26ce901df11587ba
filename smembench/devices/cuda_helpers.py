"""Kernels that serve measuring and are not measured themselves."""

from __future__ import annotations

from typing import Any

from smembench.kernels.numba_cuda import cuda, uint32

_NEVER = 1.0
"""A sum of zeros never reaches it, but the compiler does not know."""


def empty() -> None:
    """Do nothing: what is left of its time is the launch."""


def busy(buffer: Any, rounds: Any) -> None:
    """Keep a thread at multiplications that wait for each other; the buffer begins with 0, and stays as it is."""
    total = buffer[0]
    i = uint32(0)
    while i < rounds:
        total = total * total
        i = uint32(i + uint32(1))
    if total > _NEVER:
        buffer[0] = total


def read_all(buffer: Any, count: Any) -> None:
    """Read a buffer of zeros, so that the L2 holds its lines, clean, and nothing else."""
    total = buffer[0]
    i = uint32(cuda.grid(1))
    while i < count:
        total += buffer[i]
        i = uint32(i + uint32(cuda.gridsize(1)))
    if total > _NEVER:
        buffer[0] = total
