"""A search for the commit that made cases slower, round by round, in a folder that a later process goes on in."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, takewhile
from pathlib import Path
from subprocess import CompletedProcess

from smembench.model.child import captured, child_command, module_command
from smembench.model.errors import FAILED, SmembenchError, UsageError
from smembench.model.interrupts import EXIT_CODES
from smembench.model.text import visible
from smembench.run.environment import without_git
from smembench.run.narrowed import to_toml
from smembench.store.load import load
from smembench.store.run import Run
from smembench.store.run_json import read_json
from smembench.studies.bisect.repository import Package, Repository, packages
from smembench.studies.bisect.search import Measured, Result, Times, next_step
from smembench.studies.bisect.state import TEMPORARY, State, Trial
from smembench.studies.compare import CaseComparison, Rules, compare_runs
from smembench.studies.compare.pairing import timed
from smembench.studies.history.read import BISECTION

_CONFIG = ".smembench-bisect.toml"
_ENDS = (0, FAILED)
"""Exit codes of a run that has rows."""
_STOP = (4, *EXIT_CODES)
"""Exit codes for which the commit is not to blame."""


@dataclass(frozen=True, slots=True)
class Bisected:
    """A search that ended: its result, what it follows from and by which rules, and for each culprit its cases,
    compared with the commit before.
    """

    state: State
    result: Result
    measured: Measured
    rules: Rules
    causes: Sequence[Sequence[CaseComparison]]


_AGAIN = 3
"""Retries of a commit without a comparable time."""
Note = Callable[[str], None]


def bisect(folder: Path, note: Note) -> Bisected:
    """Go on with the search of a folder until it ends; the worktrees are removed, whatever ends it.

    Raises:
        UsageError: for a folder that holds no search.
        SmembenchError: if a run fails for a reason that is not the commit's.
    """
    state = read_json(folder / BISECTION, State, "begin anew")
    if state is None:
        raise UsageError(f"{folder}: holds no {BISECTION}; name the folder of a search that was cut off")
    folder, rules = folder.resolve(), Rules(state.threshold)
    source = state.source
    work = Path(state.worktrees)
    if not work.name.startswith(TEMPORARY):
        raise UsageError(f"{folder / BISECTION}: damaged: worktrees: {work} is no folder of a search; begin anew")
    runs: dict[int, list[Run]] = {}
    for trial in state.trials:
        if trial.run:
            runs.setdefault(trial.commit, []).append(load(folder / trial.run, shown=False))
    work.mkdir(exist_ok=True)
    _clear(source, work)  # what a killed process left
    worktrees: dict[int, Path] = {}
    try:
        while not isinstance(step := next_step(measured := _measured(state, runs), rules), Result):
            note(f"measuring {', '.join(state.commits[commit][:8] for commit in step)}")
            for commit in step if len(runs.get(0, ())) % 2 else step[::-1]:  # none always comes first
                trial = _trial(state, folder, worktrees, commit, note)
                if trial.skipped and commit in (0, len(state.commits) - 1):
                    end = "good" if commit == 0 else "bad"
                    raise SmembenchError(f"the {end} commit cannot be measured: {trial.skipped}")
                state.trials.append(trial)
                if trial.run:
                    runs.setdefault(commit, []).append(load(folder / trial.run, shown=False))
                state.store(folder)
                if trial.skipped:
                    break  # another commit is the middle now
    finally:
        _clear(source, work)
        with suppress(OSError):
            work.rmdir()
    return Bisected(state, step, measured, rules, [_cause(runs, *one, step.cases, rules) for one in step.culprits])


def _clear(source: Repository | Package, work: Path) -> None:
    for path in dict.fromkeys(chain(source.worktrees(work), work.iterdir())):
        source.remove(path)


def _measured(state: State, runs: Mapping[int, Sequence[Run]]) -> Measured:
    """The times of the cases."""
    times = {commit: [_times(run, state) for run in of_commit] for commit, of_commit in runs.items()}
    return Measured(len(state.commits), times, frozenset(state.skipped))


def _times(run: Run, state: State) -> Times:
    timings = timed(run)
    return {case: timings[case][0].centre for case in state.cases if case in timings and not timings[case][0].why}


def _trial(state: State, folder: Path, worktrees: dict[int, Path], commit: int, note: Note) -> Trial:
    """Build a commit, if it is not yet, and measure it in a process of its own."""
    if commit not in worktrees:
        path = Path(state.worktrees) / state.commits[commit][:12]
        note(f"building {state.commits[commit][:8]} {state.subjects[commit]}")
        state.source.add(state.commits[commit], path)
        worktrees[commit] = path
        if state.build:
            built = captured(state.build, cwd=path, env=without_git())
            if built.returncode:
                return Trial(commit=commit, skipped=f"--build ended with {built.returncode}{_last_line(built)}")
    path, number = worktrees[commit], sum(trial.commit == commit for trial in state.trials)
    name = f"{state.commits[commit][:12]}-{number + 1}"
    sweeps = json.loads(json.dumps(state.sweeps).replace(f"{state.top}/", f"{path}/")) if state.top else state.sweeps
    config = folder / _CONFIG
    config.write_text(to_toml(sweeps, keys={"name": name, **state.keys}))
    options = ("run", str(config), "--output", str(folder), "--quiet", "--wait")
    environment = without_git()
    command = child_command("smembench", *options)
    if state.ours:
        environment["PYTHONPATH"] = str(path)
        command = module_command("smembench", *options)
    elif state.package:
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(packages(path)), os.environ.get("PYTHONPATH"))))
    done = captured(command, cwd=path, env=environment)
    config.unlink()
    made = next(iter(sorted(folder.glob(f"*-{name}"), reverse=True)), None)
    if done.returncode in _STOP:
        raise SmembenchError(f"{name}: ended with {done.returncode}{_last_line(done)}")
    if done.returncode not in _ENDS or made is None:
        return Trial(commit=commit, skipped=f"not measured{_last_line(done)}")
    run = load(made, shown=False)
    missing = {case for case in state.cases if case not in _times(run, state)}
    if not missing:
        return Trial(commit=commit, run=made.name)
    timings = timed(run)
    why = next((f"{case}: {timings[case][0].why}" for case in missing if case in timings), f"no case {min(missing)}")
    blank = len(list(takewhile(lambda one: not one.run, (one for one in state.trials[::-1] if one.commit == commit))))
    again = not run.failed and missing <= timings.keys() and blank < _AGAIN  # such as on a throttled GPU
    return Trial(commit=commit) if again else Trial(commit=commit, skipped=why)


def _last_line(done: CompletedProcess[str]) -> str:
    lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    return f": {visible(lines[-1].removeprefix('smembench: '))}" if lines else ""


def _cause(
    runs: Mapping[int, Sequence[Run]], before: int, after: int, cases: Iterable[str], rules: Rules
) -> list[CaseComparison]:
    """The slower cases after a culprit, compared with those before it, with what may be why."""
    comparison = compare_runs(runs[before], runs[after], rules)
    return [case for case in comparison.cases if case.case.id in set(cases)]
