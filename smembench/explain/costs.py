"""Cost of the accesses of a trace: wavefronts and conflicts in shared memory, sectors in global memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import fmean
from typing import NamedTuple

from smembench.explain import banks, coalescing
from smembench.explain.constant import addresses
from smembench.explain.occupancy import Occupancy, occupancy
from smembench.explain.requests import AccessSite, Request
from smembench.explain.tiles import TileTraffic
from smembench.explain.trace import Trace
from smembench.explain.traffic import GlobalTraffic
from smembench.model.errors import UsageError
from smembench.model.groups import grouped
from smembench.model.hardware import SECTOR_BYTES
from smembench.toolchains.machine_code import MachineCode


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
class DistributedAccess(Access):
    """An access to the shared memory of other blocks of the cluster; ``bytes`` are those of all lanes' elements."""

    bytes: int


@dataclass(frozen=True, slots=True)
class ConstantAccess(Access):
    """An access to constant memory; ``addresses`` is the mean of distinct ones per request."""

    addresses: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """A traced launch and the cost of its accesses.

    Attributes:
        title: the kernel, its file, and how it is launched.
        pad: columns of padding at the end of a tile's rows.
        requests: of the launch, one for all of an access site with the same cost; ``weight`` is their number.
        shared, memory, constant: accesses in the source to shared, global and constant memory; without atomics on
            shared memory, whose cost follows no known rule.
        distributed: accesses to the shared memory of other blocks of the cluster, which no other figure has.
        traffic: a launch's requests to global memory, by array.
        tiles: what the TMA copies and writes and what tensor cores read of shared memory, which no other figure has.
        idle: requests to shared memory that warps without an active lane issue, by way and kind, as far as
            the machine code shows them.
        code: None if it is not known; the occupancy then does not count registers.
        occupancy: None without a compute capability.
        compiler: the maker of the PTX in the place of NVIDIA's compilers, "" for these.
    """

    title: str
    pad: int
    trace: Trace
    requests: Sequence[Request]
    shared: tuple[SharedAccess, ...]
    memory: tuple[GlobalAccess, ...]
    constant: tuple[ConstantAccess, ...]
    traffic: tuple[GlobalTraffic, ...]
    shared_bytes: int
    threads: int
    code: MachineCode | None
    occupancy: Occupancy | None
    idle: Mapping[str, int] = field(default_factory=dict)
    tiles: tuple[TileTraffic, ...] = ()
    distributed: tuple[DistributedAccess, ...] = ()
    compiler: str = ""

    def degree(self, kind: str) -> float | None:
        """Degree of conflict of all shared loads, or of all stores (``kind``); None if there are none.

        Raises:
            UsageError: for another kind.
        """
        _check_kind(kind)
        chosen = [access for access in self.shared if access.site.kind == kind]
        ideal = sum(access.ideal * access.requests for access in chosen)
        return sum(access.of_all for access in chosen) / ideal if ideal else None

    def wavefronts(self, kind: str, way: str = "") -> float | None:
        """Wavefronts per request of all shared loads, or of all stores, of a ``way``; None if there are none.

        As hardware counts them: idle requests count, and take none.
        """
        name = f"{way} {kind}".strip()
        pairs = [(access.wavefronts, access.requests) for access in self.shared if access.site.name == name]
        return mean([*pairs, (0.0, self.idle.get(name, 0))])

    @property
    def shared_atomics(self) -> tuple[str, ...]:
        """The shared arrays with atomics, whose wavefronts follow no known rule."""
        sites = {accesses.site for accesses in self.trace.accesses}
        return tuple(sorted({site.array for site in sites if (site.space, site.kind) == ("shared", "atomic")}))

    @property
    def loads(self) -> tuple[GlobalTraffic, ...]:
        """The loads of the problem's arrays; ``memory`` has those of partial sums and flags, too."""
        return tuple(access for access in self.traffic if access.kind == "load")

    def sectors(self, kind: str) -> float | None:
        """Sectors per request of all global loads, or of all stores; None if there are none.

        Raises:
            UsageError: for another kind.
        """
        _check_kind(kind)
        return mean((access.sectors, access.requests) for access in self.memory if access.site.kind == kind)

    @property
    def load_requests(self) -> int:
        """Requests of all global loads."""
        return sum(access.requests for access in self.memory if access.site.kind == "load")

    @property
    def load_bytes(self) -> int:
        """Bytes of the sectors that all global loads touch."""
        return SECTOR_BYTES * round(sum(access.of_all for access in self.memory if access.site.kind == "load"))

    def worst(self, kind: str | None = None) -> float:
        """The highest degree of conflict of a shared access, of one ``kind`` if given; 1 without any.

        Raises:
            UsageError: for another kind than load and store.
        """
        if kind is not None:
            _check_kind(kind)
        return max((access.degree for access in self.shared if kind in (None, access.site.kind)), default=1.0)

    def conflict_line(self, kind: str) -> int | None:
        """The line of the shared access of this kind with the most wavefronts beyond the ideal; None without any."""
        lost = Counter[int]()
        for access in self.shared:
            if access.site.kind == kind:
                lost[access.site.line] += round((access.wavefronts - access.ideal) * access.requests)
        return max(+lost, key=lambda line: lost[line], default=None)


