"""A trial: a case is launched, checked and sampled on its device. Runs in the worker process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

from smembench.devices.base import Device, OutOfBounds, Prepared
from smembench.kernels import registry
from smembench.kernels.kernel import Kernel
from smembench.kernels.problems import PROBLEMS
from smembench.model.case import Case
from smembench.model.errors import UsageError
from smembench.model.measurement import Status, Trial, merged, now_utc
from smembench.model.problem import Problem, Verification
from smembench.model.sustained import Moment
from smembench.model.text import duration
from smembench.run.sampling import Limit, collect
from smembench.stats.summary import MIN_SAMPLES
from smembench.toolchains.registry import Refused

if TYPE_CHECKING:
    from smembench.model.problem import Array

_PREDICT_FROM_OPERATIONS = 2**27
"""CPU cases with more operations than this are first timed at a smaller size."""
_SMALLER_OPERATIONS = 2**25

_NO_LOAD = "no sustained load: launches that are cold, copy, restore arrays or need no graph do not run back to back"

_UNCHECKED = Verification(True, None)
"""Of a launch of the user's that is checked against nothing."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request for a trial.

    Attributes:
        samples: number of samples to take.
        seconds: limit for sampling in this round.
        max_seconds: the case's limit over all rounds; a CPU case is skipped if ``MIN_SAMPLES`` would take longer.
        warmup: seconds of launches before the first sample.
        memory: bytes of the run's largest output and inputs on the device.
        sustained: seconds of launches back to back in place of samples, if not 0.
    """

    case: Case
    round: int
    samples: int
    seconds: float
    max_seconds: float
    warmup: float
    seed: int
    memory: tuple[int, ...] = ()
    sustained: float = 0.0


@dataclass(slots=True)
class _Workload:
    """Inputs of the current case and the references made from them, kept for later cases with the same key."""

    key: tuple[object, ...] = ()
    inputs: tuple[Array, ...] = ()
    references: dict[str, Any] | None = None


class TrialRunner:
    """Runs trials on open devices, and keeps inputs and references for the next one."""

    def __init__(self, devices: Mapping[str, Device], stopped: Callable[[], bool] = lambda: False) -> None:
        self._devices = devices
        self._stopped = stopped
        self._workload = _Workload()
        self._contracts: dict[Case, Problem] = {}

    def run(self, request: Request) -> Trial:
        """A trial, after which the next case gets inputs that no kernel wrote to.

        Raises:
            Exception: the device's or the kernel's; the device may be unusable afterwards.
        """
        kernel = registry.kernel_of(request.case)
        try:
            trial = self._trial(request, kernel)
        except UsageError as error:  # of a kernel, or a reference, of the user's
            trial = Trial(request.case, request.round, Status.FAILED, now_utc(), reason=str(error))
        if trial.status is not Status.OK or kernel.overwrites:
            self._workload = _Workload()
        return trial

    def _trial(self, request: Request, kernel: Kernel) -> Trial:
        """Check the case on a poisoned output, and sample it if the result is right.

        Where the case's inputs prove little, as zeros do, the kernel first has to be right on others. In the first
        round the output of the timed launches is checked too: a kernel may be right once and wrong afterwards, and a
        timed launch may have done nothing. Then the inputs are compared with those that the reference is computed from
        and that no kernel gets: one that writes to its inputs is wrong, unless it declares so.
        """
        case = request.case
        blank = Trial(case, request.round, Status.OK, now_utc())
        if case.kind == "cpu" and request.round == 0 and (reason := self._too_long(request)):
            return replace(blank, status=Status.SKIPPED, reason=reason)
        device = self._devices[case.device]
        device.reserve(request.memory)
        try:
            blank, prepared = self._first(blank, request, kernel)
        except Refused as refused:
            return replace(blank, status=Status.SKIPPED, reason=str(refused))
        if prepared is None:
            return blank
        with closing(prepared):
            checked = self._launched(blank, kernel, prepared)
            if checked.status is not Status.OK:
                return checked
            if request.sustained:
                return self._sustained(checked, request, kernel, prepared)
            # Poison and read the state before the sampler is made: its warm-up may be a slow case's first sample.
            if request.round == 0:
                prepared.poison()
            before = device.conditions()
            limit = Limit(request.samples, request.seconds, self._stopped)
            batch = collect(prepared.sampler(request.warmup), limit, device.conditions, before)
            if request.round == 0 and batch.values:
                again = self._checked(checked, kernel, prepared, timed=True)
                if again.status is not Status.OK:
                    return again
            if batch.values and min(batch.values) <= 0:
                reason = f"a sample of {min(batch.values):g} ms: shorter than the clock can time"
                return replace(checked, status=Status.FAILED, reason=reason)
            return replace(
                checked,
                samples=batch.values,
                discarded=len(batch.discarded),
                discarded_ms=batch.discarded,
                seconds=batch.seconds,
                conditions=merged(batch.states),
                notes=prepared.notes,
            )

    def _first(self, blank: Trial, request: Request, kernel: Kernel) -> tuple[Trial, Prepared | None]:
        """The case on its device; None with the trial that it ends with, if it is wrong on other inputs before."""
        case = blank.case
        problem, device, seed = self._problem(case), self._devices[case.device], request.seed
        if case.launch is not None:
            seed += request.round
            self._expect(case, seed, device)
        if (tried := problem.tried_on(case)) != case:
            with closing(device.prepare(tried, kernel, problem, self._inputs(tried, seed))) as prepared:
                first = self._launched(replace(blank, case=tried), kernel, prepared)
            if first.status is not Status.OK:
                return replace(first, case=case, reason=f"inputs {tried.inputs}: {first.reason}"), None
        return blank, device.prepare(case, kernel, problem, self._inputs(case, seed))

    def _sustained(self, checked: Trial, request: Request, kernel: Kernel, prepared: Prepared) -> Trial:
        """The trial with a load's batches, after which the output is checked again."""
        if (load := prepared.load()) is None:
            return replace(checked, notes=(_NO_LOAD,))
        device, moments, seconds = self._devices[checked.case.device], [], 0.0
        with closing(load):
            begun = device.conditions().energy_j
            for launches, elapsed_ms in load.batches(request.sustained):
                seconds += launches * elapsed_ms / 1000
                now = device.conditions()
                energy = None if begun is None or now.energy_j is None else now.energy_j - begun
                state = (now.sm_clock_mhz, now.temperature_c, now.power_w, energy)
                moments.append(Moment(seconds, launches, elapsed_ms, *state))
                if self._stopped():
                    break
        again = self._checked(checked, kernel, prepared, timed=True)
        return replace(again, moments=tuple(moments)) if again.status is Status.OK else again

    def _launched(self, trial: Trial, kernel: Kernel, prepared: Prepared) -> Trial:
        """The trial with the result of a launch on a poisoned output."""
        prepared.poison()
        prepared.launch()
        return replace(self._checked(trial, kernel, prepared), resources=prepared.resources())

    def _checked(self, trial: Trial, kernel: Kernel, prepared: Prepared, *, timed: bool = False) -> Trial:
        """The trial with the result of checking its output; of a wrong one and after timed launches its inputs, too."""
        if timed and kernel.overwrites:
            return trial
        case, problem = trial.case, self._problem(trial.case)
        verdict = _UNCHECKED
        try:
            for output in prepared.outputs():
                if problem.checks and verdict.passed:
                    verdict = problem.check(case, self._reference(case, kernel.computes), output)
        except OutOfBounds as error:
            return replace(trial, status=Status.WRONG_RESULT, verified=False, reason=str(error))
        reason = "" if verdict.passed else verdict.detail
        if timed and reason:
            reason = f"right once, wrong after the timed launches: {reason}"
        if (timed or reason) and not kernel.overwrites and (changed := self._changed(prepared)):
            reason = f"the kernel wrote to its input {' and '.join(problem.input_name(number) for number in changed)}"
        checked = replace(trial, verified=problem.checks and not reason, max_error=verdict.error)
        return replace(checked, status=Status.WRONG_RESULT, reason=reason) if reason else checked

    def _changed(self, prepared: Prepared) -> list[int]:
        """The numbers of the inputs that are no longer what they were, bit by bit."""
        given = self._workload.inputs
        pairs = ((number, given[number], array) for number, array in prepared.inputs())
        return sorted({number for number, before, now in pairs if before.tobytes() != now.tobytes()})

    def _inputs(self, case: Case, seed: int) -> tuple[Array, ...]:
        problem = self._problem(case)
        key = (*problem.input_key(case), seed)
        if self._workload.key != key:
            self._workload = _Workload()  # free the old arrays before making new ones
            self._workload = _Workload(key, problem.inputs(case, seed), {})
        return self._workload.inputs

    def _reference(self, case: Case, computes: str) -> Any:
        references = self._workload.references
        assert references is not None
        if computes not in references:
            references[computes] = self._problem(case).reference(case, self._workload.inputs, computes)
        return references[computes]

    def _problem(self, case: Case) -> Problem:
        """The case's problem; of a launch of the user's its contract, which is kept."""
        if case.launch is None:
            return PROBLEMS[case.problem]
        if case not in self._contracts:
            from smembench.launches.contract import Contract  # imports NumPy

            self._contracts[case] = Contract(case)
        return self._contracts[case]

    def _expect(self, case: Case, seed: int, device: Device) -> None:
        """Compute the expected output with another kernel, if that is what the launch is checked against."""
        from smembench.launches.contract import Expected, checked_against

        inputs = self._inputs(case, seed)
        references = self._workload.references
        assert references is not None
        if (other := checked_against(case)) is None or "" in references:
            return
        kernel, problem = registry.kernel_of(other), self._problem(other)
        try:
            with closing(device.prepare(other, kernel, problem, inputs)) as prepared:
                prepared.poison()
                prepared.launch()
                outputs: Any = prepared.output()
        except (UsageError, OutOfBounds) as error:
            raise UsageError(f"--check {case.launch.check if case.launch else ''}: {error}") from None
        references[""] = Expected(None, outputs, [*outputs])

    def _too_long(self, request: Request) -> str:
        """The reason why this case would take too long, predicted from a smaller one; "" if it would not."""
        case, problem = request.case, PROBLEMS[request.case.problem]
        if problem.operations(case) <= _PREDICT_FROM_OPERATIONS:
            return ""
        smaller = case
        while problem.operations(smaller) > _SMALLER_OPERATIONS:
            half = [None if side is None else max(side // 2, 1) for side in (smaller.m, smaller.n, smaller.k)]
            smaller = replace(smaller, m=half[0] or 1, n=half[1] or 1, k=half[2])
        seconds = self._time_once(smaller, request.seed)
        once = seconds * problem.operations(case) / problem.operations(smaller)
        needed = once * (1 + MIN_SAMPLES)
        if needed <= request.max_seconds:
            return ""
        return (
            f"predicted {duration(once)} per launch, {duration(needed)} for a check and {MIN_SAMPLES} samples, over "
            f"the {request.max_seconds:g} s of --max-seconds (from {smaller.size} in {duration(seconds)})"
        )

    def _time_once(self, case: Case, seed: int) -> float:
        problem = PROBLEMS[case.problem]
        inputs = problem.inputs(case, seed)
        with closing(self._devices[case.device].prepare(case, registry.kernel_of(case), problem, inputs)) as prepared:
            prepared.launch()  # compiles
            begun = perf_counter()
            prepared.launch()
            return perf_counter() - begun
