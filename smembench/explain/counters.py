"""Predictions compared with hardware counters, through Nsight Compute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from smembench.explain.analysis import Explanation, explain
from smembench.explain.ncu import profile
from smembench.model.case import Case
from smembench.model.hardware import SECTOR_BYTES
from smembench.toolchains.machine_code import machine_code

_SHARED = "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
_SHARED_REQUESTS = "smsp__inst_executed_op_shared_{}.sum"
_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_{}.sum"
_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_{}.sum"
_DRAM = "dram__bytes.sum"
_WARPS = "sm__warps_active.avg.pct_of_peak_sustained_active"
_SHORT = {"load": "ld", "store": "st"}
METRICS: tuple[str, ...] = (
    *(metric.format(short) for metric in (_SHARED, _SHARED_REQUESTS, _SECTORS, _REQUESTS) for short in _SHORT.values()),
    _DRAM,
    _WARPS,
)
ALLOWED_WAVEFRONTS = 0.15
"""Largest difference in wavefronts per request at which counters and prediction agree."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A figure of a case, predicted and counted; ``agrees`` is None for figures that are not judged."""

    case: Case
    figure: str
    predicted: float | None
    counted: float
    agrees: bool | None = None


def compare(cases: Sequence[Case], capability: str | None) -> list[Comparison]:
    """Predict and count every case.

    Wavefronts per shared request have to agree within ``ALLOWED_WAVEFRONTS``, sectors per global request exactly (to
    0.005, the rounding of a quotient). What is predicted is what the machine code has: the compiler merges, for
    example, reads of A's tile in ``tiled``, so the counters see fewer and wider requests than the source has. Three
    comparisons are not judged: requests and bytes of all global loads with those of the trace, DRAM bytes with
    compulsory bytes, and achieved with theoretical occupancy. They depend on more than the kernel.

    Raises:
        UsageError: if ncu is not installed.
    """
    readings = profile(cases, METRICS, cache_control="all", launches=3, uncounted=1, asked_by="explain --measure")
    return [
        found
        for case, reading in zip(cases, readings, strict=True)
        for found in _compare(explain(case, capability, machine_code(case, capability)), reading)
    ]


def _compare(explained: Explanation, reading: dict[str, float]) -> list[Comparison]:
    case, found = explained.case, []
    for figure, counter, requested, predict, allowed in (
        ("wavefronts a shared", _SHARED, _SHARED_REQUESTS, explained.wavefronts, ALLOWED_WAVEFRONTS),
        ("sectors a global", _SECTORS, _REQUESTS, explained.sectors, 0.005),
    ):
        for kind, short in _SHORT.items():
            requests, predicted = reading[requested.format(short)], predict(kind)
            if requests or predicted is not None:
                counted = reading[counter.format(short)] / requests if requests else 0.0
                agrees = predicted is not None and abs(counted - predicted) <= allowed
                found.append(Comparison(case, f"{figure} {kind}", predicted, counted, agrees))
    requests, moved = reading[_REQUESTS.format("ld")], SECTOR_BYTES * reading[_SECTORS.format("ld")]
    found.append(Comparison(case, "global load requests", sum(load.requests for load in explained.loads), requests))
    found.append(Comparison(case, "global load bytes", sum(load.bytes for load in explained.loads), moved))
    compulsory = float(explained.work.memory_bytes) or None  # 0 for problems of shared memory alone
    found.append(Comparison(case, "DRAM bytes", compulsory, reading[_DRAM]))
    resident = None if explained.occupancy is None else 100 * explained.occupancy.fraction
    found.append(Comparison(case, "occupancy %", resident, reading[_WARPS]))
    return found
