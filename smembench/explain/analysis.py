"""The cost of a trace: wavefronts and conflicts in shared memory, sectors in global memory, occupancy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean

from smembench.explain import banks, coalescing
from smembench.explain.constant import addresses
from smembench.explain.launch import launch
from smembench.explain.occupancy import Occupancy, occupancy
from smembench.explain.recorder import AccessSite, Request
from smembench.explain.roof import Work
from smembench.explain.trace import Trace, traceable
from smembench.explain.traffic import GlobalTraffic, traffic
from smembench.kernels import registry
from smembench.kernels.problems import PROBLEMS
from smembench.model.case import Case
from smembench.model.errors import UsageError
from smembench.toolchains.machine_code import MachineCode

MAX_PAD = 32


@dataclass(frozen=True, slots=True)
class Access:
    """A memory access in the source, over all warps of a launch; ``requests`` is their number."""

    site: AccessSite
    source: str
    requests: int


@dataclass(frozen=True, slots=True)
class SharedAccess(Access):
    """An access to shared memory.

    Attributes:
        wavefronts, ideal: per request, actual and without conflicts.
        worst: the request with the highest degree of conflict.
        broadcast: whether all requests are broadcasts.
    """

    wavefronts: float
    ideal: float
    worst: Request
    broadcast: bool

    @property
    def degree(self) -> float:
        """The n of an n-way conflict: 1 is free of conflicts, 32 the worst."""
        return self.wavefronts / self.ideal

    @property
    def of_all(self) -> float:
        """Wavefronts of all its requests."""
        return self.wavefronts * self.requests


@dataclass(frozen=True, slots=True)
class GlobalAccess(Access):
    """An access to global memory.

    Attributes:
        sectors, ideal: per request, actual and fewest.
        efficiency: requested bytes over bytes moved.
    """

    sectors: float
    ideal: float
    efficiency: float

    @property
    def of_all(self) -> float:
        """Sectors of all its requests."""
        return self.sectors * self.requests


@dataclass(frozen=True, slots=True)
class ConstantAccess(Access):
    """An access to constant memory; ``addresses`` is the mean of distinct ones per request."""

    addresses: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """A traced case and the cost of its accesses.

    Attributes:
        shared, memory, constant: accesses in the source to shared, global and constant memory.
        traffic: a launch's requests to global memory, by array.
        work: what a launch has to do, for the roofs.
        code: None if no compiler is installed; the occupancy then does not count registers.
        occupancy: None without a compute capability.
    """

    case: Case
    trace: Trace
    shared: tuple[SharedAccess, ...]
    memory: tuple[GlobalAccess, ...]
    constant: tuple[ConstantAccess, ...]
    traffic: tuple[GlobalTraffic, ...]
    work: Work
    shared_bytes: int
    threads: int
    code: MachineCode | None
    occupancy: Occupancy | None

    def degree(self, kind: str) -> float | None:
        """Degree of conflict of all shared loads, or of all stores (``kind``); None if there are none."""
        chosen = [access for access in self.shared if access.site.kind == kind]
        ideal = sum(access.ideal * access.requests for access in chosen)
        return sum(access.of_all for access in chosen) / ideal if ideal else None

    def wavefronts(self, kind: str) -> float | None:
        """Wavefronts per request of all shared loads, or of all stores; None if there are none."""
        return mean((access.wavefronts, access.requests) for access in self.shared if access.site.kind == kind)

    @property
    def loads(self) -> tuple[GlobalTraffic, ...]:
        """The loads of global arrays."""
        return tuple(access for access in self.traffic if access.kind == "load")

    @property
    def intensity(self) -> float:
        """FLOPs per compulsory byte."""
        return self.work.flops / self.bytes_moved

    @property
    def bytes_moved(self) -> int:
        """The problem's compulsory bytes."""
        return PROBLEMS[self.case.problem].bytes_moved(self.case)

    def sectors(self, kind: str) -> float | None:
        """Sectors per request of all global loads, or of all stores; None if there are none."""
        return mean((access.sectors, access.requests) for access in self.memory if access.site.kind == kind)


def mean(weighted: Iterable[tuple[float, int]]) -> float | None:
    """The weighted mean of (value, weight) pairs; None if the weights add up to 0."""
    pairs = list(weighted)
    total = sum(weight for _, weight in pairs)
    return sum(value * weight for value, weight in pairs) / total if total else None


