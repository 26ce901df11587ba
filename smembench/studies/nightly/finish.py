"""After a night's complete run: compare it, remove old runs, and write files for a monitoring system."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from smembench.model.errors import FAILED, REGRESSION, UsageError
from smembench.store.csv_files import check_writable, write_whole
from smembench.store.run import Run
from smembench.studies.baseline import baselines
from smembench.studies.load import load
from smembench.studies.nightly import against
from smembench.studies.nightly.monitoring import Compared, json_line, open_metrics
from smembench.studies.nightly.runs import prune


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do with a run other than storing it: compare it with ``last``, ``last:N``, ``baseline`` or a folder; keep
    only so many runs; write files for a monitoring system.
    """

    compare_to: str | None = None
    keep: int | None = None
    json_lines: Path | None = None
    openmetrics: Path | None = None

    def check(self, root: Path, config: str) -> None:
        """Check before a run; ``root`` is the folder that holds the runs, ``config`` the config's name.

        Raises:
            UsageError: for an option that cannot be carried out.
        """
        if self.keep is not None and self.keep < 1:
            raise UsageError(f"--keep {self.keep}: keep at least 1 run, the new one")
        if self.compare_to is not None:
            against.check(self.compare_to, root, config)
        if self.openmetrics is not None and self.openmetrics.suffix != ".prom":
            raise UsageError(f"--openmetrics {self.openmetrics}: the textfile collector only reads names in .prom")
        _check_file(self.json_lines, "--json-lines")
        _check_file(self.openmetrics, "--openmetrics")


def _check_file(path: Path | None, flag: str) -> None:
    if path is None:
        return
    check_writable(path, force=True, what=flag)
    if path.exists() and not os.access(path, os.W_OK):
        raise UsageError(f"{flag} {path}: cannot be written")


@dataclass(frozen=True, slots=True)
class Finished:
    """A night's run, its comparisons, notes, and what could not be done."""

    run: Run
    compared: Compared
    notes: Sequence[str]
    problems: Sequence[str]

    @property
    def exit_code(self) -> int:
        """1 if a case failed or an option could not be carried out, 3 if a case is slower, else 0."""
        if self.problems or self.run.failed:
            return FAILED
        return REGRESSION if any(comparison.regressions for _, comparison in self.compared) else 0


def finish(plan: Plan, root: Path, folder: Path) -> Finished:
    """Compare a complete run, and remove runs beyond the number to keep."""
    run = load(folder)
    compared, notes, problems = against.compare(plan.compare_to, root, run) if plan.compare_to else ([], [], [])
    if plan.keep is not None:
        said, failed = prune(root, run.description, plan.keep, baselines(root).values())
        notes, problems = [*notes, *said], [*problems, *failed]
    return Finished(run, compared, notes, problems)


def tell(plan: Plan, finished: Finished, page: Path, summary: str) -> list[str]:
    """Write the summary and the files for monitoring; returns what could not be written."""
    content = (finished.run, finished.compared, finished.exit_code)
    writes: list[tuple[Path | None, Callable[[Path], None]]] = [
        (page, lambda path: write_whole(path, summary)),
        (plan.json_lines, lambda path: _append(path, json_line(*content))),
        (plan.openmetrics, lambda path: write_whole(path, open_metrics(*content))),
    ]
    failed = []
    for path, write in writes:
        try:
            if path is not None:
                write(path)
        except OSError as error:
            failed.append(f"{path}: cannot be written ({error.strerror})")
    return failed


def _append(path: Path, line: str) -> None:
    """Append a line in one write, so that lines of two runs do not mix."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)
