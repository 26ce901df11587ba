"""After a night's complete run: compare it, remove old runs, and write files for a monitoring system."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from smembench.model.errors import FAILED, REGRESSION, SmembenchError, UsageError
from smembench.store.files import Output, write_whole
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
    json_lines: Output | None = None
    openmetrics: Output | None = None

    def check(self, root: Path, config: str) -> None:
        """Check before a run; ``root`` is the folder that holds the runs, ``config`` the config's name.

        Raises:
            UsageError: for an option that cannot be carried out.
        """
        if self.keep is not None and self.keep < 1:
            raise UsageError(f"--keep {self.keep}: keep at least 1 run, the new one")
        if self.compare_to is not None:
            against.check(self.compare_to, root, config)


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
    failed = []
    try:
        write_whole(page, summary)
    except OSError as error:
        failed.append(f"{page}: cannot be written ({error.strerror})")
    for output, made in ((plan.json_lines, json_line), (plan.openmetrics, open_metrics)):
        try:
            if output is not None:
                output.write(made(*content))
        except SmembenchError as error:
            failed.append(str(error))
    return failed
