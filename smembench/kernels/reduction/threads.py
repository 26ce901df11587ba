"""Threads of a block, and what they load: a power of two, so that they can be halved, and several vectors each.

With a power of two no index of the last block wraps around, even where n is almost 2^32.
"""

from __future__ import annotations

from collections.abc import Callable

from smembench.kernels.common.grids import block_of, ceil_div, threads_of
from smembench.kernels.intrinsics.vector import vector_width
from smembench.model.case import Case
from smembench.model.hardware import WARP

VECTORS = 4
"""Independent 128-bit loads per thread."""


def power_of_two(least: int) -> Callable[[Case], str | None]:
    """The refusal of a block without a power of two of threads, from ``least`` on, or None."""

    def unsupported(case: Case) -> str | None:
        threads = threads_of(case)
        if threads >= least and threads & (threads - 1) == 0:
            return None
        from_least = f", at least {least}" if least > 1 else ""
        return f"{case.kernel} needs a power of two of threads per block{from_least}, not {block_of(case)}"

    return unsupported


def warps_of(case: Case) -> int:
    """Warps of a block."""
    return threads_of(case) // WARP


def blocks_of_vectors(case: Case, threads: int) -> int:
    """Blocks of so many threads that cover n elements with ``VECTORS`` vectors per thread; at least one."""
    return max(ceil_div(case.n // vector_width(case.dtype), VECTORS * threads), 1)
