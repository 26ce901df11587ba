"""``smembench compare``: which cases are slower than before, and what slowdown is seen?"""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from smembench.cli.options import PERCENT, Json, one_of
from smembench.cli.output import show
from smembench.cli.signature import takes
from smembench.model.errors import REGRESSION, NothingCompared, UsageError
from smembench.stats.threshold import THRESHOLD_PERCENT

if TYPE_CHECKING:
    from smembench.store.run import Run


class FailOn(StrEnum):
    """Which verdicts end the process with exit code 3."""

    SLOWER = "slower"
    AMBIGUOUS = "ambiguous"
    NEVER = "never"


@dataclass(frozen=True, kw_only=True)
class Itself:
    """A configuration to be compared with itself: ``aa`` is a config, or stored runs of one."""

    panel: ClassVar[str] = "A/A"
    aa: Annotated[
        str | None,
        typer.Option(
            "--aa",
            metavar="CONFIG|DIR,…",
            help="Compare a configuration with itself: measure it several times, or give stored runs of one.",
        ),
    ] = None
    runs: Annotated[int | None, typer.Option("--runs", metavar="N", help="How often to measure it. (default: 10)")] = (
        None
    )
    output: Annotated[
        Path | None, typer.Option("--output", metavar="DIR", help="Where its runs are stored. (default: results)")
    ] = None
    anonymous: Annotated[
        bool, typer.Option("--anonymous", help="Leave host name, UUIDs and arguments out of its run.json files.")
    ] = False

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

        found = []
        config, root = from_toml(Path(text)), self.output or Path("results")
        for outcome in measured(config, count, root, anonymous=self.anonymous, argv=sys.argv[1:], watch=watch()):
            leave(outcome)
            found.append(outcome.run)
        return found


