"""Runs cases, round by round, in a worker process. Only here does a failure become a trial."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from smembench.devices.base import GUARD_BYTES, with_copies
from smembench.kernels.problems import PROBLEMS
from smembench.model.case import Case
from smembench.model.errors import DeviceUnavailable
from smembench.model.measurement import Status, Trial, now_utc
from smembench.model.progress import unseen
from smembench.run.plan import Planned
from smembench.run.sampling import shuffled
from smembench.run.stop_rule import MAX_EXTRA_ROUNDS, StopRule
from smembench.run.trial import Request
from smembench.run.worker import Worker, WorkerFailed, WorkerTimeout

_STOP_SECONDS = 15.0
"""Time that an interrupted run waits for the sample in progress."""


Begin = Callable[[Case, int, int], None]
"""Called when a trial begins, with its case, its number and the number of trials known so far."""


@dataclass(slots=True)
class _Progress:
    """A case's samples and rounds so far, and whether the device was throttled in any."""

    values: list[float] = field(default_factory=list)
    rounds: set[int] = field(default_factory=set)
    seconds: float = 0.0
    throttled: bool = False
    loaded: bool = False
    ended: bool = False

    def add(self, trial: Trial) -> None:
        self.values += trial.samples
        self.rounds.add(trial.round)
        self.seconds += trial.seconds
        self.throttled = self.throttled or trial.conditions.throttled
        self.loaded = self.loaded or not trial.samples
        self.ended = self.ended or trial.status is not Status.OK


@dataclass(slots=True)
class Runner:
    """Runs a trial of each case per round, in seeded random order; cases that do not converge get more rounds.

    Attributes:
        planned: the cases.
        rules: the stop rule by kind of device.
        seed: for the inputs and the order.
        timeout: seconds that a trial may take besides sampling before its worker is killed.
        worker: the first worker, later the current one; None after one was lost.
        hire: starts another then.
    """

    planned: Sequence[Planned]
    rules: Mapping[str, StopRule]
    seed: int
    timeout: float
    worker: Worker | None
    hire: Callable[[], Worker]
    _progress: dict[Case, _Progress] = field(init=False)
    _memory: dict[str, tuple[int, ...]] = field(init=False)

    def __post_init__(self) -> None:
        self._progress = {item.case: _Progress() for item in self.planned}
        self._memory = _largest(item for item in self.planned if not item.skip)

    def run(self, done: Iterable[Trial] = (), begin: Begin = unseen) -> Iterator[Trial]:
        """Yield a trial per case and round, except those in ``done``.

        ``begin`` is called before each; the number of trials grows with cases that do not converge.

        Raises:
            KeyboardInterrupt: on Ctrl-C, after the samples of the current trial were yielded.
            DeviceUnavailable: if no new worker can be started.
        """
        for trial in done:
            self._progress[trial.case].add(trial)
        for item in self.planned:
            if item.skip and not self._progress[item.case].rounds:
                yield self._note(Trial(item.case, 0, Status.SKIPPED, now_utc(), item.skip))
        rounds = max(rule.rounds for rule in self.rules.values())
        trials = 0
        for round_ in range(rounds + MAX_EXTRA_ROUNDS):
            cases = [item.case for item in self.planned if self._wants(item.case, round_)]
            later = len(cases) * max(rounds - round_ - 1, 0)
            for left, case in zip(
                range(len(cases), 0, -1), shuffled(cases, _inputs_of, self.seed, round_), strict=True
            ):
                trials += 1
                begin(case, trials, trials + left - 1 + later)
                yield from self._tried(case, round_)
        last = max((number for progress in self._progress.values() for number in progress.rounds), default=0)
        loads = [item.case for item in self.planned if self._wants_load(item.case)]
        for number, case in enumerate(loads, 1):
            begin(case, trials + number, trials + len(loads))
            yield from self._tried(case, last + 1, self.rules[case.kind].sustained)

    def close(self) -> None:
        """End the worker."""
        if self.worker is not None:
            self.worker.close()
            self.worker = None

    def _note(self, trial: Trial) -> Trial:
        self._progress[trial.case].add(trial)
        return trial

    def _wants(self, case: Case, round_: int) -> bool:
        progress, rule = self._progress[case], self.rules[case.kind]
        if progress.ended or round_ in progress.rounds:
            return False
        return round_ < rule.rounds or not rule.satisfied(progress.values, progress.seconds)

    def _wants_load(self, case: Case) -> bool:
        progress = self._progress[case]
        return bool(self.rules[case.kind].sustained) and not (progress.ended or progress.loaded)

    def _tried(self, case: Case, round_: int, sustained: float = 0.0) -> Iterator[Trial]:
        """The trial; if it is interrupted what it has of samples, and then the interrupt."""
        try:
            trial = self._try(case, round_, sustained)
        except KeyboardInterrupt:
            if (cut_short := self._stop()) is not None:
                yield self._note(cut_short)
            raise
        yield self._note(trial)

    def _try(self, case: Case, round_: int, sustained: float) -> Trial:
        rule, progress = self.rules[case.kind], self._progress[case]
        seconds, share = rule.seconds(round_, progress.seconds), rule.share(round_, throttled=progress.throttled)
        memory = self._memory[case.device]
        request = Request(case, round_, share, seconds, rule.max_seconds, rule.warmup, self.seed, memory, sustained)
        started = now_utc()
        try:
            if self.worker is None:
                self.worker = self.hire()
            return self.worker.run(request, self.timeout + seconds + sustained)
        except WorkerTimeout as error:
            self.worker = None
            return Trial(case, round_, Status.TIMEOUT, started, str(error))
        except WorkerFailed as error:
            self.worker = None
            return Trial(case, round_, Status.FAILED, started, str(error))
        except DeviceUnavailable:
            self.worker = None
            raise

    def _stop(self) -> Trial | None:
        """The current trial with the samples that it has, after the one in progress; a second Ctrl-C ends the wait."""
        if self.worker is None:
            return None
        try:
            self.worker.stop()
            trial = self.worker.wait_stopped(_STOP_SECONDS)
        except KeyboardInterrupt:
            return None
        return trial if trial is not None and (trial.samples or trial.status is not Status.OK) else None


def _inputs_of(case: Case) -> tuple[object, ...]:
    return (case.device, *PROBLEMS[case.problem].input_key(case))


def _largest(items: Iterable[Planned]) -> dict[str, tuple[int, ...]]:
    """Bytes of the largest output and the largest inputs per device, with their copies."""
    largest: dict[str, tuple[int, ...]] = {}
    for item in items:
        case, problem = item.case, PROBLEMS[item.case.problem]
        arrays = problem.sizes_of_arrays(case, problem.lengths(case))
        sizes: tuple[int, ...] = (*(output + 2 * GUARD_BYTES for output in arrays[:1]), *arrays[1:])
        sizes = tuple(with_copies(size, item.copies) for size in sizes)
        largest[case.device] = tuple(map(max, zip_longest(largest.get(case.device, ()), sizes, fillvalue=0)))
    return largest
