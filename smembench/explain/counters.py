"""Predictions compared with hardware counters, through Nsight Compute."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from smembench.explain.analysis import Explanation, explain
from smembench.explain.ncu import Profiled, profile, read_report
from smembench.explain.ncu_child import Work
from smembench.explain.tiles import TileTraffic
from smembench.model.case import Case
from smembench.model.errors import UsageError
from smembench.model.hardware import SECTOR_BYTES
from smembench.toolchains.machine_code import machine_code


class Shared(NamedTuple):
    """Accesses to shared memory that have counters of their own; ``kind`` and ``way`` are as in ``AccessSite``."""

    name: str
    kind: str
    wavefronts: str
    requests: str
    way: str = ""


_WAVEFRONTS = "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared{}.sum"
_REQUESTS = "smsp__inst_executed_op_{}.sum"
PLAIN = (
    Shared("shared load", "load", _WAVEFRONTS.format("_op_ld"), _REQUESTS.format("shared_ld")),
    Shared("shared store", "store", _WAVEFRONTS.format("_op_st"), _REQUESTS.format("shared_st")),
)
OTHER = (
    Shared("matrix load", "load", _WAVEFRONTS.format("_op_ldsm"), _REQUESTS.format("ldsm"), "matrix"),
    Shared("asynchronous copy", "store", _WAVEFRONTS.format("_op_ldgsts"), _REQUESTS.format("ldgsts"), "asynchronous"),
)
"""``ldmatrix`` and ``cp.async``, which the counters of loads and stores do not see."""


class Tiles(NamedTuple):
    """A counter of the TMA or of the tensor cores per launch; ``kind`` is that of ``TileAccess``."""

    name: str
    kind: str
    total: str
    predicted: Callable[[TileTraffic], int]


TILES = (
    Tiles(
        "wgmma's wavefronts",
        "operand",
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_gmma.sum",
        lambda tiles: tiles.wavefronts,
    ),
    Tiles(
        "bytes copied by the TMA",
        "copy",
        "l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld.sum",
        lambda tiles: tiles.arriving_bytes,
    ),
    Tiles(
        "bytes written by the TMA",
        "store",
        "l1tex__m_l1tex2xbar_write_bytes_mem_global_op_tma_st.sum",
        lambda tiles: tiles.global_bytes,
    ),
)
"""Counters of a launch beyond those of threads' accesses."""
_ALL = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"
_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_{}.sum"
_GLOBAL_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_{}.sum"
_DRAM = "dram__bytes.sum"
_WARPS = "sm__warps_active.avg.pct_of_peak_sustained_active"
_SHORT = {"load": "ld", "store": "st"}
METRICS: tuple[str, ...] = (
    *(metric for op in PLAIN for metric in (op.wavefronts, op.requests)),
    *(metric.format(short) for metric in (_SECTORS, _GLOBAL_REQUESTS) for short in _SHORT.values()),
    _DRAM,
    _WARPS,
)
OPTIONAL: tuple[str, ...] = (
    *(metric for op in OTHER for metric in (op.wavefronts, op.requests)),
    *(tiles.total for tiles in TILES),
    _ALL,
)
"""Metrics of capability 8.0 or 9.0 and later; left out where ncu does not know them."""
ALLOWED = 0.005
"""Largest difference in wavefronts or sectors per request, or share of a launch's, at which counters and prediction
agree."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A figure of a case, predicted and counted; ``agrees`` is None for figures that are not judged."""

    case: Case
    figure: str
    predicted: float | None
    counted: float
    agrees: bool | None = None


def compare(cases: Sequence[Case], capability: str | None, multiprocessors: int | None = None) -> list[Comparison]:
    """Predict and count every case, on a GPU with the given number of multiprocessors.

    Wavefronts per request to shared memory and sectors per request to global memory have to agree within ``ALLOWED``,
    and so have a launch's wavefronts of wgmma and bytes of the TMA, which no counter of threads' requests has.
    What is predicted is what the machine code has: the compiler merges, for example, reads of A's tile in ``tiled``, so
    the counters see fewer and wider requests than the source has. Five comparisons are not judged: wavefronts of
    asynchronous copies, whose data arrive in parts (on an H200 the same copies took 5.65 wavefronts per request in
    one transpose and 5.87 in another, where 3.85 would do), all wavefronts of shared memory with those of
    the trace and of wgmma, requests and bytes of all global loads with those of the trace, DRAM bytes
    with compulsory bytes, and achieved with theoretical occupancy. They depend on more than the kernel's accesses. Nor
    is an access that is made or not for the data that were read (readGmem's store), nor are global loads of kernels
    whose blocks wait for each other (splitK's: an H100 counted about five loads of a count per warp and wait).

    Raises:
        UsageError: if ncu is not installed.
    """
    readings = profile(Work(cases, launches=3), METRICS, optional=OPTIONAL, cache_control="all", uncounted=1)
    return [
        comparison
        for case, reading in zip(cases, readings, strict=True)
        for comparison in _compare(
            explain(case, capability, machine_code(case, capability), multiprocessors, whole=True), reading
        )
    ]


