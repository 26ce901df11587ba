"""``smembench history``: the time of each case over many stored runs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import typer

from smembench.cli.options import CASES, PERCENT, Outputs
from smembench.cli.output import opened
from smembench.cli.signature import argument, flag, option, takes
from smembench.model.errors import REGRESSION, UsageError
from smembench.stats.threshold import THRESHOLD, THRESHOLD_PERCENT


class By(StrEnum):
    """Kinds of points in a series."""

    RUN = "run"
    REVISION = "revision"


@takes(outputs=Outputs)
def history(
    folder: Path = argument("DIR", "Every run below it is read.", default=Path("results")),
    *,
    since: str | None = option("DATE", "Only runs from this day on (UTC), such as 2026-01-31."),
    case: str | None = CASES,
    by: By = option(
        None,
        "What a point is: a run, or all runs of smembench's git revision, of which it is the median.",
        default=By.RUN,
    ),
    threshold: float | None = option(
        "PERCENT", f"Smallest change of level to report. (default: {THRESHOLD_PERCENT})", parser=PERCENT
    ),
    fail_on_change: bool = flag("Exit with code 3 if a case is slower and not accepted."),
    outputs: Outputs,
) -> None:
    """Show every case over all runs: times, changes of level, causes.

    A new level has to hold for three runs, so one bad night is not a change. A slow drift is a change once it adds up
    to the threshold. Cases that became slower come first, until they are as fast as before or accepted with `smembench
    accept`. `run --compare-to last:7` reports a small change earlier, as it knows more about the noise, but no drift.
    Only times that `compare` would use count: verified, and measured neither on a throttled GPU nor on a busy host.
    Each GPU has its own series; runs that do not identify their GPU are left out.

    Examples:

      smembench history results

      smembench history results --case transposeSmemPad --since 2026-01-31

      smembench history results --case "matmul/*/4096x4096x4096/*" --json

      smembench history results --by revision

      smembench history results --fail-on-change
    """
    from smembench.model.text import number_of
    from smembench.studies.accept import accepted_beside
    from smembench.studies.choose import chosen, day
    from smembench.studies.history.read import read_nights
    from smembench.studies.history.revisions import by_revision
    from smembench.studies.history.series import Newest, series_of, timeless
    from smembench.views.console import notes, say, stderr
    from smembench.views.history import left_out, no_series, result, without_times
    from smembench.views.progress import steps

    target = opened(outputs)
    if threshold is not None and not 0 < threshold < 1000:
        raise UsageError(f"--threshold {threshold:g}: give a percentage above 0, such as 1")
    with steps() as step:
        nights, skipped = read_nights(folder, day(since), step)
    for line in left_out(nights, skipped):
        say(notes, line)
    if not nights:
        raise UsageError(f"{folder}: holds no run" + (f" since {since}" if since else ""))
    if by is By.REVISION:
        nights, without = by_revision(nights)
        if without:
            say(notes, f"left out {number_of(without, 'run')} without a git revision")
        if not nights:
            raise UsageError(f"{folder}: no run has a git revision; leave --by out")
    meant = accepted_beside(night.path for night in nights)
    wanted = chosen({case_id for night in nights for case_id, _ in (*night.times, *night.unusable)}, case)
    never = timeless(nights, wanted)
    with steps() as step:
        series = series_of(nights, wanted, THRESHOLD if threshold is None else threshold / 100, meant, step)
    if not series and target.printed != "json":
        raise UsageError(f"{folder}: {no_series(never)}")
    for line in without_times(never, nights):
        say(notes, line)
    target.show(result(nights, skipped, series, never))
    if fail_on_change and (slower := sum(one.newest is Newest.SLOWER for one in series)):
        say(stderr, f"unaccepted slowdowns: {slower} of {number_of(len(series), 'case')}")
        raise typer.Exit(REGRESSION)
