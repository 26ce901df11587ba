"""A search for the commit that made cases slower, round by round, in a folder that a later process goes on in."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from smembench.model.child import child_command
from smembench.model.errors import FAILED, SmembenchError, UsageError
from smembench.model.interrupts import EXIT_CODES
from smembench.model.text import visible
from smembench.run.config import Config
from smembench.run.environment import git_revision
from smembench.run.narrowed import as_sweep, to_toml
from smembench.run.session import open_plan
from smembench.store.files import write_whole
from smembench.store.load import load
from smembench.store.run import Run
from smembench.store.run_folder import new_run_id, to_json
from smembench.store.run_json import read_json
from smembench.studies.bisect.repository import Repository, without_git
from smembench.studies.bisect.search import Measured, Result, Times, next_step
from smembench.studies.choose import chosen
from smembench.studies.compare import CaseComparison, Rules, compare_runs
from smembench.studies.compare.pairing import timed
from smembench.studies.history.read import BISECTION

_PACKAGE = Path(__file__).parents[3]
_CONFIG = ".smembench-bisect.toml"
_ENDS = (0, FAILED)
"""Exit codes of a run that has rows."""
_STOP = (4, 70, *EXIT_CODES)
"""Exit codes for which the commit is not to blame."""


class Trial(BaseModel):
    """A commit in a round: the folder of its run, or why it has none; with neither it is tried again."""

    commit: int
    run: str = ""
    skipped: str = ""


class State(BaseModel):
    """The whole search as its folder stores it.

    Attributes:
        top: the repository's folder.
        ours: whether it is the package's own, whose kernels are measured.
        commits: along first parents, the good one first; ``subjects`` are the first lines of their messages.
        cases: ids of the cases to follow.
        keys, sweeps: the config of these cases alone, with the repository's paths.
        build: a command for the shell that is run in each worktree, "" for none.
        worktrees: the folder that holds them.
        trials: what was measured, in its order.
    """

    model_config = ConfigDict(extra="allow")

    top: str
    ours: bool
    commits: list[str]
    subjects: list[str]
    name: str
    threshold: float
    cases: list[str]
    keys: dict[str, Any]
    sweeps: list[dict[str, Any]]
    build: str
    worktrees: str
    trials: list[Trial] = []

    @property
    def skipped(self) -> dict[int, str]:
        """The commits that cannot be measured, and why."""
        return {trial.commit: trial.skipped for trial in self.trials if trial.skipped}


@dataclass(frozen=True, slots=True)
class Bisected:
    """A search that ended: its result, all runs of each commit, and for each culprit its cases with the commit before.

    ``measured`` is what the result follows from, ``rules`` are those by which.
    """

    state: State
    result: Result
    measured: Measured
    rules: Rules
    runs: Mapping[int, Sequence[Run]]
    causes: Sequence[Sequence[CaseComparison]] = ()


_AGAIN = 3
"""How often a commit is tried again of which no time can be compared."""
Note = Callable[[str], None]


def begin(config: Config, path: Path, revisions: tuple[str, str], case: str | None, build: str, output: Path) -> Path:
    """Make the folder of a search; returns it.

    Args:
        config: what to measure.
        path: its file, in the repository of its kernels.
        revisions: the good one and the bad one.
        case: a text or glob of the cases to follow.
        build: see ``State``.
        output: the folder in which to create it.

    Raises:
        UsageError: for revisions that are none, cases that are none, and kernels in no repository.
        DeviceUnavailable: for a device that is missing.
    """
    with open_plan(config) as (planned, _, _):
        cases = {item.case.id: item.case for item in planned if not item.skip}
    followed = [cases[case_id] for case_id in cases if case_id in (chosen(cases, case) or cases)]
    ours = not any(each.launch for each in followed)
    if not ours and not all(each.launch for each in followed):
        raise UsageError("these cases are partly kernels of yours, partly the package's; choose one kind with --case")
    if ours and git_revision() is None:
        raise UsageError("the package's kernels can be bisected in a git checkout of it only")
    repository = Repository.around(_PACKAGE if ours else path)
    commits = repository.commits(*revisions)
    keys = config.model_dump(mode="json", exclude={"sweep", "name", "seed", "decide", "threshold"}, exclude_none=True)
    folder = output / new_run_id(f"{config.name}-bisect")
    folder.mkdir(parents=True)
    state = State(
        top=str(repository.top),
        ours=ours,
        commits=commits,
        subjects=list(map(repository.subject, commits)),
        name=config.name,
        threshold=Rules.of_percent(config.threshold).threshold,
        cases=[each.id for each in followed],
        keys=keys,
        sweeps=[as_sweep(each) for each in followed],
        build=build,
        worktrees=str(Path(tempfile.mkdtemp(prefix="smembench-bisect-")).resolve()),
    )
    _store(folder, state)
    return folder


def bisect(folder: Path, note: Note) -> Bisected:
    """Go on with the search of a folder until it ends; the worktrees are removed, whatever ends it.

    Raises:
        UsageError: for a folder that holds no search.
        SmembenchError: if a run fails for a reason that is not the commit's.
    """
    found = read_json(folder / BISECTION, State, "begin anew")
    if found is None:
        raise UsageError(f"{folder}: holds no {BISECTION}; name the folder of a search that was cut off")
    state, rules = found, Rules(found.threshold)
    repository = Repository(Path(state.top))
    work = Path(state.worktrees)
    runs: dict[int, list[Run]] = {}
    for trial in state.trials:
        if trial.run:
            runs.setdefault(trial.commit, []).append(load(folder / trial.run, shown=False))
    work.mkdir(exist_ok=True)
    _clear(repository, work)  # what a killed process left
    try:
        worktrees: dict[int, Path] = {}
        while not isinstance(step := next_step(measured := _measured(state, runs), rules), Result):
            note(f"round {len(state.trials) // 3 + 1}: {', '.join(state.commits[commit][:8] for commit in step)}")
            for commit in step if len(runs.get(0, ())) % 2 else step[::-1]:  # none always comes first
                trial = _trial(state, folder, repository, worktrees, commit, note)
                if trial.skipped and commit in (0, len(state.commits) - 1):
                    end = "good" if commit == 0 else "bad"
                    raise SmembenchError(f"the {end} commit cannot be measured: {trial.skipped}")
                state.trials.append(trial)
                if trial.run:
                    runs.setdefault(commit, []).append(load(folder / trial.run, shown=False))
                _store(folder, state)
                if trial.skipped:
                    break  # another commit is the middle now
    finally:
        _clear(repository, work)
        work.rmdir()
    return Bisected(
        state, step, measured, rules, runs, [_cause(runs, *one, step.cases, rules) for one in step.culprits]
    )


def _clear(repository: Repository, work: Path) -> None:
    for path in dict.fromkeys(chain(repository.worktrees(work), work.iterdir())):
        repository.remove(path)


def _store(folder: Path, state: State) -> None:
    write_whole(folder / BISECTION, to_json(state.model_dump(mode="json")))


def _measured(state: State, runs: Mapping[int, Sequence[Run]]) -> Measured:
    """The times of the cases."""
    found = {commit: [_times(run, state) for run in of_commit] for commit, of_commit in runs.items()}
    return Measured(len(state.commits), found, frozenset(state.skipped))


def _times(run: Run, state: State) -> Times:
    found = timed(run)
    return {case: found[case][0].centre for case in state.cases if case in found and not found[case][0].why}


def _trial(
    state: State, folder: Path, repository: Repository, worktrees: dict[int, Path], commit: int, note: Note
) -> Trial:
    """Build a commit, if it is not yet, and measure it in a process of its own."""
    if commit not in worktrees:
        path = Path(state.worktrees) / state.commits[commit][:12]
        note(f"building {state.commits[commit][:8]} {state.subjects[commit]}")
        repository.add(state.commits[commit], path)
        worktrees[commit] = path
        if state.build:
            built = _ran(state.build, path, without_git())
            if built.returncode:
                return Trial(commit=commit, skipped=f"--build ended with {built.returncode}{_last_line(built)}")
    path, number = worktrees[commit], sum(trial.commit == commit for trial in state.trials)
    name = f"{state.commits[commit][:12]}-{number + 1}"
    sweeps = json.loads(json.dumps(state.sweeps).replace(f"{state.top}/", f"{path}/"))
    config = folder / _CONFIG
    config.write_text(to_toml(sweeps, keys={"name": name, **state.keys}))
    options = ("run", str(config), "--output", str(folder.resolve()), "--quiet", "--wait")
    environment = without_git()
    if state.ours:
        environment["PYTHONPATH"] = str(path)
        command = [sys.executable, "-P", "-m", "smembench", *options]
    else:
        command = child_command("smembench", *options)
    done = _ran(command, path, environment)
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
    found = timed(run)
    why = next((f"{case}: {found[case][0].why}" for case in missing if case in found), f"no case {min(missing)}")
    blank = sum(trial.commit == commit and not trial.run for trial in state.trials)
    again = not run.failed and missing <= found.keys() and blank < _AGAIN  # such as on a throttled GPU
    return Trial(commit=commit) if again else Trial(commit=commit, skipped=why)


def _ran(command: str | list[str], folder: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, a text by the shell. Ctrl-C reaches it, too, and it is waited for."""
    return subprocess.run(
        command,
        shell=isinstance(command, str),
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )


def _last_line(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    return f": {visible(lines[-1].removeprefix('smembench: '))}" if lines else ""


def _cause(
    runs: Mapping[int, Sequence[Run]], before: int, after: int, cases: Iterable[str], rules: Rules
) -> list[CaseComparison]:
    """The slower cases after a culprit, compared with those before it, with what may be why."""
    found = compare_runs(runs[before], runs[after], rules)
    return [case for case in found.cases if case.case.id in set(cases)]
