"""Requests of a whole launch to global memory, by array.

The programming guide counts accesses by threads: a product without shared memory reads A B.width times and B A.height
times; with it, B.width / block_size and A.height / block_size times. Hardware counts requests by warps and the sectors
that they touch: a broadcast of one element to 32 lanes is 32 reads, one request and one sector.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from smembench.explain.coalescing import ideal_sectors, sectors
from smembench.explain.requests import Request
from smembench.model.groups import grouped
from smembench.model.hardware import SECTOR_BYTES, WAVEFRONT_BYTES


@dataclass(frozen=True, slots=True)
class GlobalTraffic:
    """All loads of a global array by a launch, all its stores, or all its atomics.

    Attributes:
        accesses: by threads.
        per_element: the same per element of the array, whether any thread accesses it or not.
        requests: requests by warps.
        sectors: 32-byte sectors that each request touches, added up.
        wavefronts: the fewest that can serve these requests.
        together: lanes of a request that access the same bytes, at most.
        size: bytes of the array.
    """

    array: str
    kind: str
    accesses: int
    per_element: float
    requests: int
    sectors: int
    wavefronts: int
    together: int = 1
    size: int = 0

    @property
    def compulsory(self) -> float:
        """Bytes of the array, or of as many of its elements as there are accesses by threads: each once."""
        return self.size * min(self.per_element, 1.0)

    @property
    def bytes(self) -> int:
        """Bytes of these sectors."""
        return SECTOR_BYTES * self.sectors


def traffic(arrays: Mapping[str, int], requests: Iterable[Request]) -> tuple[GlobalTraffic, ...]:
    """Loads, stores and atomics of a launch's requests per global array; ``arrays`` are their bytes by name."""
    of_arrays = (request for request in requests if request.site.space == "global")
    groups = grouped(of_arrays, lambda request: (request.site.array, request.site.kind))
    return tuple(
        _add_up(array, kind, groups[array, kind], size)
        for array, size in arrays.items()
        for kind in ("load", "store", "atomic")
        if (array, kind) in groups
    )


def _add_up(array: str, kind: str, requests: Sequence[Request], size: int) -> GlobalTraffic:
    accesses = asked = count = touched = wavefronts = 0
    together = 1
    for request in requests:
        width, weight = request.site.width, request.weight
        lanes = Counter(address for address in request.addresses if address is not None)
        accesses += weight * lanes.total()
        asked += weight * width * lanes.total()
        together = max(together, *lanes.values())
        count += weight
        touched += weight * sectors(request.addresses, width, request.site.way)
        wavefronts += weight * -(-SECTOR_BYTES * ideal_sectors(request.addresses, width) // WAVEFRONT_BYTES)
    return GlobalTraffic(
        array, kind, accesses, asked / max(size, 1), count, touched, wavefronts, together=together, size=size
    )
