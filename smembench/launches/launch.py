"""A launch of any kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from smembench.launches.array_argument import Argument
from smembench.launches.dimensions import Dimensions


class Launch(NamedTuple):
    """A launch of any kernel.

    Attributes:
        grid, block: in 1 to 3 dimensions; Triton decides on the block, so None will do.
        arguments: in the kernel's order.
        named: arguments by name, and Triton's ``num_warps`` and ``num_stages``.
        shared_bytes: bytes of dynamic shared memory; Triton decides on them, too.
        cluster: in 1 to 3 dimensions; None for that of the kernel, if it has one.
    """

    grid: Dimensions
    block: Dimensions | None
    arguments: Sequence[Argument]
    named: Mapping[str, Any]
    shared_bytes: int = 0
    cluster: Dimensions | None = None
