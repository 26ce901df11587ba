"""Cases in, measurements out. The one place where a failure becomes a row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from time import perf_counter
from typing import TYPE_CHECKING, Any

from smembench.case import Case
from smembench.devices.base import Device, OutOfBounds
from smembench.kernels import registry
from smembench.measurement import Measurement, Status
from smembench.plan import Planned
from smembench.problems import PROBLEMS
from smembench.timing.sampling import MIN_SAMPLES, StopRule, collect

if TYPE_CHECKING:
    from smembench.problems.base import Array

_PREDICT_FROM_OPERATIONS = 2**27
"""CPU cases with more operations than this are first tried at a smaller size."""
_TRIAL_OPERATIONS = 2**25


@dataclass(slots=True)
class _Workload:
    """Inputs of the case in hand and the references made from them, kept while the next case needs the same."""

    key: tuple[object, ...] = ()
    inputs: tuple[Array, ...] = ()
    references: dict[str, Any] | None = None


class Runner:
    """Runs cases one after the other on open devices."""

    def __init__(self, devices: Mapping[str, Device], rule: StopRule, seed: int) -> None:
        self._devices = devices
        self._rule = rule
        self._seed = seed
        self._workload = _Workload()

    def run(
        self, planned: Iterable[Planned], begin: Callable[[Case], None] = lambda case: None
    ) -> Iterator[Measurement]:
        """One measurement for every case, in order; ``begin`` is called before each.

        Only KeyboardInterrupt and its like end the run; whatever else goes wrong is in the measurement.
        """
        for item in planned:
            begin(item.case)
            blank = self._blank(item.case)
            if item.skip:
                yield replace(blank, status=Status.SKIPPED, reason=item.skip)
                continue
            try:
                yield self._measure(item.case, blank)
            except Exception as error:  # a benchmark must outlive any kernel
                yield replace(blank, status=Status.FAILED, reason=_one_line(error))

    def _blank(self, case: Case) -> Measurement:
        problem = PROBLEMS[case.problem]
        return Measurement(
            case=case,
            status=Status.FAILED,
            started_at_utc=datetime.now(UTC).isoformat(timespec="seconds"),
            bytes_moved=problem.bytes_moved(case),
            flops=problem.flops(case),
            shared_bytes=registry.kernel_of(case).shared_bytes(case),
            peak_gb_s=self._devices[case.device].info.peak_gb_s,
        )

    def _measure(self, case: Case, blank: Measurement) -> Measurement:
        if case.kind == "cpu" and (reason := self._too_long(case)):
            return replace(blank, status=Status.SKIPPED, reason=reason)
        problem, kernel, device = PROBLEMS[case.problem], registry.kernel_of(case), self._devices[case.device]
        inputs = self._inputs(case)
        prepared = device.prepare(case, kernel, problem, inputs)
        try:
            prepared.poison()
            prepared.launch()
            try:
                verdict = problem.check(case, self._reference(case, kernel.computes), prepared.output())
            except OutOfBounds as error:
                return replace(blank, status=Status.WRONG_RESULT, reason=str(error))
            checked = replace(blank, verified=verdict.passed, max_error=verdict.error)
            if not verdict.passed:
                return replace(checked, status=Status.WRONG_RESULT, reason=verdict.detail)
            samples = collect(prepared.sampler(), self._rule)
            return replace(checked, status=Status.OK, samples=samples, conditions=device.conditions())
        finally:
            prepared.close()

    def _inputs(self, case: Case) -> tuple[Array, ...]:
        problem = PROBLEMS[case.problem]
        key = problem.input_key(case)
        if self._workload.key != key:
            self._workload = _Workload()  # let go of the old arrays before making new ones
            self._workload = _Workload(key, problem.inputs(case, self._seed), {})
        return self._workload.inputs

    def _reference(self, case: Case, computes: str) -> Any:
        references = self._workload.references
        assert references is not None
        if computes not in references:
            references[computes] = PROBLEMS[case.problem].reference(case, self._workload.inputs, computes)
        return references[computes]

    def _too_long(self, case: Case) -> str:
        """Why this case would take longer than allowed, predicted from a smaller one, or ""."""
        problem = PROBLEMS[case.problem]
        if problem.operations(case) <= _PREDICT_FROM_OPERATIONS:
            return ""
        trial = case
        while problem.operations(trial) > _TRIAL_OPERATIONS:
            trial = replace(
                trial,
                m=max(trial.m // 2, 1),
                n=max(trial.n // 2, 1),
                k=None if trial.k is None else max(trial.k // 2, 1),
            )
        kernel, device = registry.kernel_of(case), self._devices[case.device]
        prepared = device.prepare(trial, kernel, problem, problem.inputs(trial, self._seed))
        try:
            prepared.launch()  # compiles
            begun = perf_counter()
            prepared.launch()
            seconds = perf_counter() - begun
        finally:
            prepared.close()
        once = seconds * problem.operations(case) / problem.operations(trial)
        needed = once * (1 + MIN_SAMPLES)
        if needed <= self._rule.max_seconds:
            return ""
        return (
            f"predicted {once:.3g} s a launch, {needed:.3g} s for a check and {MIN_SAMPLES} samples, over the "
            f"{self._rule.max_seconds:g} s of --max-seconds (from {trial.size} in {seconds:.3g} s)"
        )


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
