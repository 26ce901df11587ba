"""Steps of ``smembench run`` after a night's run: compare, summarise, export metrics, and remove old runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from smembench.cli.options import PERCENT, Outputs
from smembench.cli.output import monitoring, opened
from smembench.cli.signature import group, option
from smembench.model.errors import FAILED, REGRESSION, NothingCompared, SmembenchError, UsageError
from smembench.model.text import number_of
from smembench.stats.threshold import THRESHOLD_PERCENT

if TYPE_CHECKING:
    from rich.console import Console

    from smembench.studies.nightly.finish import Plan


@group("Nightly")
class Deciding:
    """A stored run whose ambiguous cases are measured again."""

    decide: Path | None = option(
        "RUN",
        "Measure the ambiguous cases of a stored run again, the most probable slowdown first, until they are decided; "
        "needs no CONFIG. In a config `decide = 600` has a night do so for 600 s.",
    )
    max_minutes: float | None = option("N", "How long --decide measures. (default: 10)", min=0.0)

    def measured(self, folder: Path, nights: Nightly, outputs: Outputs) -> None:
        """Measure and show them.

        Raises:
            UsageError: for a run that cannot be read or compared.
            NothingCompared: if it is compared with none.
            typer.Exit: with 3 if a case is slower, with 1 if one failed.
        """
        from smembench.cli.measure import Interrupted
        from smembench.store.load import named
        from smembench.studies.compare import Rules
        from smembench.studies.decide import decide
        from smembench.studies.nightly.against import is_named
        from smembench.studies.nightly.finish import compare_stored
        from smembench.views.compare import case_records, comparison_sections
        from smembench.views.console import notes, say
        from smembench.views.export import Result
        from smembench.views.run import watch

        target, asked = opened(outputs), nights.compare_to or "last:7"
        if not is_named(asked):
            raise UsageError(f"--compare-to {asked}: --decide takes last, last:N or baseline")
        folder = named(folder)
        night = compare_stored(
            asked, folder, lambda stored: Rules.of_percent(stored if nights.threshold is None else nights.threshold)
        )
        if not night.compared:
            raise NothingCompared(f"{folder}: {'; '.join(night.problems or night.review.notes)}")
        _, comparison = night.compared[0]
        minutes = 10.0 if self.max_minutes is None else self.max_minutes
        rules = Rules(comparison.threshold, comparison.fdr, comparison.confidence)
        result = decide(comparison, night.run, 60 * minutes, rules, watch())
        if result.left:
            say(notes, f"no time for {number_of(result.left, 'more ambiguous case')}: --max-minutes")
        decided = result.comparison
        if decided is not None:
            sections = comparison_sections(decided, f"{night.run.id}, measured again", ambiguous=True)
            target.show(Result(sections=sections, data=lambda: decided.data, rows=lambda: case_records(decided)))
            say(notes, f"wrote {result.folder}")
        elif result.error is None:
            say(notes, f"{folder}: no case is ambiguous; nothing was measured")
        if isinstance(result.error, SmembenchError):
            raise result.error
        if result.error is not None:
            raise Interrupted(str(result.error))
        if decided is not None and decided.regressions:
            raise typer.Exit(REGRESSION)
        if any(run.failed for run in result.runs):
            raise typer.Exit(FAILED)


@group("Nightly")
class Nightly:
    """Options for the use of a run, other than storing it."""

    compare_to: str | None = option(
        "last[:N]|baseline|DIR",
        "Compare with the previous run or N runs (and the pinned baseline, if any), the baseline alone, or a run; "
        "exit 3 if a case is slower. From last:3 on, the noise between runs is known.",
    )
    threshold: float | None = option(
        "PERCENT",
        f"Smallest slowdown that counts. (default: the config's threshold, or {THRESHOLD_PERCENT})",
        parser=PERCENT,
    )
    keep: int | None = option(
        "N",
        "Remove complete runs of this config on these devices beyond the newest N; never the baseline, nor runs that "
        "a change still reported is measured against.",
    )
    json_lines: Path | None = option("PATH", "Append one line of JSON about the run.")
    openmetrics: Path | None = option("PATH.prom", "Write metrics for node_exporter's textfile collector.")

    @property
    def asked(self) -> bool:
        """True if there is anything to do."""
        return any(value is not None for value in (self.compare_to, self.keep, self.json_lines, self.openmetrics))


def after(
    options: Nightly, root: Path, config: str, threshold: float | None = None
) -> Callable[[Path, Console], int] | None:
    """The follow-up of a complete run, a function of its folder and a console; None if no option was given.

    It returns an exit code: 3 when a case is slower, else 1 when one failed or an option could not be met, else 5 when
    nothing could be compared, else 0.

    Args:
        options: the user's.
        root: the folder that holds the runs.
        config: the name of the run's config.
        threshold: the config's, in percent.

    Raises:
        UsageError: for what cannot be done, before anything is measured.
    """
    from smembench.studies.compare import Rules
    from smembench.studies.nightly.finish import Plan

    if not options.asked:
        return None
    files = monitoring(options.json_lines, options.openmetrics)
    rules = Rules.of_percent(threshold if options.threshold is None else options.threshold)
    plan = Plan(options.compare_to, options.keep, *files, rules)
    plan.check(root, config)
    return lambda folder, console: _finish(plan, root, folder, console)


def _finish(plan: Plan, root: Path, folder: Path, console: Console) -> int:
    from smembench.studies.nightly.finish import finish, tell
    from smembench.studies.nightly.runs import SUMMARY
    from smembench.views.console import say, stderr
    from smembench.views.nightly import print_summary, summarise
    from smembench.views.progress import steps
    from smembench.views.run import watch

    with steps() as step:
        finished = finish(plan, root, folder, step, watch())
    summary = summarise(finished, folder)
    unwritten = tell(plan, finished, folder / SUMMARY, summary.markdown())
    code = FAILED if unwritten and finished.exit_code != REGRESSION else finished.exit_code
    # stdout has the problems and the headline, too, but is often thrown away.
    again = [] if console is stderr else [*finished.problems, *([summary.headline] if code else [])]
    for line in (*again, *unwritten):
        say(stderr, line)
    print_summary(console, summary)  # last, for whoever mails the end of a log
    return code
