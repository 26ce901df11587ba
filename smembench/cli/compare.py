"""``smembench compare``: is anything slower than it was, and could that be seen at all?"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from smembench.model.errors import REGRESSION, UsageError

if TYPE_CHECKING:
    from smembench.store.run import Run
    from smembench.views.sections import Section


class FailOn(StrEnum):
    """Which verdicts end the process with exit code 3."""

    SLOWER = "slower"
    AMBIGUOUS = "ambiguous"
    NEVER = "never"


def compare(
    base: Annotated[
        str | None, typer.Argument(metavar="BASE[,…]", help="A run's folder or a cases.csv; several are one side.")
    ] = None,
    new: Annotated[str | None, typer.Argument(metavar="NEW[,…]", help="The same, measured after it.")] = None,
    threshold: Annotated[
        float, typer.Option("--threshold", metavar="PERCENT", help="Smallest effect that counts.")
    ] = 2.0,
    fdr: Annotated[
        float,
        typer.Option("--fdr", metavar="PERCENT", help="False discovery rate over the cases (Benjamini–Hochberg)."),
    ] = 1.0,
    confidence: Annotated[
        float, typer.Option("--confidence", metavar="PERCENT", help="Of the intervals around the ratios.")
    ] = 95.0,
    across: Annotated[
        str | None,
        typer.Option("--across", metavar="NAME,…", help="Compare although these differ: device, driver, clocks."),
    ] = None,
    fail_on: Annotated[
        FailOn | None,
        typer.Option("--fail-on", help="What ends with exit code 3; ambiguous includes slower. (default: slower)"),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="List the cases that are the same, too.")] = False,
    json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="As Markdown, for a pull request.")] = False,
    aa: Annotated[
        str | None,
        typer.Option(
            "--aa",
            metavar="CONFIG.toml|DIR,…",
            help="Compare a configuration with itself, measured several times now, or stored runs of one.",
            rich_help_panel="A/A",
        ),
    ] = None,
    runs: Annotated[
        int | None,
        typer.Option("--runs", metavar="N", help="How often to measure it. (default: 10)", rich_help_panel="A/A"),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", metavar="DIR", help="Where its runs are kept. (default: results)", rich_help_panel="A/A"
        ),
    ] = None,
    anonymous: Annotated[
        bool,
        typer.Option(
            "--anonymous", help="Leave host name, UUIDs and arguments out of its run.json files.", rich_help_panel="A/A"
        ),
    ] = False,
) -> None:
    """Compare runs case by case: faster, slower, same, ambiguous or not comparable.

    A case is slower when the median of its round medians grew by the threshold or more and noise alone would not do
    that, with control of the false discovery rate over all cases; it is the same when its whole interval lies within
    the threshold. What differs between the environments stands above the verdicts. Exit code 3 means a regression and
    nothing else.

    --aa measures what this machine makes of a configuration that did not change: the rate of false verdicts, the
    smallest slowdown that would be seen, and a threshold.

    Examples:

      smembench compare results/20260101T020000Z-nightly results/20260102T020000Z-nightly

      smembench compare monday,tuesday wednesday,thursday --markdown --fail-on ambiguous

      smembench compare results/before results/after --across driver --all

      smembench compare --aa configs/quick.toml --runs 10
    """
    from smembench.run.axes import parse_names
    from smembench.studies.compare import compare_runs
    from smembench.studies.compare.comparability import FACETS
    from smembench.studies.compare.itself import compare_with_itself
    from smembench.studies.compare.verdicts import Rules, Verdict
    from smembench.views.compare import comparison_sections, self_section

    if json and markdown:
        raise UsageError("--json and --markdown: give one of them")
    rules = {"threshold": threshold / 100, "fdr": fdr / 100, "confidence": confidence / 100}
    Rules(**rules)
    facets = parse_names(across, FACETS, name="--across", what="difference") if across is not None else ()
    if aa is not None:
        if base is not None:
            raise UsageError(f"--aa {aa}: compares with itself; leave {base} out")
        if given := [name for name, value in (("--all", all_), ("--fail-on", fail_on)) if value]:
            raise UsageError(f"{given[0]}: belongs to BASE and NEW, of which --aa takes neither")
        itself = compare_with_itself(_of_itself(aa, runs, output, anonymous), **rules, across=facets)
        _print(lambda: itself.data, [self_section(itself)], json=json, markdown=markdown)
        return
    if given := _measuring(runs, output, anonymous):
        raise UsageError(f"{given[0]}: belongs to --aa CONFIG.toml")
    if base is None or new is None:
        raise UsageError("give BASE and NEW, two runs' folders or cases.csv files, or --aa CONFIG.toml")
    found = compare_runs(_load(base), _load(new), **rules, across=facets)
    _print(lambda: found.data, comparison_sections(found, every=all_), json=json, markdown=markdown)
    failing = {FailOn.SLOWER: (Verdict.SLOWER,), FailOn.AMBIGUOUS: (Verdict.SLOWER, Verdict.AMBIGUOUS)}
    if any(found.counts[verdict] for verdict in failing.get(fail_on or FailOn.SLOWER, ())):
        raise typer.Exit(REGRESSION)


def _load(text: str) -> list[Run]:
    """The runs of one side: a path, or several with commas between them."""
    from smembench.run.axes import split
    from smembench.studies.load import load

    found: dict[Path, Run] = {}
    for item in [text] if Path(text).exists() else split(text):
        path = Path(item or text)
        if path.resolve() in found:
            raise UsageError(f"{path}: is given twice on one side, and would count twice")
        found[path.resolve()] = load(path)
    return list(found.values())


def _measuring(runs: int | None, output: Path | None, anonymous: bool) -> list[str]:
    """The options given that say how --aa measures."""
    given = {"--runs": runs is not None, "--output": output is not None, "--anonymous": anonymous}
    return [name for name, there in given.items() if there]


def _of_itself(text: str, runs: int | None, output: Path | None, anonymous: bool) -> list[Run]:
    """Runs of one configuration: measured now when it is a TOML file, otherwise stored ones, or all in a folder."""
    from smembench.store.run_folder import CASES

    if not text.endswith(".toml"):
        if given := _measuring(runs, output, anonymous):
            raise UsageError(f"{given[0]}: belongs to --aa CONFIG.toml; {text} is stored already")
        folder = Path(text)
        inside = sorted(path.parent for path in folder.glob(f"*/{CASES}")) if folder.is_dir() else []
        return _load(",".join(map(str, inside)) if inside and not (folder / CASES).exists() else text)
    count = 10 if runs is None else runs
    if count < 2:
        raise UsageError(f"--runs {count}: it takes two to compare, and ten to learn much")
    from smembench.cli.measure import leave, watch
    from smembench.run.config import from_toml
    from smembench.studies.compare.itself import measured

    folders = []
    config, root = from_toml(Path(text)), output or Path("results")
    for outcome in measured(config, count, root, anonymous=anonymous, argv=sys.argv[1:], watch=watch()):
        leave(outcome)
        folders.append(outcome.run.path)
    return [run for folder in folders for run in _load(str(folder))]


def _print(data: Callable[[], object], sections: Sequence[Section], *, json: bool, markdown: bool) -> None:
    from json import dumps

    from smembench.views.console import stdout
    from smembench.views.markdown import markdown as as_markdown
    from smembench.views.table import draw

    if json:
        typer.echo(dumps(data(), indent=2, ensure_ascii=False))
    elif markdown:
        typer.echo(as_markdown(sections), nl=False)
    else:
        draw(stdout, sections)
