"""A search as its folder stores it: what to measure, along which commits or versions, and what was measured."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from smembench.model.case import Case
from smembench.model.errors import UsageError
from smembench.run.config import Config
from smembench.run.environment import git_revision
from smembench.run.narrowed import as_sweep
from smembench.run.session import open_plan
from smembench.store.files import write_whole
from smembench.store.run_folder import new_run_id, to_json
from smembench.studies.bisect.repository import Package, Repository
from smembench.studies.choose import chosen
from smembench.studies.compare import Rules
from smembench.studies.history.read import BISECTION

_PACKAGE = Path(__file__).parents[3]
TEMPORARY = "smembench-bisect-"
"""Prefix of a folder of worktrees; no other folder is ever removed."""


class Trial(BaseModel):
    """A commit in a round: the folder of its run, or why it has none; with neither it is tried again."""

    commit: int
    run: str = ""
    skipped: str = ""


class State(BaseModel):
    """The whole search as its folder stores it.

    Attributes:
        top: the repository's folder, "" for versions of ``package``.
        ours: whether it is the package's own, whose kernels are measured.
        commits: along first parents, the good one first, or versions; ``subjects`` are the first lines of messages.
        cases: ids of the cases to follow.
        keys, sweeps: the config of these cases alone, with the repository's paths.
        build: a command for the shell that is run in each worktree, "" for none.
        worktrees: the folder that holds them.
        trials: what was measured, in its order.
    """

    model_config = ConfigDict(extra="allow")

    top: str = ""
    package: str = ""
    ours: bool = False
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

    def store(self, folder: Path) -> None:
        """Write it."""
        write_whole(folder / BISECTION, to_json(self.model_dump(mode="json")))

    @property
    def source(self) -> Repository | Package:
        """The repository of its commits, or the package of its versions."""
        return Package(self.package) if self.package else Repository(Path(self.top))

    @property
    def skipped(self) -> dict[int, str]:
        """The commits that cannot be measured, and why."""
        return {trial.commit: trial.skipped for trial in self.trials if trial.skipped}


def begin(config: Config, path: Path, along: tuple[str, str] | str, case: str | None, build: str, output: Path) -> Path:
    """Make the folder of a search; returns it.

    Args:
        config: what to measure.
        path: its file, in the repository of its kernels.
        along: the good revision and the bad one, or a package with versions, such as ``numba=0.60,0.61``.
        case: a text or glob of the cases to follow.
        build: see ``State``.
        output: the folder in which to create it.

    Raises:
        UsageError: for revisions and versions that are none, cases that are none, and kernels in no repository.
        DeviceUnavailable: for a device that is missing.
    """
    start = _of_versions(along) if isinstance(along, str) else {}  # commits need the kernels of the cases
    with open_plan(config) as (planned, _, _):
        cases = {item.case.id: item.case for item in planned if not item.skip}
    wanted = chosen(cases, case) or cases.keys()
    followed = [cases[case_id] for case_id in cases if case_id in wanted]
    if not isinstance(along, str):
        start = _of_commits(path, along, followed)
    keys = config.model_dump(mode="json", exclude={"sweep", "name", "seed", "decide", "threshold"}, exclude_none=True)
    folder = output / new_run_id(f"{config.name}-bisect")
    folder.mkdir(parents=True)
    state = State(
        **start,
        name=config.name,
        threshold=Rules.of_percent(config.threshold).threshold,
        cases=[item.id for item in followed],
        keys=keys,
        sweeps=[as_sweep(item) for item in followed],
        build=build,
        worktrees=str(Path(tempfile.mkdtemp(prefix=TEMPORARY)).resolve()),
    )
    state.store(folder)
    return folder


def _of_versions(text: str) -> dict[str, Any]:
    name, equals, versions = text.partition("=")
    commits = [version.strip() for version in versions.split(",")]
    if not (name and equals and all(commits) and len(set(commits)) == len(commits) > 1):
        raise UsageError(
            f"--versions {text}: write a package and two or more versions, the good one first: numba=0.60,0.61"
        )
    return {"package": name, "commits": commits, "subjects": [f"{name} {version}" for version in commits]}


def _of_commits(path: Path, revisions: tuple[str, str], followed: Sequence[Case]) -> dict[str, Any]:
    ours = not any(case.launch for case in followed)
    if not ours and not all(case.launch for case in followed):
        raise UsageError("these cases are partly kernels of yours, partly the package's; choose one kind with --case")
    if ours and git_revision() is None:
        raise UsageError("the package's kernels can be bisected in a git checkout of it only")
    repository = Repository.around(_PACKAGE if ours else path)
    commits = repository.commits(*revisions)
    subjects = list(map(repository.subject, commits))
    return {"top": str(repository.top), "ours": ours, "commits": commits, "subjects": subjects}