def _compare(explained: Explanation, reading: Mapping[str, float]) -> Iterator[Comparison]:
    case = explained.case
    for op in (*PLAIN, *OTHER):
        if {op.wavefronts, op.requests} <= reading.keys():
            counted = reading[op.wavefronts], reading[op.requests]
            predicted = explained.wavefronts(op.kind, op.way)
            judged = op.way != "asynchronous"
            yield from _per_request(case, f"wavefronts per {op.name}", predicted, *counted, judged=judged)
    for kind, short in _SHORT.items():
        sectors, requests = reading[_SECTORS.format(short)], reading[_GLOBAL_REQUESTS.format(short)]
        figure, predicted = f"sectors per global {kind}", explained.sectors(kind)
        unknown = ("global", kind) in explained.untraced or (kind == "load" and explained.waits)
        yield from _per_request(case, figure, predicted, sectors, requests, judged=not unknown)
    for tiles in TILES:
        expected = sum(tiles.predicted(traffic) for traffic in explained.tiles if traffic.access.kind == tiles.kind)
        if (total := reading.get(tiles.total)) is not None and (total or expected):
            agrees = None if explained.untraced else math.isclose(total, expected, rel_tol=ALLOWED)
            yield Comparison(case, tiles.name, expected, total, agrees)
    if _ALL in reading:
        by_threads = sum(access.of_all for access in explained.shared)
        by_tensor_cores = sum(traffic.wavefronts for traffic in explained.tiles)
        yield Comparison(case, "shared wavefronts", by_threads + by_tensor_cores, reading[_ALL])
    requests, moved = reading[_GLOBAL_REQUESTS.format("ld")], SECTOR_BYTES * reading[_SECTORS.format("ld")]
    yield Comparison(case, "global load requests", explained.load_requests, requests)
    yield Comparison(case, "global load bytes", explained.load_bytes, moved)
    compulsory = float(explained.work.memory_bytes) or None  # 0 for problems of shared memory alone
    yield Comparison(case, "DRAM bytes", compulsory, reading[_DRAM])
    resident = None if explained.occupancy is None else 100 * explained.occupancy.fraction
    yield Comparison(case, "occupancy %", resident, reading[_WARPS])


_OF_SETS = {op.wavefronts.replace("smsp__sass_l1tex_", "l1tex__"): f"{op.name} wavefronts" for op in PLAIN}
"""Counters of ncu's own sets, which have no requests to shared memory."""
_READ_OR_WRITTEN = ("dram__bytes_read.sum", "dram__bytes_write.sum")
_TIME = "gpu__time_duration.sum"


def counted_in(path: Path) -> list[tuple[Profiled, str, float]]:
    """The figures in a report of ncu: kernel, name and value of each.

    Raises:
        UsageError: as ``read_report``, and for a report without any of the counters.
    """
    metrics = [*METRICS, *OPTIONAL, *_OF_SETS, *_READ_OR_WRITTEN, _TIME]
    rows = [(kernel, *figure) for kernel in read_report(path, metrics) for figure in _figures(kernel.counters)]
    if not rows:
        raise UsageError(f"{path}: has none of the counters; profile with: ncu --metrics {','.join(METRICS)}")
    return rows


def _figures(reading: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    """The figures of ``compare`` as far as they are counted."""
    per_request = [(f"wavefronts per {op.name}", op.wavefronts, op.requests) for op in (*PLAIN, *OTHER)]
    per_request += [
        (f"sectors per global {kind}", _SECTORS.format(short), _GLOBAL_REQUESTS.format(short))
        for kind, short in _SHORT.items()
    ]
    for figure, total, requests in per_request:
        if reading.get(requests) and total in reading:
            yield figure, reading[total] / reading[requests]
    totals = {_ALL: "shared wavefronts", _GLOBAL_REQUESTS.format("ld"): "global load requests", _DRAM: "DRAM bytes"}
    totals |= _OF_SETS | {tiles.total: tiles.name for tiles in TILES} | {_WARPS: "occupancy %"}
    if {*_READ_OR_WRITTEN} <= reading.keys():
        reading = {_DRAM: sum(reading[name] for name in _READ_OR_WRITTEN), **reading}
    yield from ((figure, reading[name]) for name, figure in totals.items() if name in reading)
    if _TIME in reading:
        yield "time µs", reading[_TIME] / 1e3


def _per_request(
    case: Case, figure: str, predicted: float | None, total: float, requests: float, *, judged: bool
) -> Iterator[Comparison]:
    """A figure per request, unless neither the trace nor the counters have such requests."""
    if requests or predicted:
        counted = total / requests if requests else 0.0
        agrees = predicted is not None and abs(counted - predicted) <= ALLOWED
        yield Comparison(case, figure, predicted, counted, agrees if judged else None)
