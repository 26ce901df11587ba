"""After a night's complete run: compare it, remove old runs, and write files for a monitoring system."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue

from smembench.model.errors import FAILED, INCOMPARABLE, REGRESSION, SmembenchError, UsageError
from smembench.model.progress import Step, unseen
from smembench.model.text import number_of
from smembench.store.files import Output, write_whole
from smembench.store.load import load
from smembench.store.run import Run
from smembench.studies.accept import accepted
from smembench.studies.compare import Comparison, Rules, Verdict
from smembench.studies.decide import decide, unsure
from smembench.studies.nightly import against
from smembench.studies.nightly.against import Review
from smembench.studies.nightly.monitoring import Compared, json_line, open_metrics
from smembench.studies.nightly.runs import prune, surplus
from smembench.studies.run import SILENT, Watch

AGAIN = "measured again"
"""The name of the comparison of cases that were measured again."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps after a run: compare it with ``last``, ``last:N``, ``baseline`` or a folder; keep only the newest ``keep``
    runs; write files for a monitoring system.
    """

    compare_to: str | None = None
    keep: int | None = None
    json_lines: Output | None = None
    openmetrics: Output | None = None
    rules: Rules = field(default_factory=Rules)

    def check(self, root: Path, config: str) -> None:
        """Check before a run; ``root`` is the folder that holds the runs, ``config`` the config's name.

        Raises:
            UsageError: for an option that cannot be carried out.
        """
        if self.keep is not None and self.keep < 1:
            raise UsageError(f"--keep {self.keep}: keep at least 1 run, the new one")
        if self.compare_to is not None:
            against.check(self.compare_to, root, config)
        accepted(root)


@dataclass(frozen=True, slots=True)
class Finished:
    """A night's run, what came of its comparisons, and what it was to be compared with."""

    run: Run
    review: Review
    compare_to: str | None

    @property
    def compared(self) -> Compared:
        """The comparisons."""
        return self.review.compared

    @property
    def problems(self) -> list[str]:
        """Lines on what could not be compared or done."""
        return [*self.review.nothing, *self.review.problems]

    @property
    def exit_code(self) -> int:
        """3 if a case is slower, else 1 if one failed or is missing, else 5 if nothing could be compared, else 0.

        A case that fails every night must not hide that another one became slower.
        """
        return REGRESSION if any(comparison.regressions for _, comparison in self.compared) else self.without_verdicts

    @property
    def without_verdicts(self) -> int:
        """The exit code of a night in which no case is slower."""
        if self.run.failed or self.review.problems:
            return FAILED
        return INCOMPARABLE if self.review.nothing else 0

    @property
    def data(self) -> dict[str, JsonValue]:
        """Plain data for JSON; cases by their ids."""
        return {
            "run_id": self.run.id,
            "exit_code": self.exit_code,
            "failed": {row.case_id: row.status for row in self.run.failed},
            "compared": [{"with": asked, **comparison.data} for asked, comparison in self.compared],
            "notes": list[JsonValue](self.review.notes),
            "problems": list[JsonValue](self.problems),
        }


def compare_stored(
    compare_to: str, folder: Path, rules: Callable[[float | None], Rules], step: Step = unseen
) -> Finished:
    """Compare a complete run with those before it in its folder.

    Args:
        compare_to: ``last``, ``last:N`` or ``baseline``.
        folder: the run's.
        rules: takes the threshold of the run's config, in percent.
        step: called before each run is read.

    Raises:
        UsageError: for a run that cannot be read, and what it cannot be compared with.
    """
    folder = folder.resolve()
    run = load(folder)
    against.check(compare_to, folder.parent, run.description.config.name)
    review = against.compare(compare_to, folder.parent, run, rules(run.description.config.threshold), step)
    return Finished(run, review, compare_to)


def finish(plan: Plan, root: Path, folder: Path, step: Step = unseen, watch: Watch = SILENT) -> Finished:
    """Compare a complete run, decide ambiguous cases as its config asks, and remove runs beyond the number to keep."""
    run = load(folder)
    review = against.compare(plan.compare_to, root, run, plan.rules, step) if plan.compare_to else Review()
    if run.description.config.decide:
        _decide(run, review, plan.rules, watch)
    pinned = against.never_pruned(root)
    if plan.keep is not None and (review.problems or review.nothing):
        if surplus(root, run.description, folder, plan.keep, pinned):
            review.notes.append(f"--keep {plan.keep}: nothing is removed, as not everything could be compared")
    elif plan.keep is not None:
        series = [comparison for asked, comparison in review.compared if asked != against.BASELINE]
        alarmed = {run_id for comparison in series for run_id in _alarmed(comparison)}
        notes, failed = prune(root, run.description, folder, plan.keep, pinned, alarmed)
        review.notes += notes
        review.problems += failed
    return Finished(run, review, plan.compare_to)


def _decide(run: Run, review: Review, rules: Rules, watch: Watch) -> None:
    """Measure the ambiguous cases of the first comparison again; what comes of it is a comparison of its own."""
    for _, comparison in review.compared[:1]:
        if not unsure(comparison):
            continue
        try:
            result = decide(comparison, run, run.description.config.decide, rules, watch)
        except SmembenchError as error:
            review.problems.append(f"not measured again: {error}")
            continue
        review.problems += [f"measured again in part: {result.error}"] if result.error else []
        review.notes += [f"no time to measure {number_of(result.left, 'ambiguous case')} again"] if result.left else []
        if result.comparison is not None:
            review.compared.append((AGAIN, result.comparison))


def _alarmed(comparison: Comparison) -> Iterator[str]:
    """Ids of the runs that slower cases are compared with, and those that were off their level before.

    Also those that could not be judged this night: without these runs they would be at their level the next.
    """
    for case in comparison.cases:
        if case.open or case.verdict is Verdict.SLOWER:
            yield from case.held_against


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
