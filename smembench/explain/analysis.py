"""From a trace to what it costs: wavefronts and conflicts in shared memory, sectors in global memory, occupancy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import fmean
from typing import Any

from smembench.case import Case
from smembench.errors import UsageError
from smembench.explain import banks, coalescing
from smembench.explain.occupancy import Occupancy, occupancy
from smembench.explain.trace import Place, Request, Trace, trace
from smembench.kernels import registry
from smembench.measurement import Prediction
from smembench.problems import PROBLEMS
from smembench.problems.base import pattern_period

MAX_PAD = 32


@dataclass(frozen=True, slots=True)
class SharedAccess:
    """One shared access of the source over all warps of the grid; figures are means a request.

    ``degree`` is wavefronts over those of a conflict-free request: 1 is free of conflicts, 32 the worst.
    """

    place: Place
    source: str
    requests: int
    wavefronts: float
    ideal: float
    worst: Request
    broadcast: bool

    @property
    def degree(self) -> float:
        """The n of an n-way conflict."""
        return self.wavefronts / self.ideal


@dataclass(frozen=True, slots=True)
class GlobalAccess:
    """One global access of the source over all warps of the grid; figures are means a request.

    ``efficiency`` is the share of the bytes moved that was asked for.
    """

    place: Place
    source: str
    requests: int
    sectors: float
    ideal: float
    efficiency: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a trace says of a case. ``intensity`` is FLOPs over compulsory bytes."""

    case: Case
    trace: Trace
    shared: tuple[SharedAccess, ...]
    memory: tuple[GlobalAccess, ...]
    shared_bytes: int
    threads: int
    occupancy: Occupancy | None
    intensity: float

    def degree(self, kind: str) -> float | None:
        """Wavefronts over the ideal of all shared loads, or of all stores; None where there are none."""
        chosen = [access for access in self.shared if access.place.kind == kind]
        ideal = sum(access.ideal * access.requests for access in chosen)
        return sum(access.wavefronts * access.requests for access in chosen) / ideal if ideal else None

    def wavefronts(self, kind: str) -> float | None:
        """Wavefronts a request of all shared loads, or of all stores; None where there are none."""
        return _mean((access.wavefronts, access.requests) for access in self.shared if access.place.kind == kind)

    @property
    def bytes_moved(self) -> int:
        """The problem's compulsory bytes."""
        return PROBLEMS[self.case.problem].bytes_moved(self.case)

    def sectors(self, kind: str) -> float | None:
        """Sectors a request of all global loads, or of all stores; None where there are none."""
        return _mean((access.sectors, access.requests) for access in self.memory if access.place.kind == kind)


def _mean(weighted: Iterable[tuple[float, int]]) -> float | None:
    """The mean of values by their weights; None for no weight at all."""
    pairs = list(weighted)
    total = sum(weight for _, weight in pairs)
    return sum(value * weight for value, weight in pairs) / total if total else None


def explain(case: Case, capability: str | None = None, registers: int | None = None) -> Explanation:
    """Trace a CUDA case and add up what its accesses cost.

    Args:
        case: what ``smembench`` would time.
        capability: compute capability for the occupancy, such as ``9.0``; None leaves it out.
        registers: registers a thread, where they are known; without them occupancy does not count them.

    Raises:
        UsageError: for a kernel without source to trace, and for an unknown compute capability.
    """
    kernel = registry.kernel_of(case)
    problem = PROBLEMS[case.problem]
    program = kernel.build(case)
    threads = program.block[0] * program.block[1]
    shared_bytes = kernel.shared_bytes(case)
    try:
        resident = None if capability is None else occupancy(capability, threads, shared_bytes, registers)
    except ValueError as error:
        raise UsageError(f"{error}") from None
    period = pattern_period(case, kernel.results)
    ragged = bool(case.m % period or case.n % period)
    traced = trace(kernel, problem.pattern(case, kernel.results), program.grid, ragged=ragged)
    return Explanation(
        case=case,
        trace=traced,
        shared=tuple(_shared(place, group, traced) for place, group in _places(traced.requests, "shared")),
        memory=tuple(_global(place, group, traced) for place, group in _places(traced.requests, "global")),
        shared_bytes=shared_bytes,
        threads=threads,
        occupancy=resident,
        intensity=problem.flops(case) / problem.bytes_moved(case),
    )