def explain(case: Case, capability: str | None = None, code: MachineCode | None = None) -> Explanation:
    """Trace a CUDA case and add up what its accesses cost.

    The occupancy is that of a compute capability, such as ``9.0``; None leaves it out. ``code`` is what the kernel is
    compiled to, if known.

    Raises:
        UsageError: for a kernel that cannot be traced, and for an unknown compute capability.
    """
    kernel = registry.kernel_of(case)
    problem = PROBLEMS[case.problem]
    program = traceable(kernel, case)
    threads = program.block[0] * program.block[1]
    shared_bytes = kernel.shared_bytes(case)
    try:
        registers = None if code is None else code.registers
        resident = None if capability is None else occupancy(capability, threads, shared_bytes, registers)
    except ValueError as error:
        raise UsageError(f"{error}") from None
    traced, requests = launch(kernel, case)
    shared = tuple(_shared(*found) for found in _by_site(traced, requests, "shared"))
    asked = traffic(case, requests)
    work = Work(
        dtype=case.dtype,
        memory_bytes=0 if problem.memory == "shared" else problem.bytes_moved(case),
        wavefronts=sum(access.of_all for access in shared) + sum(access.wavefronts for access in asked),
        flops=problem.flops(case),
    )
    return Explanation(
        case=case,
        trace=traced,
        shared=shared,
        memory=tuple(_global(*found) for found in _by_site(traced, requests, "global")),
        constant=tuple(
            ConstantAccess(*access, addresses=_mean_per_request(addresses, group))
            for access, group in _by_site(traced, requests, "constant")
        ),
        traffic=asked,
        work=work,
        shared_bytes=shared_bytes,
        threads=threads,
        code=code,
        occupancy=resident,
    )


_Place = tuple[AccessSite, str, int]
"""The fields of an ``Access``."""


def _by_site(traced: Trace, requests: Iterable[Request], space: str) -> list[tuple[_Place, list[Request]]]:
    """The requests to a memory space by access, in the order of the source."""
    found: dict[AccessSite, list[Request]] = {}
    for request in requests:
        if request.site.space == space:
            found.setdefault(request.site, []).append(request)
    return [
        ((site, traced.source(site.line), sum(request.weight for request in found[site])), found[site])
        for site in sorted(found, key=lambda site: (site.line, site.kind, site.array))
    ]


def _mean_per_request(figure: Callable[[Sequence[int | None], int], float], requests: Sequence[Request]) -> float:
    """The mean of a figure of a request's addresses and width."""
    figures = [figure(request.addresses, request.site.width) for request in requests]
    return fmean(figures, [request.weight for request in requests])


def _shared(access: _Place, requests: Sequence[Request]) -> SharedAccess:
    kind = access[0].kind
    return SharedAccess(
        *access,
        wavefronts=_mean_per_request(partial(banks.wavefronts, kind=kind), requests),
        ideal=_mean_per_request(partial(banks.ideal_wavefronts, kind=kind), requests),
        worst=max(requests, key=lambda request: banks.conflict_degree(request.addresses, request.site.width, kind)),
        broadcast=all(banks.is_broadcast(request.addresses, request.site.width) for request in requests),
    )


def _global(access: _Place, requests: Sequence[Request]) -> GlobalAccess:
    width = access[0].width
    efficiency = [coalescing.efficiency(request.addresses, width) for request in requests]
    moved = [coalescing.sectors(request.addresses, width) * request.weight for request in requests]
    return GlobalAccess(
        *access,
        sectors=_mean_per_request(coalescing.sectors, requests),
        ideal=_mean_per_request(coalescing.ideal_sectors, requests),
        efficiency=fmean(efficiency, moved),
    )


def best_pad(case: Case, limit: int = MAX_PAD) -> tuple[int | None, list[tuple[int, float, float]]]:
    """The smallest pad without conflicts, and every pad tried with its degrees of load and store conflicts.

    The pad is None if no pad up to ``limit`` is free of conflicts.

    Raises:
        UsageError: for a kernel whose tile is not padded.
    """
    kernel = registry.kernel_of(case)
    if not kernel.pad:
        raise UsageError(f"--best-pad: {case.kernel} has no padded tile; name a …Pad kernel, or give --best-swizzle")
    tried = []
    for pad in range(limit + 1):
        explained = explain(replace(case, pad=pad))
        loads, stores = explained.degree("load") or 1.0, explained.degree("store") or 1.0
        tried.append((pad, loads, stores))
        if loads == stores == 1.0:
            return pad, tried
    return None, tried
