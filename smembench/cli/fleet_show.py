"""``smembench fleet show``: which device of a measured fleet is slow."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from smembench.cli.options import PERCENT, Outputs
from smembench.cli.output import monitoring, opened
from smembench.cli.signature import argument, option, takes
from smembench.model.errors import FAILED, INCOMPARABLE, REGRESSION
from smembench.stats.threshold import THRESHOLD_PERCENT

if TYPE_CHECKING:
    from smembench.studies.fleet.verdict import Verdict


@takes(outputs=Outputs)
def show(
    folder: Path = argument("DIR", "The folder of a fleet, or any folder of runs.", default=...),
    *,
    threshold: float | None = option(
        "PERCENT", f"Smallest slowdown that counts. (default: {THRESHOLD_PERCENT})", parser=PERCENT
    ),
    json_lines: Path | None = option("PATH", "Append a line of JSON per device."),
    openmetrics: Path | None = option("PATH.prom", "Write metrics for node_exporter's textfile collector."),
    outputs: Outputs,
) -> None:
    """Show which GPUs of a fleet are slow: each beside the others of its model, metric by metric.

    The runs may be of `smembench fleet run`, or of `smembench run` on each host with one --output. A strip shows the
    GPUs of a model by metric, and a table how many percent each is slower than their median. A line per slow GPU names
    its metrics, by how much it is slower, and what else was seen there; others name failures and unknowns. Exit code 3:
    a GPU is slow; 1: one failed; 5: there is nothing to compare one with.

    Examples:

      smembench fleet show results/20260101T020000Z-fleet
      smembench fleet show /shared/results --threshold 2
      smembench fleet show results/20260101T020000Z-fleet --export fleet.csv
      smembench fleet show results/last --json-lines gpus.jsonl
    """
    from smembench.studies.fleet.monitoring import json_lines as lines_of
    from smembench.studies.fleet.monitoring import open_metrics
    from smembench.views.fleet_records import result

    target, (lines, metrics) = opened(outputs), monitoring(json_lines, openmetrics)
    verdict = judged(folder, threshold)
    if lines is not None:
        lines.write(lines_of(verdict))
    if metrics is not None:
        metrics.write(open_metrics(verdict))
    target.show(result(verdict), lambda: tell(verdict))
    if verdict.exit_code:
        from smembench.views.console import say, stderr

        why = {
            REGRESSION: f"slow devices: {len(verdict.slow)}",
            FAILED: "a device has no figures or a failed case",
            INCOMPARABLE: nothing_to_compare_with(verdict),
        }
        say(stderr, why[verdict.exit_code])
        raise typer.Exit(verdict.exit_code)


def nothing_to_compare_with(verdict: Verdict) -> str:
    """The line about devices that are compared with nothing."""
    from smembench.views.columns import some

    names = some([member.label for member in verdict.uncompared], "devices")
    return f"nothing to compare with: {names}; earlier runs of a device, or another of its model, would do"


def judged(folder: Path, threshold: float | None = None) -> Verdict:
    """The verdict on the fleet in a folder; ``threshold`` is in percent.

    Raises:
        UsageError: for a folder without runs, and for damaged files.
    """
    from dataclasses import replace

    from smembench.studies.fleet.history import earlier
    from smembench.studies.fleet.judge import judge
    from smembench.studies.fleet.read import read_fleet
    from smembench.studies.fleet.verdict import RULES

    rules = RULES if threshold is None else replace(RULES, threshold=threshold / 100)
    fleet = read_fleet(folder)
    return judge(fleet, earlier(fleet), rules)


def tell(verdict: Verdict) -> None:
    """Draw a fleet on stdout."""
    from smembench.views.console import can_show, say, stdout
    from smembench.views.fleet import fleet_lines, fleet_sections, headline
    from smembench.views.fleet_strip import MARKS
    from smembench.views.table import draw

    say(stdout, headline(verdict))
    draw(stdout, fleet_sections(verdict, fine=can_show(stdout, "".join(MARKS))))
    for line in fleet_lines(verdict):
        say(stdout, line)
