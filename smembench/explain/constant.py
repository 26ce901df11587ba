"""Constant memory: a request is split into one per distinct address.

"A request is then split into as many separate requests as there are different memory addresses in the initial request,
decreasing throughput by a factor equal to the number of separate requests" (CUDA C++ Programming Guide, Device Memory
Accesses, Constant Memory).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean

from smembench.explain.recorder import AccessSite, Request
from smembench.explain.trace import Trace


@dataclass(frozen=True, slots=True)
class ConstantAccess:
    """A constant-memory access in the source, over all warps of a launch; ``addresses`` is the mean per request."""

    site: AccessSite
    source: str
    requests: int
    addresses: float


def addresses(lanes: Iterable[int | None]) -> int:
    """Distinct addresses of a request; inactive lanes are None."""
    return len({address for address in lanes if address is not None})


def constant_accesses(traced: Trace, requests: Iterable[Request]) -> tuple[ConstantAccess, ...]:
    """The constant-memory accesses among a launch's requests, in the order of the source."""
    found: dict[AccessSite, list[Request]] = {}
    for request in requests:
        if request.site.space == "constant":
            found.setdefault(request.site, []).append(request)
    return tuple(
        ConstantAccess(
            site=site,
            source=traced.source(site.line),
            requests=sum(request.weight for request in requests),
            addresses=fmean(
                [addresses(request.addresses) for request in requests], [request.weight for request in requests]
            ),
        )
        for site, requests in sorted(found.items(), key=lambda item: (item[0].line, item[0].array))
    )
