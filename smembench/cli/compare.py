"""``smembench compare``: which cases are slower than before, and what slowdown is seen?"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from smembench.cli.options import PERCENT, Outputs
from smembench.cli.output import Opened, opened
from smembench.cli.signature import argument, flag, group, option, takes
from smembench.model.errors import FAILED, REGRESSION, NothingCompared, UsageError
from smembench.stats.threshold import THRESHOLD_PERCENT

if TYPE_CHECKING:
    from smembench.store.run import Run
    from smembench.studies.compare.verdicts import Comparison, Rules
    from smembench.views.sections import Section


class FailOn(StrEnum):
    """Verdicts that end the process with exit code 3."""

    SLOWER = "slower"
    AMBIGUOUS = "ambiguous"
    NEVER = "never"


@group("A/A")
class Itself:
    """A configuration to be compared with itself: ``aa`` is a config, or stored runs of one."""

    aa: str | None = option(
        "CONFIG|DIR,…", "Compare a configuration with itself: measure it several times, or give stored runs of one."
    )
    runs: int | None = option("N", "How often to measure it. (default: 10)")
    output: Path | None = option("DIR", "Where its runs are stored. (default: results)")
    anonymous: bool = flag("Leave host name, UUIDs and arguments out of its run.json files.")

    @property
    def measuring(self) -> list[str]:
        """The options given that apply only when it measures."""
        given = {"--runs": self.runs is not None, "--output": self.output is not None, "--anonymous": self.anonymous}
        return [name for name, there in given.items() if there]

    def load(self, text: str) -> list[Run]:
        """The runs of ``text``: measured now for a config, else stored runs or all those in a folder."""
        from smembench.run.config import from_toml
        from smembench.run.shipped import shipped
        from smembench.studies.compare.sides import load_together

        if not text.endswith(".toml") and text not in shipped():
            if self.measuring:
                raise UsageError(f"{self.measuring[0]}: belongs to --aa CONFIG; {text} is stored already")
            return load_together(text)
        count = 10 if self.runs is None else self.runs
        if count < 2:
            raise UsageError(f"--runs {count}: give 2 or more, better 10")
        from smembench.cli.measure import leave
        from smembench.studies.compare.measured import measured
        from smembench.views.run import watch

        runs = []
        config, root = from_toml(Path(text)), self.output or Path("results")
        for outcome in measured(config, count, root, anonymous=self.anonymous, argv=sys.argv[1:], watch=watch()):
            leave(outcome)
            runs.append(outcome.run)
        return runs


@group()
class Judging:
    """Options of a verdict: rules, listed cases, and failing verdicts."""

    threshold: float | None = option(
        "PERCENT", f"Smallest change that counts. (default: {THRESHOLD_PERCENT})", parser=PERCENT
    )
    fdr: float = option(
        "PERCENT", "False discovery rate over the cases (Benjamini–Hochberg).", parser=PERCENT, default=5.0
    )
    confidence: float = option("PERCENT", "Confidence level of the intervals.", parser=PERCENT, default=95.0)
    across: str | None = option(
        "device",
        "Compare runs of different GPUs, too, or of one that they do not identify. What else differs, such as the "
        "driver, is compared across anyway, and named.",
    )
    fail_on: FailOn | None = option(
        None, "Verdicts that give exit code 3; ambiguous includes slower. (default: slower)"
    )
    all_: bool = flag("List every case, not only those that changed.")

    def check(self) -> None:
        """Raise UsageError for a value out of range, and for an unknown difference."""
        self.rules()
        self.facets()

    def rules(self, stored: float | None = None) -> Rules:
        """The rules, at the threshold of a stored config if none is given; both are in percent."""
        from smembench.studies.compare.verdicts import Rules

        threshold = stored if self.threshold is None else self.threshold
        return Rules.of_percent(threshold, fdr=self.fdr, confidence=self.confidence)

    def facets(self) -> Sequence[str]:
        """The differences that are compared across."""
        from smembench.run.axes import parse_names
        from smembench.studies.compare.comparability import FACETS

        return parse_names(self.across, FACETS, name="--across", what="difference") if self.across is not None else ()

    def sections(self, comparison: Comparison, heading: str = "") -> list[Section]:
        """The tables of a comparison."""
        from smembench.views.compare import comparison_sections

        ambiguous = self.fail_on is FailOn.AMBIGUOUS
        return comparison_sections(comparison, heading, every=self.all_, ambiguous=ambiguous)

    def end(self, compared: Sequence[Comparison], code: int = 0) -> None:
        """Exit with 3 if a verdict fails, else with ``code`` if that is not 0."""
        from smembench.studies.compare.verdicts import Verdict

        failing = {FailOn.SLOWER: (Verdict.SLOWER,), FailOn.AMBIGUOUS: (Verdict.SLOWER, Verdict.AMBIGUOUS)}
        failed = failing.get(self.fail_on or FailOn.SLOWER, ())
        counts = {verdict: sum(comparison.counts[verdict] for comparison in compared) for verdict in failed}
        if any(counts.values()):
            typer.echo(f"found: {', '.join(f'{count} {verdict}' for verdict, count in counts.items())}", err=True)
            raise typer.Exit(REGRESSION)
        if code:
            raise typer.Exit(code)


@takes(judging=Judging, outputs=Outputs, itself=Itself)
def compare(
    base: str | None = argument(
        "BASE[,…]|last[:N]|baseline",
        "A run's folder, a cases.csv or NVBench's JSON; several are pooled. Or the runs before NEW.",
    ),
    new: str | None = argument("NEW[,…]", "The same, measured later."),
    *,
    judging: Judging,
    outputs: Outputs,
    itself: Itself,
) -> None:
    """Compare runs case by case: faster, slower, same or ambiguous.

    A case is slower if its time grew by more than the threshold and beyond the noise, at the false discovery rate over
    all cases. It is the same if its whole interval lies within the threshold. The noise between runs is taken from
    other runs of the config on the same device in the same folder; without any, only large changes count. Differences
    between the environments are listed above the verdicts, and below them what may be why a case changed: driver,
    clocks, libraries, revision. Exit code 3 always means a regression, 1 that a case of NEW failed or was wrong, 5 that
    nothing could be compared.

    With last:N or baseline as BASE, NEW is compared with the runs before it in its folder, or with the pinned one, as
    `run --compare-to` does at night, with the same verdicts and exit code. A single run is compared with the run before
    it and with the pinned one. `last` is the newest run in results, `DIR/last` the newest in DIR.

    --aa compares runs of one configuration with each other, so that every change it finds is false. It prints the rate
    of false verdicts, the smallest slowdown that is detected with a probability of 95 % in 95 % of the cases, for each
    class of duration, and a suggested threshold.

    Examples:

      smembench compare results/<before> results/<after>

      smembench compare monday,tuesday wednesday --fail-on ambiguous

      smembench compare results/h100 results/h200 --across device --all

      smembench compare a1.json,a2.json b1.json,b2.json --across device

      smembench compare last:7 results/20260102T020000Z-nightly

      smembench compare last

      smembench compare --aa quick --runs 10
    """
    from smembench.store.load import LAST
    from smembench.studies.nightly.against import is_named

    target = opened(outputs)
    judging.check()
    if itself.aa is not None:
        if base is not None:
            raise UsageError(f"--aa {itself.aa}: compares with itself; leave {base} out")
        _with_itself(itself, itself.aa, judging, target)
        return
    if itself.measuring:
        raise UsageError(f"{itself.measuring[0]}: belongs to --aa CONFIG")
    if base is None:
        raise UsageError("give BASE and NEW, two runs' folders or cases.csv files, or --aa CONFIG")
    if new is None and is_named(base) and base != LAST:
        raise UsageError(f"{base}: give NEW, too, the run to compare with it: smembench compare {base} results/<run>")
    if new is None:
        base, new = LAST, base
    if is_named(base):
        _with_earlier(base, Path(new), judging, target)
    else:
        _two_sides(base, new, judging, target)


def _with_itself(itself: Itself, text: str, judging: Judging, target: Opened) -> None:
    """Compare runs of one configuration with each other."""
    from smembench.studies.compare.comparability import check_apart
    from smembench.studies.compare.itself import compare_with_itself
    from smembench.views.compare import self_records, self_section
    from smembench.views.export import Result
    from smembench.views.progress import steps

    if given := [name for name, value in (("--all", judging.all_), ("--fail-on", judging.fail_on)) if value]:
        raise UsageError(f"{given[0]}: belongs to BASE and NEW, which --aa does not take")
    runs = itself.load(text)
    for number, run in enumerate(runs):
        check_apart(runs[:number], [run])
    with steps() as step:
        comparison = compare_with_itself(runs, judging.rules(), across=judging.facets(), step=step)
    rows = self_records(comparison)
    target.show(Result(sections=[self_section(comparison)], data=lambda: comparison.data, rows=lambda: rows))
    if not comparison.judged:
        raise NothingCompared("nothing was compared: no case is comparable, for the reasons above")


def _with_earlier(base: str, new: Path, judging: Judging, target: Opened) -> None:
    """Compare a run with those before it in its folder, or with the pinned one."""
    from smembench.store.load import named
    from smembench.studies.nightly.finish import compare_stored
    from smembench.views.compare import case_records
    from smembench.views.console import notes, say, stderr
    from smembench.views.export import Result
    from smembench.views.nightly import next_steps
    from smembench.views.progress import steps
    from smembench.views.records import Record

    if judging.across is not None:
        raise UsageError(f"--across: belongs to two runs' folders; {base} takes only runs on the same devices")
    folder = named(new)  # once: it warns of what it leaves out
    with steps() as step:
        night = compare_stored(base, folder, judging.rules, step)
    sections: list[Section] = []
    rows: list[Record] = []
    for asked, comparison in night.compared:
        sections += judging.sections(comparison, f"{night.run.id} against {asked}")
        rows += case_records(comparison, against=asked)
    target.show(Result(sections=sections, data=lambda: night.data, rows=lambda: rows))
    steps_next = map(str, next_steps(night, folder))
    for console, lines in ((notes, night.review.notes), (stderr, night.problems), (notes, steps_next)):
        for line in lines:
            say(console, line)
    judging.end([comparison for _, comparison in night.compared], night.without_verdicts)


def _two_sides(base: str, new: str, judging: Judging, target: Opened) -> None:
    """Compare two runs, or two groups of them."""
    from smembench.studies.compare import compare_runs
    from smembench.studies.compare.beside import beside
    from smembench.studies.compare.comparability import check_apart
    from smembench.studies.compare.sides import load_side
    from smembench.views.compare import case_records
    from smembench.views.export import Result

    sides = load_side(base), load_side(new)
    comparison = compare_runs(*sides, judging.rules(), across=judging.facets(), beside=beside(*sides))
    sections = judging.sections(comparison)
    target.show(Result(sections=sections, data=lambda: comparison.data, rows=lambda: case_records(comparison)))
    if judging.fail_on is not FailOn.NEVER:
        check_apart(*sides)
        if not comparison.judged:
            why = "no case is comparable, for the reasons above" if comparison.cases else "no case is in both"
            differs = any(case.other_device for case in comparison.cases)
            way_out = "; to compare nevertheless: --across device" if differs else ""
            raise NothingCompared(f"nothing was compared: {why}{way_out}")
    judging.end([comparison], FAILED if any(run.failed for run in sides[1]) else 0)
