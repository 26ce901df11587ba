"""What ``smembench run`` does after a night's run: compare, summarise, export metrics, and remove old runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from smembench.cli.options import PERCENT
from smembench.model.errors import FAILED, REGRESSION, UsageError
from smembench.stats.threshold import THRESHOLD_PERCENT

if TYPE_CHECKING:
    from rich.console import Console

    from smembench.studies.nightly.finish import Plan


@dataclass(frozen=True, kw_only=True)
class Nightly:
    """What is done with a run, other than storing it."""

    panel: ClassVar[str] = "Nightly"
    compare_to: Annotated[
        str | None,
        typer.Option(
            "--compare-to",
            metavar="last[:N]|baseline|DIR",
            help="Compare with the previous run or N runs (and the pinned baseline, if any), the baseline alone, or a "
            "run; exit 3 if a case is slower. From last:3 on, the noise between runs is known.",
        ),
    ] = None
    threshold: Annotated[
        float | None,
        typer.Option(
            "--threshold",
            metavar="PERCENT",
            parser=PERCENT,
            help=f"Smallest slowdown that counts. (default: the config's threshold, or {THRESHOLD_PERCENT})",
        ),
    ] = None
    keep: Annotated[
        int | None,
        typer.Option(
            "--keep",
            metavar="N",
            help="Remove complete runs of this config on these devices beyond the newest N; never the baseline, nor "
            "runs that a change still reported is measured against.",
        ),
    ] = None
    json_lines: Annotated[
        Path | None,
        typer.Option("--json-lines", metavar="PATH", help="Append one line of JSON about the run."),
    ] = None
    openmetrics: Annotated[
        Path | None,
        typer.Option(
            "--openmetrics",
            metavar="PATH.prom",
            help="Write metrics for node_exporter's textfile collector.",
        ),
    ] = None

    @property
    def asked(self) -> bool:
        """Whether there is anything to do."""
        return any(value is not None for value in (self.compare_to, self.keep, self.json_lines, self.openmetrics))


def after(
    options: Nightly, root: Path, config: str, threshold: float | None = None
) -> Callable[[Path, Console], int] | None:
    """What to do with a complete run, as a function of its folder and a console; None when no option was given.

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
    from smembench.store.files import Output
    from smembench.studies.compare import Rules
    from smembench.studies.nightly.finish import Plan

    if not options.asked:
        return None
    lines, metrics = options.json_lines, options.openmetrics
    if metrics is not None and metrics.suffix != ".prom":
        raise UsageError(f"--openmetrics {metrics}: the textfile collector only reads names in .prom")
    plan = Plan(
        options.compare_to,
        options.keep,
        Output(lines, what="--json-lines", append=True) if lines is not None else None,
        Output(metrics, what="--openmetrics", force=True) if metrics is not None else None,
        Rules.of_percent(threshold if options.threshold is None else options.threshold),
    )
    plan.check(root, config)
    return lambda folder, console: _finish(plan, root, folder, console)


def _finish(plan: Plan, root: Path, folder: Path, console: Console) -> int:
    from smembench.studies.nightly.finish import finish, tell
    from smembench.studies.nightly.runs import SUMMARY
    from smembench.views.console import say, stderr
    from smembench.views.nightly import print_summary, summarise
    from smembench.views.progress import steps

    with steps() as step:
        found = finish(plan, root, folder, step)
    summary = summarise(found, folder)
    unwritten = tell(plan, found, folder / SUMMARY, summary.markdown())
    code = FAILED if unwritten and found.exit_code != REGRESSION else found.exit_code
    # stdout has the problems and the headline, too, but is often thrown away.
    again = [] if console is stderr else [*found.problems, *([summary.headline] if code else [])]
    for line in (*again, *unwritten):
        say(stderr, line)
    print_summary(console, summary)  # last, for whoever mails the end of a log
    return code