@takes(itself=Itself)
def compare(
    base: Annotated[
        str | None,
        typer.Argument(
            metavar="BASE[,…]|last[:N]|baseline",
            help="A run's folder or a cases.csv; several are pooled. Or the runs before NEW.",
        ),
    ] = None,
    new: Annotated[str | None, typer.Argument(metavar="NEW[,…]", help="The same, measured later.")] = None,
    *,
    threshold: Annotated[
        float | None,
        typer.Option(
            "--threshold",
            metavar="PERCENT",
            parser=PERCENT,
            help=f"Smallest change that counts. (default: {THRESHOLD_PERCENT})",
        ),
    ] = None,
    fdr: Annotated[
        float,
        typer.Option(
            "--fdr", metavar="PERCENT", parser=PERCENT, help="False discovery rate over the cases (Benjamini–Hochberg)."
        ),
    ] = 5.0,
    confidence: Annotated[
        float,
        typer.Option("--confidence", metavar="PERCENT", parser=PERCENT, help="Confidence level of the intervals."),
    ] = 95.0,
    across: Annotated[
        str | None,
        typer.Option(
            "--across",
            metavar="device",
            help="Compare runs of different GPUs, too, or of one that they do not identify. What else differs, such as "
            "the driver, is compared across anyway, and named.",
        ),
    ] = None,
    fail_on: Annotated[
        FailOn | None,
        typer.Option("--fail-on", help="Verdicts that give exit code 3; ambiguous includes slower. (default: slower)"),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="List every case, not only those that changed.")] = False,
    json: Json = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="As Markdown, for a pull request.")] = False,
    itself: Itself,
) -> None:
    """Compare runs case by case: faster, slower, same, ambiguous or not comparable.

    A case is slower if its time grew by more than the threshold and beyond the noise, at the false discovery rate over
    all cases. It is the same if its whole interval lies within the threshold. The noise between runs is taken from
    other runs of the config on the same device in the same folder; without any, only large changes count. Differences
    between the environments are listed above the verdicts, and below them what may be why a case changed: driver,
    clocks, libraries, revision. Exit code 3 always means a regression, 5 that nothing could be compared.

    With last:N or baseline as BASE, NEW is compared with the runs before it in its folder, or with the pinned one, as
    `run --compare-to` does at night, with the same verdicts and exit code. A single run is compared with the run before
    it and with the pinned one. `last` is the newest run in results, `DIR/last` the newest in DIR.

    --aa compares runs of one configuration with each other, so that every change it finds is false. It prints the rate
    of false verdicts, the smallest slowdown that is detected with a probability of 95 % in 95 % of the cases, for each
    class of duration, and a suggested threshold.

    Examples:

      smembench compare results/20260101T020000Z-nightly results/20260102T020000Z-nightly

      smembench compare monday,tuesday wednesday,thursday --markdown --fail-on ambiguous

      smembench compare results/h100 results/h200 --across device --all

      smembench compare last:7 results/20260102T020000Z-nightly

      smembench compare last

      smembench compare --aa quick --runs 10
    """
    from smembench.run.axes import parse_names
    from smembench.store.load import LAST, named
    from smembench.studies.compare import compare_runs
    from smembench.studies.compare.beside import beside
    from smembench.studies.compare.comparability import FACETS, check_apart
    from smembench.studies.compare.sides import load_side
    from smembench.studies.compare.verdicts import Rules, Verdict
    from smembench.studies.nightly.against import is_named
    from smembench.views.compare import comparison_sections, self_section

    one_of(json=json, markdown=markdown)
    given_rules = partial(Rules.of_percent, fdr=fdr, confidence=confidence)
    rules: dict[str, float] = asdict(given_rules(threshold))
    facets = parse_names(across, FACETS, name="--across", what="difference") if across is not None else ()
    if (aa := itself.aa) is not None:
        if base is not None:
            raise UsageError(f"--aa {aa}: compares with itself; leave {base} out")
        if given := [name for name, value in (("--all", all_), ("--fail-on", fail_on)) if value]:
            raise UsageError(f"{given[0]}: belongs to BASE and NEW, which --aa does not take")
        from smembench.studies.compare.itself import compare_with_itself
        from smembench.views.progress import steps

        compared_runs = itself.load(aa)
        for number, run in enumerate(compared_runs):
            check_apart(compared_runs[:number], [run])
        with steps() as step:
            found = compare_with_itself(compared_runs, **rules, across=facets, step=step)
        show([self_section(found)], json=json, markdown=markdown, **(found.data if json else {}))
        if not found.judged:
            raise NothingCompared("nothing was compared: no case is comparable, for the reasons above")
        return
    if itself.measuring:
        raise UsageError(f"{itself.measuring[0]}: belongs to --aa CONFIG")
    if base is None:
        raise UsageError("give BASE and NEW, two runs' folders or cases.csv files, or --aa CONFIG")
    if new is None and is_named(base) and base != LAST:
        raise UsageError(f"{base}: give NEW, too, the run to compare with it: smembench compare {base} results/<run>")
    if new is None:
        base, new = LAST, base
    sections_of = partial(comparison_sections, every=all_, ambiguous=fail_on is FailOn.AMBIGUOUS)
    if is_named(base):
        from smembench.studies.nightly.finish import held
        from smembench.views.console import say, stderr
        from smembench.views.nightly import next_steps
        from smembench.views.progress import steps

        if facets:
            raise UsageError(f"--across: belongs to two runs' folders; {base} takes only runs on the same devices")
        folder = named(Path(new))  # once: it warns of what it leaves out
        with steps() as step:
            night = held(base, folder, lambda stored: given_rules(stored if threshold is None else threshold), step)
        sections = [
            section
            for asked, found in night.compared
            for section in sections_of(found, f"{night.run.id} against {asked}")
        ]
        show(sections, json=json, markdown=markdown, **(night.data if json else {}))
        for line in (*night.held.notes, *night.problems, *map(str, next_steps(night, folder))):
            say(stderr, line)
        compared = [found for _, found in night.compared]
        code = night.without_verdicts
    else:
        sides = load_side(base), load_side(new)
        others = beside(*sides)
        compared = [
            compare_runs(
                *sides,
                threshold=rules["threshold"],
                fdr=fdr / 100,
                confidence=confidence / 100,
                across=facets,
                beside=others,
            )
        ]
        show(sections_of(compared[0]), json=json, markdown=markdown, **(compared[0].data if json else {}))
        code = 0
        if fail_on is not FailOn.NEVER:
            check_apart(*sides)
            if not compared[0].judged:
                why = "no case is comparable, for the reasons above" if compared[0].cases else "no case is in both"
                differs = any(case.other_device for case in compared[0].cases)
                way_out = "; to compare nevertheless: --across device" if differs else ""
                raise NothingCompared(f"nothing was compared: {why}{way_out}")
    failing = {FailOn.SLOWER: (Verdict.SLOWER,), FailOn.AMBIGUOUS: (Verdict.SLOWER, Verdict.AMBIGUOUS)}
    failed = failing.get(fail_on or FailOn.SLOWER, ())
    if any(found.counts[verdict] for found in compared for verdict in failed):
        code = REGRESSION
        counts = [f"{sum(found.counts[verdict] for found in compared)} {verdict}" for verdict in failed]
        typer.echo(f"found: {', '.join(counts)}", err=True)
    if code:
        raise typer.Exit(code)
