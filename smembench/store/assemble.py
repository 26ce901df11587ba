"""Trials to measurements: samples are combined, and figures that the hardware cannot reach are rejected. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import isfinite

from smembench.kernels import registry
from smembench.kernels.problems import PROBLEMS
from smembench.model.case import Case
from smembench.model.device import DeviceInfo
from smembench.model.groups import grouped
from smembench.model.measurement import Measurement, Prediction, Sample, Status, Trial, merged
from smembench.stats.summary import ci_width
from smembench.store.plausibility import bytes_per_clock, impossible, peak_percent

Predict = Callable[[Case, str | None, int | None], Prediction]
"""Predicts a case from the device's compute capability and the kernel's registers per thread."""


CI_WIDTH = {"cuda": 0.005, "cpu": 0.02}
"""Default target for ``ci_width`` by kind of device; looser on CPUs, which are noisier."""


def ci_widths(precision: float | None) -> dict[str, float]:
    """Targets for ``ci_width`` by kind of device; ``precision`` is a config's, in percent."""
    return CI_WIDTH if precision is None else dict.fromkeys(CI_WIDTH, precision / 100)


def unpredicted(case: Case, capability: str | None, registers: int | None) -> Prediction:
    """No prediction, the default of ``assemble``."""
    return Prediction()


def assemble(
    cases: Iterable[Case],
    trials: Iterable[Trial],
    infos: Mapping[str, DeviceInfo],
    ci_widths: Mapping[str, float],
    predict: Predict | None = unpredicted,
) -> list[Measurement]:
    """Measurements of the cases that have trials, in the order of the cases, with predictions by ``predict``.

    A case may have any number of trials. ``infos`` are the devices by name; ``ci_widths`` are the largest ``ci_width``
    that count as converged, by kind of device. Without ``predict`` all that kernels declare is left out, shared memory
    too, and so is the import of Numba.
    """
    by_case = grouped(trials, lambda trial: trial.case)
    return [
        _measurement(case, by_case[case], infos[case.device], ci_widths[case.kind], predict)
        for case in cases
        if case in by_case
    ]


def _measurement(
    case: Case, trials: Sequence[Trial], info: DeviceInfo, target: float, predict: Predict | None
) -> Measurement:
    problem = PROBLEMS[case.problem]
    ordered = sorted(trials, key=lambda trial: trial.round)
    bad = next((trial for trial in ordered if trial.status is not Status.OK), None)
    errors = [trial.max_error for trial in ordered if trial.max_error is not None and isfinite(trial.max_error)]
    blank = Measurement(
        case=case,
        status=bad.status if bad else Status.OK,
        reason=bad.reason if bad else "",
        started_at_utc=ordered[0].started_at_utc,
        bytes_moved=problem.bytes_moved(case),
        flops=problem.flops(case),
        shared_bytes=registry.kernel_of(case).shared_bytes(case) if predict else 0,
        verified=all(trial.verified for trial in ordered),
        max_error=max(errors, default=None),
        rounds=len(ordered),
        discarded=sum(trial.discarded for trial in ordered),
        conditions=merged([trial.conditions for trial in ordered]),
        resources=ordered[-1].resources,
        notes="; ".join(dict.fromkeys(note for trial in ordered for note in trial.notes)) or None,
    )
    if bad:
        return blank
    samples = tuple(Sample(trial.round, index, value) for trial in ordered for index, value in enumerate(trial.samples))
    if not samples:
        return replace(blank, status=Status.FAILED, reason="interrupted before the first sample")
    width = ci_width([sample.elapsed_ms for sample in samples])
    measured = replace(
        blank,
        samples=samples,
        rounds=len({sample.round for sample in samples}),
        ci_width=width,
        converged=width <= target,
        moments=tuple(moment for trial in ordered for moment in trial.moments),
        within_cache=None
        if info.l2_bytes is None or problem.memory != "device" or not blank.bytes_moved
        else blank.bytes_moved <= info.l2_bytes,
    )
    if reason := impossible(measured, info):
        # Nobody should quote such a figure, so the samples are dropped as well.
        return replace(blank, status=Status.FAILED, reason=reason)
    predicted = predict(case, info.compute_capability, blank.resources.registers) if predict else Prediction()
    return replace(
        measured,
        percent_of_peak=peak_percent(measured, info),
        bytes_per_clock=bytes_per_clock(measured, info),
        prediction=predicted,
        notes="; ".join(filter(None, (measured.notes, predicted.unexplained))) or None,
    )
