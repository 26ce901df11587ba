"""What a whole launch asks of global memory, from the trace of a few blocks and steps.

The programming guide counts accesses by threads: without shared memory A is read B.width times and B A.height times,
with it B.width / block_size and A.height / block_size times. Hardware counts requests of warps and the sectors they
touch: a broadcast of one element to 32 lanes is 32 reads, one request and one sector.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from smembench.case import Case
from smembench.explain.coalescing import ideal_sectors, sectors
from smembench.explain.trace import Request, Trace, alike
from smembench.hardware import SECTOR_BYTES, WAVEFRONT_BYTES
from smembench.problems import PROBLEMS
from smembench.problems.base import ITEMSIZE


@dataclass(frozen=True, slots=True)
class Traffic:
    """All loads of one global array by a launch, or all its stores.

    ``per_element`` is how often threads ask for each element of the array, ``requests`` those of warps, ``sectors`` the
    32-byte sectors they touch, every time anew, and ``wavefronts`` the fewest that can serve them.
    """

    array: str
    kind: str
    per_element: float
    requests: float
    sectors: float
    wavefronts: float

    @property
    def bytes(self) -> float:
        """Bytes of the sectors, which L1, L2 and memory move between them."""
        return SECTOR_BYTES * self.sectors


def repeats(case: Case, shorter: Case, again: int = 0) -> float:
    """How much more often a whole case does what one with fewer steps does, ``again`` of them a second time."""
    steps = PROBLEMS[case.problem].steps
    return (steps(case) + again) / (steps(shorter) + again)


def traffic(case: Case, smaller: Case, traced: Trace, again: int = 0) -> tuple[Traffic, ...]:
    """Loads and stores of every global array, in the order of the problem's arrays.

    Args:
        case: the whole case.
        smaller: its pattern, in which the loop over k is shorter.
        traced: the trace of that, whose weights stand for the whole grid. Requests, sectors and wavefronts are exact
            where k is a multiple of the tile.
        again: the program's.
    """
    problem = PROBLEMS[case.problem]
    shorter = problem.elements(replace(case, k=smaller.k))
    found = []
    for array, elements, of_trace in zip(problem.arrays, problem.elements(case), shorter, strict=True):
        ratio = 1.0 if elements == of_trace else repeats(case, smaller, again)
        for kind in ("load", "store"):
            requests = [
                request
                for request in traced.requests
                if (request.place.space, request.place.kind, request.place.array) == ("global", kind, array)
            ]
            if requests:
                found.append(_add_up(array, kind, requests, elements * ITEMSIZE[case.dtype], ratio))
    return tuple(found)


def _add_up(array: str, kind: str, requests: Sequence[Request], size: int, ratio: float) -> Traffic:
    asked = count = touched = wavefronts = 0
    for request, weight in alike(requests, SECTOR_BYTES):
        width = request.place.width
        asked += weight * width * sum(address is not None for address in request.addresses)
        count += weight
        touched += weight * sectors(request.addresses, width)
        wavefronts += weight * -(-SECTOR_BYTES * ideal_sectors(request.addresses, width) // WAVEFRONT_BYTES)
    return Traffic(array, kind, ratio * asked / size, ratio * count, ratio * touched, ratio * wavefronts)
