"""Visits to measurements: samples put together, figures held against what the hardware can do. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import median

from smembench.case import Case
from smembench.devices.base import DeviceInfo
from smembench.explain.prediction import predict
from smembench.gates import bytes_per_clock, impossible, peak_percent
from smembench.kernels import registry
from smembench.measurement import Conditions, Measurement, Sample, Status, Visit
from smembench.plan import Planned
from smembench.problems import PROBLEMS
from smembench.summary import precision_of


def assemble(
    planned: Iterable[Planned], visits: Iterable[Visit], infos: Mapping[str, DeviceInfo], precision: Mapping[str, float]
) -> list[Measurement]:
    """One measurement for every planned case that was visited, in the plan's order.

    Args:
        planned: the plan.
        visits: any number a case, in any order.
        infos: the devices by name.
        precision: the relative half-width that counts as converged, by kind of device.
    """
    by_case: dict[Case, list[Visit]] = {}
    for visit in visits:
        by_case.setdefault(visit.case, []).append(visit)
    return [
        _measurement(item.case, by_case[item.case], infos[item.case.device], precision[item.case.kind])
        for item in planned
        if item.case in by_case
    ]


def _measurement(case: Case, visits: Sequence[Visit], info: DeviceInfo, wanted: float) -> Measurement:
    problem = PROBLEMS[case.problem]
    ordered = sorted(visits, key=lambda visit: visit.round)
    bad = next((visit for visit in ordered if visit.status is not Status.OK), None)
    errors = [visit.max_error for visit in ordered if visit.max_error is not None]
    blank = Measurement(
        case=case,
        status=bad.status if bad else Status.OK,
        reason=bad.reason if bad else "",
        started_at_utc=ordered[0].started_at_utc,
        bytes_moved=problem.bytes_moved(case),
        flops=problem.flops(case),
        shared_bytes=registry.kernel_of(case).shared_bytes(case),
        verified=all(visit.verified for visit in ordered),
        max_error=max(errors, default=None),
        rounds=len(ordered),
        discarded=sum(visit.discarded for visit in ordered),
        conditions=merged([visit.conditions for visit in ordered]),
        resources=ordered[-1].resources,
    )
    if bad:
        return blank
    samples = tuple(Sample(visit.round, index, value) for visit in ordered for index, value in enumerate(visit.samples))
    if not samples:
        return replace(blank, status=Status.FAILED, reason="interrupted before the first sample")
    reached = precision_of([sample.elapsed_ms for sample in samples])
    measured = replace(
        blank,
        samples=samples,
        precision=reached,
        converged=reached <= wanted,
        within_cache=None
        if info.l2_bytes is None or problem.memory != "device"
        else blank.bytes_moved <= info.l2_bytes,
    )
    if reason := impossible(measured, info):
        # Not a figure: nobody should quote it, so the samples go as well.
        return replace(blank, status=Status.FAILED, reason=reason)
    predicted = predict(case, info.compute_capability, blank.resources.registers)
    return replace(
        measured,
        percent_of_peak=peak_percent(measured, info),
        bytes_per_clock=bytes_per_clock(measured, info),
        prediction=predicted,
    )


def merged(states: Sequence[Conditions]) -> Conditions:
    """One state for several: middle clocks, the highest of the rest, every throttle reason."""

    def numbers(name: str) -> list[float]:
        return [value for state in states if (value := getattr(state, name)) is not None]

    def whole(values: list[float]) -> int | None:
        return round(median(values)) if values else None

    reasons = [state.throttle_reasons for state in states if state.throttle_reasons is not None]
    seen = dict.fromkeys(name for reason in reasons if reason != "none" for name in reason.split("+"))
    highest_temperature = max(numbers("temperature_c"), default=None)
    others = max(numbers("other_processes"), default=None)
    return Conditions(
        sm_clock_mhz=whole(numbers("sm_clock_mhz")),
        memory_clock_mhz=whole(numbers("memory_clock_mhz")),
        temperature_c=None if highest_temperature is None else round(highest_temperature),
        power_w=max(numbers("power_w"), default=None),
        throttle_reasons="+".join(seen) if seen else "none" if reasons else None,
        other_processes=None if others is None else round(others),
        cpu_mhz=median(mhz) if (mhz := numbers("cpu_mhz")) else None,
        cpu_governor=next((state.cpu_governor for state in states if state.cpu_governor), None),
        cpu_load=max(numbers("cpu_load"), default=None),
        cpu_waiting=max(numbers("cpu_waiting"), default=None),
    )