def _check_kind(kind: str) -> None:
    if kind not in ("load", "store"):
        raise UsageError(f"kind {kind!r}: give load or store")


def mean(weighted: Iterable[tuple[float, int]]) -> float | None:
    """The weighted mean of (value, weight) pairs; None if the weights add up to 0."""
    pairs = list(weighted)
    total = sum(weight for _, weight in pairs)
    return sum(value * weight for value, weight in pairs) / total if total else None


def resident_blocks(
    capability: str | None, threads: int, shared_bytes: int, code: MachineCode | None = None
) -> Occupancy | None:
    """The occupancy on a compute capability; None without one.

    Raises:
        UsageError: for an unknown compute capability, and for a block that it does not take.
    """
    try:
        registers = None if code is None else code.registers
        return None if capability is None else occupancy(capability, threads, shared_bytes, registers)
    except ValueError as error:
        raise UsageError(f"{error}") from None


class ByMemory(NamedTuple):
    """Accesses in the source to shared, global and constant memory, and to shared memory of other blocks."""

    shared: tuple[SharedAccess, ...]
    memory: tuple[GlobalAccess, ...]
    constant: tuple[ConstantAccess, ...]
    distributed: tuple[DistributedAccess, ...]


def by_memory(traced: Trace, requests: Sequence[Request]) -> ByMemory:
    """The cost of the accesses of a trace over all requests of a launch."""
    return ByMemory(
        tuple(_shared(*pair) for pair in _by_site(traced, requests, "shared") if pair[0][0].kind != "atomic"),
        tuple(_global(*pair) for pair in _by_site(traced, requests, "global")),
        tuple(
            ConstantAccess(*access, addresses=_mean_per_request(addresses, group))
            for access, group in _by_site(traced, requests, "constant")
        ),
        tuple(
            DistributedAccess(*access, bytes=sum(map(_requested_bytes, group)))
            for access, group in _by_site(traced, requests, "distributed")
        ),
    )


def _requested_bytes(request: Request) -> int:
    return request.weight * request.site.width * sum(address is not None for address in request.addresses)


_Place = tuple[AccessSite, str, int]
"""The fields of an ``Access``."""


def _by_site(traced: Trace, requests: Iterable[Request], space: str) -> list[tuple[_Place, list[Request]]]:
    """The requests to a memory space by access, in the order of the source."""
    # A line of the kernel may call a helper that makes the access in either of two lines.
    asked = (request for request in requests if request.site.space == space)
    groups = grouped(asked, lambda request: replace(request.site, place=0))
    return [
        ((site, traced.source(site.line), sum(request.weight for request in groups[site])), groups[site])
        for site in sorted(groups, key=lambda site: (site.line, site.kind, site.array))
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
    width, way = access[0].width, access[0].way
    efficiency = [coalescing.efficiency(request.addresses, width, way) for request in requests]
    moved = [coalescing.sectors(request.addresses, width, way) * request.weight for request in requests]
    return GlobalAccess(
        *access,
        sectors=_mean_per_request(partial(coalescing.sectors, way=way), requests),
        ideal=_mean_per_request(coalescing.ideal_sectors, requests),
        efficiency=fmean(efficiency, moved),
    )
