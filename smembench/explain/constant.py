"""Constant memory: a request is split into one per distinct address.

"A request is then split into as many separate requests as there are different memory addresses in the initial request,
decreasing throughput by a factor equal to the number of separate requests" (CUDA C++ Programming Guide, Device Memory
Accesses, Constant Memory).
"""

from __future__ import annotations

from collections.abc import Sequence

from smembench.explain.warp import active_lanes


def addresses(lanes: Sequence[int | None], width: int) -> int:
    """Distinct addresses that the active lanes read, for elements of ``width`` bytes."""
    return len({address for _, address in active_lanes(lanes, width)})
