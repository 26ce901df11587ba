"""A line per device of a fleet while it is measured: bars on a terminal, elsewhere a line now and then."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from time import monotonic

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from smembench.model.progress import unseen
from smembench.model.text import duration, number_of, visible
from smembench.run.config import Config
from smembench.run.plan import Plan
from smembench.store.fleet_json import Entry
from smembench.studies.fleet.options import Watch
from smembench.studies.fleet.turns import at_once, in_turns
from smembench.views.console import say, stderr
from smembench.views.progress import OFTEN_SECONDS

QUIET = Watch(partial(say, stderr), unseen, unseen)
"""What a fleet says if it shows no progress: nothing but notes."""
_REST = 4
"""Lines of a terminal that are left to others when there are more devices than lines."""


@contextmanager
def watch() -> Iterator[Watch]:
    """A fleet's progress on stderr."""
    note = partial(say, stderr)
    if not stderr.is_terminal:
        lines = Lines(note)
        yield Watch(note, lines.state, lines.progress)
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[what]}", markup=False),
    )
    with Progress(*columns, console=stderr, transient=True) as bars:
        shown = _Bars(bars)
        yield Watch(note, shown.state, shown.progress)


class _Bars:
    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._tasks: dict[str, TaskID] = {}

    def state(self, entry: Entry) -> None:
        task = self._task(entry)
        if entry.state == "failed":
            self._bars.update(task, what=visible(f"failed: {entry.reason}"))
            say(stderr, f"{entry.label}: failed: {entry.reason}")
        else:
            self._bars.update(task, what=entry.state)
        if entry.state == "complete":
            total = self._bars.tasks[self._bars.task_ids.index(task)].total or 1
            self._bars.update(task, completed=total, total=total)
        if len(self._tasks) > stderr.height - _REST:  # what is under way first
            self._bars.update(task, visible=entry.state == "running")

    def progress(self, entry: Entry, done: int, of: int, what: str) -> None:
        self._bars.update(self._task(entry), completed=done, total=of, what=visible(what))

    def _task(self, entry: Entry) -> TaskID:
        if entry.label not in self._tasks:
            self._tasks[entry.label] = self._bars.add_task(visible(entry.label), total=None, what="")
        return self._tasks[entry.label]


class Lines:
    """The lines of a fleet's progress where there is no terminal.

    Args:
        note: receives a line.
        clock: seconds.
    """

    def __init__(self, note: Callable[[str], None], clock: Callable[[], float] = monotonic) -> None:
        self._note, self._clock = note, clock
        self._begun: dict[str, float] = {}
        self._reported: dict[str, float] = {}

    def state(self, entry: Entry) -> None:
        """Say that a device begins, is complete or failed."""
        now = self._clock()
        if entry.state == "running":
            self._begun[entry.label] = self._reported[entry.label] = now
        took = f" after {duration(now - self._begun[entry.label])}" if entry.label in self._begun else ""
        if entry.state == "failed":
            self._note(f"{entry.label}: failed{took}: {entry.reason}")
        elif entry.state == "complete" and took:
            self._note(f"{entry.label}: complete{took}")
        elif entry.state == "running":
            self._note(f"{entry.label}: begun" + (f" ({entry.model})" if entry.model else ""))

    def progress(self, entry: Entry, done: int, of: int, what: str) -> None:
        """Say how many trials of those known are done, now and then."""
        if self._clock() - self._reported.get(entry.label, 0.0) >= OFTEN_SECONDS:
            self._reported[entry.label] = self._clock()
            self._note(f"{entry.label}: {done} of {of} trials")


def planned(config: Config, entries: Sequence[Entry]) -> Iterator[str]:
    """Lines on what a fleet would measure: cases per device and their limits."""
    devices = [entry for entry in entries if entry.device and entry.state != "failed"]
    hosts = {entry.host for entry in devices}
    for part, how in ((at_once(config), "all devices at once"), (in_turns(config), "one device of a host at a time")):
        if part is not None and devices:
            names = {name: devices[0].device for sweep in part.sweep for name in sweep.device}
            count = Plan.of(part, names).count
            limit = duration(count * config.max_seconds)
            yield f"{number_of(count, 'case')} per device, {how}: at most {limit} of samples"
    yield f"{number_of(len(devices), 'device')} of {number_of(len(hosts), 'host')}; nothing was measured"