def _places(requests: Iterable[Request], space: str) -> list[tuple[Place, list[Request]]]:
    found: dict[Place, list[Request]] = {}
    for request in requests:
        if request.place.space == space:
            found.setdefault(request.place, []).append(request)
    return sorted(found.items(), key=lambda item: (item[0].line, item[0].kind, item[0].array))


def _shared(place: Place, requests: Sequence[Request], traced: Trace) -> SharedAccess:
    weights = [request.weight for request in requests]
    costs = [banks.wavefronts(request.addresses, place.width) for request in requests]
    ideal = [banks.ideal_wavefronts(request.addresses, place.width) for request in requests]
    worst = max(range(len(requests)), key=lambda index: costs[index] / ideal[index])
    return SharedAccess(
        place=place,
        source=traced.source(place.line),
        requests=sum(weights),
        wavefronts=fmean(costs, weights),
        ideal=fmean(ideal, weights),
        worst=requests[worst],
        broadcast=all(banks.is_broadcast(request.addresses, place.width) for request in requests),
    )


def _global(place: Place, requests: Sequence[Request], traced: Trace) -> GlobalAccess:
    weights = [request.weight for request in requests]
    sectors = [coalescing.sectors(request.addresses, place.width) for request in requests]
    ideal = [coalescing.ideal_sectors(request.addresses, place.width) for request in requests]
    efficiency = [coalescing.efficiency(request.addresses, place.width) for request in requests]
    moved = [count * weight for count, weight in zip(sectors, weights, strict=True)]
    return GlobalAccess(
        place=place,
        source=traced.source(place.line),
        requests=sum(weights),
        sectors=fmean(sectors, weights),
        ideal=fmean(ideal, weights),
        efficiency=fmean(efficiency, moved),
    )


def best_pad(case: Case, limit: int = MAX_PAD) -> tuple[int | None, list[tuple[int, float, float]]]:
    """The smallest pad free of conflicts on both sides, and every pad tried with its load and store degree.

    The search ends there; None when no pad up to ``limit`` is free of them.

    Raises:
        UsageError: for a kernel whose tile is not padded.
    """
    kernel = registry.kernel_of(case)
    if not kernel.pad:
        raise UsageError(f"--best-pad: {case.kernel} has no padded tile; name a …Pad kernel")
    tried = []
    for pad in range(limit + 1):
        explained = explain(replace(case, pad=pad))
        loads, stores = explained.degree("load") or 1.0, explained.degree("store") or 1.0
        tried.append((pad, loads, stores))
        if loads == stores == 1.0:
            return pad, tried
    return None, tried


def predict(case: Case, capability: str | None) -> Prediction:
    """Predictions for a case; all None for CPU cases and for kernels that cannot be traced."""
    if case.kind != "cuda":
        return Prediction()
    return _predict(replace(case, device="cuda:0", cache="warm"), capability)


@lru_cache(maxsize=1024)
def _predict(case: Case, capability: str | None) -> Prediction:
    try:
        try:
            explained = explain(case, capability)
        except UsageError:  # a capability whose limits are not known
            explained = explain(case)
    except Exception:  # a kernel that cannot be traced is timed all the same
        return Prediction()
    return Prediction(
        explained.degree("load"),
        explained.degree("store"),
        explained.sectors("load"),
        explained.sectors("store"),
        None if explained.occupancy is None else explained.occupancy.fraction,
    )


def to_dict(explained: Explanation) -> dict[str, Any]:
    """Plain data for JSON."""
    resident = explained.occupancy
    return {
        "case_id": explained.case.id,
        "shared_bytes": explained.shared_bytes,
        "threads": explained.threads,
        "shared": [
            {
                "line": access.place.line,
                "kind": access.place.kind,
                "array": access.place.array,
                "source": access.source,
                "requests": access.requests,
                "wavefronts_per_request": access.wavefronts,
                "ideal_wavefronts_per_request": access.ideal,
                "conflict_degree": access.degree,
                "broadcast": access.broadcast,
            }
            for access in explained.shared
        ],
        "global": [
            {
                "line": access.place.line,
                "kind": access.place.kind,
                "array": access.place.array,
                "source": access.source,
                "requests": access.requests,
                "sectors_per_request": access.sectors,
                "ideal_sectors_per_request": access.ideal,
                "efficiency": access.efficiency,
            }
            for access in explained.memory
        ],
        "occupancy": None
        if resident is None
        else {
            "blocks_per_sm": resident.blocks,
            "warps_per_sm": resident.warps,
            "fraction": resident.fraction,
            "limiter": resident.limiter,
        },
        "arithmetic_intensity_flop_per_byte": explained.intensity,
    }
