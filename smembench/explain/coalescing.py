"""Coalescing of global memory accesses: a request moves whole sectors of 32 bytes, even if it needs only a part.

Source: CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory" (capability 6.0 and later: as many 32-byte
transactions as serve all the threads of the warp). Addresses and widths are as in
``active_lanes``, which raises ValueError for what cannot be; a ``way`` is as in ``AccessSite``.

NVIDIA documents no rule for copies of 16 bytes past the L1 (``cp.async.cg``). Of rows that begin at any multiple of 16
bytes an H200 counted one sector for each pair of neighbouring lanes and each line of 128 bytes that it touches.
"""

from __future__ import annotations

from collections.abc import Sequence

from smembench.explain.warp import active_lanes
from smembench.model.hardware import LINE_BYTES, SECTOR_BYTES

_PAST_L1 = 16
"""Bytes per lane of copies that leave the L1 out."""


def sectors(addresses: Sequence[int | None], width: int, way: str = "") -> int:
    """Distinct 32-byte sectors that the active lanes touch; an aligned element of up to 16 bytes lies in one.

    Of asynchronous copies of 16 bytes as many as are counted: more or fewer where pairs of lanes begin inside a sector.
    """
    if way == "asynchronous" and width == _PAST_L1:
        return len({(lane // 2, address // LINE_BYTES) for lane, address in active_lanes(addresses, width)})
    return len({address // SECTOR_BYTES for _, address in active_lanes(addresses, width)})


def ideal_sectors(addresses: Sequence[int | None], width: int) -> int:
    """Fewest sectors that hold as many distinct bytes as requested; 0 without an active lane."""
    return -(-_distinct_bytes(addresses, width) // SECTOR_BYTES)


def efficiency(addresses: Sequence[int | None], width: int, way: str = "") -> float:
    """Distinct bytes requested over bytes moved (32 per sector), above 0 and at most 1; 1 without an active lane."""
    moved = SECTOR_BYTES * sectors(addresses, width, way)
    return _distinct_bytes(addresses, width) / moved if moved else 1.0


def _distinct_bytes(addresses: Sequence[int | None], width: int) -> int:
    return width * len({address for _, address in active_lanes(addresses, width)})
