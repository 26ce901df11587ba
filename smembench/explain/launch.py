"""All requests of a launch, from traces of a few of its blocks and loop iterations.

Iterations of a loop over k, or over passes, repeat the same requests, so the count of each request grows by a constant
per period. Two traces, the second one period longer, give that constant and so the counts of the whole launch. The
counts are exact, with one exception: if some lanes of a warp skip an access in a loop that is not over a range from a
literal number on, their later accesses are matched with the wrong request, since a trace takes the lanes' n-th accesses
at a site as one request.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from smembench.explain.banks import ideal_wavefronts, is_broadcast, wavefronts
from smembench.explain.coalescing import efficiency, ideal_sectors, sectors
from smembench.explain.compiled import as_compiled
from smembench.explain.constant import addresses
from smembench.explain.moved import moved_loads
from smembench.explain.requests import Request, distinct
from smembench.explain.trace import Trace, trace, traceable
from smembench.kernels.kernel import Kernel
from smembench.kernels.problems import PROBLEMS
from smembench.model.case import Case
from smembench.model.pattern import pattern_period
from smembench.toolchains.machine_code import MachineCode


def launch(
    kernel: Kernel,
    case: Case,
    *,
    apart: bool = False,
    code: MachineCode | None = None,
    multiprocessors: int | None = None,
) -> tuple[Trace, list[Request]]:
    """The trace of the case's pattern, with the accesses to tiles of a launch of the case; and that launch's requests.

    A request stands for all requests of its access site with the same cost; ``weight`` is their number. With ``apart``
    it stands for those with the same addresses, and only requests to shared memory are returned. With the machine
    ``code`` the accesses are those that the compiler made of the source's. With a GPU's number of ``multiprocessors``
    the blocks of a persistent grid share tiles as they do there; without it each has one.

    Raises:
        UsageError: as ``trace``.
    """
    problem, program = PROBLEMS[case.problem], traceable(kernel, case)
    period = pattern_period(case, kernel.results)
    ragged = bool(case.m % period or case.n % period)

    moved = {} if code is None else moved_loads(code.lined)
    segments = program.segments(multiprocessors) if program.segments and multiprocessors else None

    def traced(smaller: Case) -> Trace:
        if program.grid_dependent:
            smaller = replace(smaller, m=case.m, n=case.n)
        return trace(kernel, smaller, program.grid, ragged=ragged, segments=segments, moved=moved)

    alike = _by_addresses if apart else by_cost
    smaller = problem.pattern.smaller(case, kernel.results)
    longer, times = problem.pattern.longer(case, smaller)
    # Each of a tile's blocks needs two steps, which it may copy ahead; and a tile's edges may be no part of the loop.
    for _ in range(max(2 * max(segments or (0,)), program.edge_steps)):
        if times:
            smaller, (longer, times) = longer, problem.pattern.longer(case, longer)
    traces = [traced(smaller), *([traced(longer)] if times else [])]
    if code is not None:
        traces = as_compiled(traces, code.memory)
    first, *rest = traces
    found = alike(first)
    for second in rest:
        for key, more in alike(second).items():
            before = found[key].weight if key in found else 0
            found[key] = replace(more, weight=before + times * max(more.weight - before, 0))
        more_tiles = {each: count - first.tiles.get(each, 0) for each, count in second.tiles.items()}
        tiles = {each: first.tiles.get(each, 0) + times * more for each, more in more_tiles.items()}
        mistakes = tuple(sorted({*first.mistakes, *second.mistakes}))
        first = replace(first, mistakes=mistakes, tiles={**first.tiles, **tiles})
    return first, list(found.values())


def by_cost(traced: Trace) -> dict[Hashable, Request]:
    """One request for all of an access site with the same cost, by site and cost."""
    # A loop has thousands of requests but few shapes: the cost is computed once per shape.
    found: dict[Hashable, Request] = {}
    for request in distinct(traced.accesses, shifted=True):
        key = (request.site, _cost(request))
        before = found.get(key)
        found[key] = request if before is None else replace(before, weight=before.weight + request.weight)
    return found


def _by_addresses(traced: Trace) -> dict[Hashable, Request]:
    """One request to shared memory for all of an access site with the same addresses."""
    shared = (accesses for accesses in traced.accesses if accesses.site.space == "shared")
    return {(request.site, request.addresses): request for request in distinct(shared, shifted=False)}


def _cost(request: Request) -> tuple[float, ...]:
    """All figures of a request; a larger k moves rows of A apart by whole sectors, which does not change them."""
    lanes, width, kind = request.addresses, request.site.width, request.site.kind
    active = sum(address is not None for address in lanes)
    match request.site.space:
        case "shared":
            ideal = ideal_wavefronts(lanes, width, kind)
            return active, wavefronts(lanes, width, kind), ideal, is_broadcast(lanes, width)
        case "global":
            way = request.site.way
            return active, sectors(lanes, width, way), ideal_sectors(lanes, width), efficiency(lanes, width, way)
        case "distributed":
            return (active,)
        case _:
            return active, addresses(lanes, width)
