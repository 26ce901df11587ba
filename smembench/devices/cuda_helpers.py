"""Kernels that timing needs: an empty one, one that takes a few µs, and one that flushes the L2."""

from __future__ import annotations

from typing import Any

from smembench.kernels.numba_cuda import cuda, uint32

_NEVER = 1.0
"""A sum of zeros never exceeds it, but the compiler does not know that."""


def empty() -> None:
    """Do nothing: all its time is the launch."""


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
