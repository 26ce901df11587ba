"""Figures relative to what the hardware can do, and the check that none is impossible.

A benchmark that prints an impossible figure has a bug; the case fails instead.
"""

from __future__ import annotations

from smembench.kernels import registry
from smembench.kernels.problems import PROBLEMS
from smembench.model.device import DeviceInfo
from smembench.model.hardware import WAVEFRONT_BYTES
from smembench.model.measurement import Measurement
from smembench.model.peaks import memory_bound_gb_s, peak_gflop_s

_SLACK = 1.01
"""NVML's clocks are nominal, so a figure may exceed a bound by 1 %."""


def bytes_per_clock(measurement: Measurement, info: DeviceInfo) -> float | None:
    """Bytes of shared memory per clock and multiprocessor, at the SM clock during the samples.

    None for problems of other memories, and if the clock or the number of multiprocessors is unknown.
    """
    summary, mhz = measurement.summary, measurement.conditions.sm_clock_mhz
    if PROBLEMS[measurement.case.problem].memory != "shared" or summary is None or not mhz or not info.sm_count:
        return None
    return measurement.bytes_moved / (summary.median * mhz * 1e3 * info.sm_count)


def impossible(measurement: Measurement, info: DeviceInfo) -> str:
    """The reason why a figure is impossible, or ""."""
    case, problem = measurement.case, PROBLEMS[measurement.case.problem]
    bound = memory_bound_gb_s(measurement.bytes_moved, info) if problem.memory == "device" else None
    gb_s = measurement.effective_gb_s
    if gb_s is not None and bound is not None and gb_s > _SLACK * bound:
        return (
            f"impossible: {gb_s:.0f} GB/s, and with a peak of {info.peak_gb_s:.0f} GB/s of memory and "
            f"{info.l2_bytes} bytes of L2 no launch can exceed {bound:.0f}"
        )
    per_clock = bytes_per_clock(measurement, info)
    if per_clock is not None:
        most = problem.most_bytes_per_clock(case, registry.kernel_of(case).computes)
        if per_clock > _SLACK * most:
            what = f"{per_clock:.1f} bytes per clock and multiprocessor"
            return f"impossible: {what}, whose shared memory gives {most} at most"
    gflop_s, peak = measurement.gflop_s, peak_gflop_s(case.dtype, info)
    if gflop_s is not None and peak is not None and gflop_s > _SLACK * peak:
        return f"impossible: {gflop_s:.0f} GFLOP/s is over this device's peak of {peak:.0f}"
    return ""


def peak_percent(measurement: Measurement, info: DeviceInfo) -> float | None:
    """% of the peak that bounds the problem: of arithmetic or of its memory (see ``Problem.bound``)."""
    problem = PROBLEMS[measurement.case.problem]
    if problem.bound == "arithmetic":
        gflop_s, peak = measurement.gflop_s, peak_gflop_s(measurement.case.dtype, info)
        return None if gflop_s is None or peak is None else 100 * gflop_s / peak
    if (per_clock := bytes_per_clock(measurement, info)) is not None:
        return 100 * per_clock / WAVEFRONT_BYTES
    gb_s = measurement.effective_gb_s
    if problem.memory != "device" or gb_s is None or info.peak_gb_s is None:
        return None
    return 100 * gb_s / info.peak_gb_s
