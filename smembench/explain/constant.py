"""Constant memory: a request is split into one for each different address in it.

"A request is then split into as many separate requests as there are different memory addresses in the initial request,
decreasing throughput by a factor equal to the number of separate requests" (CUDA C++ Programming Guide, Device Memory
Accesses, Constant Memory).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean

from smembench.explain.trace import Place, Request, Trace


@dataclass(frozen=True, slots=True)
class ConstantAccess:
    """One constant access of the source over all warps of a launch; ``addresses`` is the mean a request."""

    place: Place
    source: str
    requests: int
    addresses: float


def addresses(lanes: Iterable[int | None]) -> int:
    """Different addresses of a request, and so the requests it is split into; lanes that take no part are None."""
    return len({address for address in lanes if address is not None})


def constant_accesses(traced: Trace, requests: Iterable[Request]) -> tuple[ConstantAccess, ...]:
    """The constant ones of a launch's requests, in the order of the source."""
    found: dict[Place, list[Request]] = {}
    for request in requests:
        if request.place.space == "constant":
            found.setdefault(request.place, []).append(request)
    return tuple(
        ConstantAccess(
            place=place,
            source=traced.source(place.line),
            requests=sum(request.weight for request in requests),
            addresses=fmean(
                [addresses(request.addresses) for request in requests], [request.weight for request in requests]
            ),
        )
        for place, requests in sorted(found.items(), key=lambda item: (item[0].line, item[0].array))
    )
