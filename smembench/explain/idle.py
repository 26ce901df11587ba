"""Requests by warps without an active lane: they move nothing, but hardware counts them.

The compiler guards an access by a predicate where the source has an ``if``, and then every warp that comes there issues
it, with whatever lanes take the branch. ptxas also puts loads whose predicate is false between asynchronous copies.
How often warps come there follows from the machine code: those of one region (``memory_instructions.regions``) are
issued equally often, and a trace counts the barriers and the accesses without a predicate among them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from smembench.explain.requests import Request
from smembench.explain.trace import Trace
from smembench.model.groups import grouped
from smembench.toolchains.machine_code import MachineCode
from smembench.toolchains.memory_instructions import UNREAD, MemoryInstruction, Region
from smembench.toolchains.source_lines import Lined

_Issued = tuple[str, str, str]
"""Space, kind and way of an access site, which counters distinguish."""
_COPY: _Issued = ("shared", "store", "asynchronous")
_WAYS = {"load": "matrix", "store": "asynchronous"}
"""The ways of instructions whose width is not read; those of stmatrix, which no kernel guards, are left out."""


def idle_requests(traced: Trace, requests: Sequence[Request], code: MachineCode, warps: int) -> dict[str, int]:
    """Idle requests of a launch to shared memory by way and kind, such as ``store`` and ``asynchronous store``.

    A kind is left out if it has none, and if that is not known.

    Args:
        traced: has the kinds whose requests are not those of the machine code.
        requests: those of a launch that have an active lane.
        warps: those of the grid.
    """
    guarded = {_issued(op.access) for op in code.lined if op.access.guarded and op.access.space == "shared"}
    once = guarded - {_issued(op.access) for op in code.lined if op.region}
    counts = {issued: of_warps(requests, code.lined, warps, issued) for issued in once}
    others = {issued for issued in guarded - once if issued[:2] not in traced.unmatched}
    counts |= {issued: of_regions(requests, code.lined, warps, issued) for issued in others}
    return {f"{way} {kind}".strip(): count for (_, kind, way), count in sorted(counts.items()) if count > 0}


def of_warps(requests: Iterable[Request], lined: Iterable[Lined], warps: int, issued: _Issued) -> int:
    """Idle requests of instructions that every warp issues once: warps minus requests with an active lane."""
    active = sum(request.weight for request in requests if _asked(request) == issued)
    return warps * sum(_issued(op.access) == issued for op in lined) - active


def of_regions(requests: Sequence[Request], lined: Sequence[Lined], warps: int, issued: _Issued) -> int:
    """Idle requests of a kind's guarded instructions, over all lines for which they are known."""
    active: Counter[tuple[int, _Issued]] = Counter()
    callers: Counter[tuple[int, int]] = Counter()
    for request in requests:
        active[request.site.place, _asked(request)] += request.weight
        if _asked(request) == issued:
            callers[request.site.place, request.site.line] += request.weight
    visits, total = _visits(active, lined, warps), 0
    for line, of_line in _by_line(lined, issued).items():
        guarded = [op for op in of_line if op.access.guarded]
        if not guarded:
            continue
        may = [op for op in of_line if not op.access.never]
        by_caller = [count for (place, _), count in sorted(callers.items()) if place == line]
        by_branches = _by_branches(active, line, guarded, lined)  # each way misses some where the other does not
        if all(op.region in visits for op in guarded):
            come = sum(visits[op.region] for op in guarded)
            by_branches = max(by_branches, come - _with_lanes(by_caller, may))
        total += by_branches
    return total


def _with_lanes(by_caller: Sequence[int], may: Sequence[Lined]) -> int:
    """Requests with an active lane by a line's guarded instructions, of all that its callers make there.

    A helper's instructions lie in the order of the lines that call it, equally many of each.
    """
    counts = by_caller if by_caller and len(may) % len(by_caller) == 0 else [sum(by_caller)]
    size = max(len(may) // len(counts), 1)
    guarded = [sum(op.access.guarded for op in may[at : at + size]) for at in range(0, len(may), size)]
    return sum(count * some // size for count, some in zip(counts, guarded, strict=False))


def _by_branches(
    active: Mapping[tuple[int, _Issued], int], line: int, guarded: Sequence[Lined], lined: Sequence[Lined]
) -> int:
    """Idle requests of a line's guarded instructions from the trace of PTX: see ``ptx.machine``."""
    _, kind, way = _issued(guarded[0].access)
    idle = active[line, ("branch", kind, way)]
    never = sum(op.access.never for op in guarded)
    copies = sum(_issued(op.access) == _COPY for op in lined if op.line == line)
    if never and copies:
        _, kind, way = _COPY
        idle += (active[line, _COPY] + active[line, ("branch", kind, way)]) * never // copies
    return idle


def _visits(active: Mapping[tuple[int, _Issued], int], lined: Sequence[Lined], warps: int) -> dict[Region, int]:
    """Visits of warps per region, as far as lines without a predicate give them.

    A line gives those of the one region among its instructions that is not known yet.
    """
    visits: dict[Region, int] = {frozenset(): warps}
    counted = [
        (active[line, issued], Counter(op.region for op in of_line))
        for issued in {_issued(op.access) for op in lined}
        for line, of_line in _by_line(lined, issued).items()
        if active[line, issued] and not any(op.access.guarded for op in of_line)
    ]
    alone = [(count, regions) for count, regions in counted if len(regions) == 1]
    for count, regions in alone:
        ((region, size),) = regions.items()
        if count // size:
            visits[region] = max(visits.get(region, 0), count // size)
    before = 0
    while before != len(visits):
        before = len(visits)
        for count, regions in counted:
            others = [region for region in regions if region not in visits]
            if len(others) == 1:
                rest = count - sum(size * visits[region] for region, size in regions.items() if region in visits)
                if rest > 0:
                    visits[others[0]] = rest // regions[others[0]]
    return visits


def _by_line(lined: Iterable[Lined], issued: _Issued) -> dict[int, list[Lined]]:
    return grouped((op for op in lined if _issued(op.access) == issued), lambda op: op.line)


def _issued(access: MemoryInstruction) -> _Issued:
    way = _WAYS[access.kind] if access.space == "shared" and access.width == UNREAD else ""
    return access.space, access.kind, way


def _asked(request: Request) -> _Issued:
    return request.site.space, request.site.kind, request.site.way
