"""The lines of a running measurement."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from statistics import median
from time import monotonic

from smembench.model.case import Case
from smembench.model.device import DeviceInfo
from smembench.model.measurement import Status, Trial
from smembench.model.progress import unseen
from smembench.model.text import duration, visible
from smembench.run.runner import Begin
from smembench.stats.summary import Summary
from smembench.studies.run import Watch
from smembench.views.columns import within
from smembench.views.console import notes, say
from smembench.views.progress import steps
from smembench.views.sections import Section, block, table
from smembench.views.table import draw

_FEW, _LONG = 20, 10.0
"""Most cases of a first round whose times are shown before the others, and its least seconds of samples."""
_UNSURE = 0.05
"""Relative interval to which the digits of a first time are shown."""


def watch(*, verbose: bool = False) -> Watch:
    """A run's notes and progress on stderr: a bar on a terminal, elsewhere a line per round; if verbose, per trial."""

    note = partial(say, notes)

    def calibrated(info: DeviceInfo) -> None:
        if verbose and info.event_pair_us is not None:
            read = f"an empty event pair reads {info.event_pair_us:.3f} µs, subtracted from every sample"
            note(f"{info.name}: {read}")

    def trial(done: Trial) -> None:
        rounds.add(done)
        if verbose:
            note(trial_line(done))

    @contextmanager
    def progress() -> Iterator[Begin]:
        with steps(counted=False) as step:

            def begin(case: Case, number: int, of: int) -> None:
                place = rounds.begin(case)
                name = " ".join(str(part) for part in (case.kernel, case.block, case.size) if part is not None)
                step(visible(f"{place}: {name}"), number, of)

            yield begin
        rounds.end()

    rounds = Rounds(unseen if notes.is_terminal else note, lambda section: draw(notes, [section]))
    return Watch(note, calibrated, trial, progress)


class Rounds:
    """Report of a finished round: its duration, and the times of a long first round.

    A round is over when a case begins again. The first round of a resumed run may have few cases or only one, so it is
    also over when a trial of another round is added.

    Args:
        note: receives the line, for where there is no progress bar.
        show: receives the table of the first round.
        clock: seconds.
    """

    def __init__(
        self, note: Callable[[str], None], show: Callable[[Section], None], clock: Callable[[], float] = monotonic
    ) -> None:
        self._note, self._show, self._clock = note, show, clock
        self._begun = clock()
        self._trials: list[Trial] = []
        self._round = 0

    def add(self, trial: Trial) -> None:
        """Add a trial of the current round, or the first of the next."""
        if self._trials and trial.round > self._trials[-1].round:
            self._over()
        self._trials.append(trial)
        self._round = trial.round

    def begin(self, case: Case) -> str:
        """End the round if it has this case already; returns the place of the case: ``round 2, case 5``."""
        if any(trial.case == case for trial in self._trials):
            self._over()
        return f"round {self._round + 1}, case {len(self._trials) + 1}"

    def _over(self) -> None:
        number, passed = self._trials[-1].round + 1, duration(self._clock() - self._begun)
        self._round = number
        self._note(f"round {number} done after {passed}")
        few, long = len(self._trials) <= _FEW, sum(trial.seconds for trial in self._trials) >= _LONG
        if number == 1 and few and long:
            self._show(first_times(self._trials, passed))
        self.end()

    def end(self) -> None:
        """Forget the round: what begins next belongs to none."""
        self._trials.clear()


def first_times(trials: Sequence[Trial], passed: str) -> Section:
    """The medians of a first round, without intervals: what differs between rounds is not in them yet."""
    more = {"dtype": lambda trial: trial.case.dtype, "cache": lambda trial: trial.case.cache}
    return table(
        f"times of the first round, after {passed}; their intervals come with the next",
        sorted(trials, key=lambda trial: trial.case.id),
        {
            "kernel": lambda trial: trial.case.kernel,
            "on": lambda trial: trial.case.device,
            "block": lambda trial: block(trial.case),
            "size": lambda trial: trial.case.size,
            **{name: text for name, text in more.items() if len(set(map(text, trials))) > 1},
            "samples": lambda trial: str(len(trial.samples)),
            "elapsed ms": lambda trial: within(median(trial.samples), _UNSURE) if trial.samples else trial.status,
        },
        words=("kernel", "on", "block", "size", *more),
    )


def trial_line(trial: Trial) -> str:
    """The case, its round, the device's state, its samples and those discarded."""
    where = f"round {trial.round + 1} {trial.case.id}"
    if trial.moments:
        return f"{where}: a load of {trial.moments[-1].seconds:.1f} s in {len(trial.moments)} batches"
    if trial.status is not Status.OK or not trial.samples:
        return f"{where}: {trial.status}: {trial.reason or 'no samples'}"
    summary = Summary.of(trial.samples)
    state = trial.conditions
    parts = [
        f"{summary.count} samples of {summary.median:.5f} ms ({summary.min:.5f} to {summary.max:.5f})",
        f"{trial.discarded} discarded",
        f"{trial.seconds:.2f} s",
        f"SM {state.sm_clock_mhz} MHz" if state.sm_clock_mhz else "",
        f"{state.temperature_c} °C" if state.temperature_c else "",
        f"{state.power_w:.0f} W" if state.power_w else "",
        f"throttled: {state.throttle_reasons}" if state.throttled else "",
        f"waited {100 * state.cpu_waiting:.1f} % for a core" if state.cpu_waiting is not None else "",
        f"{state.other_processes} other processes" if state.other_processes else "",
        f"{state.ecc_uncorrected} memory errors not corrected" if state.ecc_uncorrected else "",
    ]
    thrown_away = f"; discarded: {_values(trial.discarded_ms)}" if trial.discarded_ms else ""
    return f"{where}: {', '.join(part for part in parts if part)}: {_values(trial.samples)}{thrown_away}"


def _values(samples: Sequence[float]) -> str:
    return " ".join(f"{value:.5f}" for value in samples)
