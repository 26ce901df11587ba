"""A report as files: the page, and single charts for slides."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from smembench.model.errors import SmembenchError, UsageError
from smembench.model.install import extra
from smembench.model.progress import Step, unseen
from smembench.report.charts import Chart, rendered
from smembench.run.axes import split, unknown
from smembench.store.files import make_folder, refused, write_whole


def check_extra(what: str, *modules: str) -> None:
    """Check that modules of the report extra, which ``what`` needs, are installed.

    Raises:
        UsageError: for missing ones.
    """
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise UsageError(f"{what} needs {' and '.join(missing)}: {extra('report')}")


def chosen(charts: Sequence[Chart], patterns: str | None, *, asked: str = "--figure ") -> list[Chart]:
    """The charts whose names match one of the patterns, separated by commas, in which ``*`` matches anything.

    ``asked`` is what a message calls the patterns.

    Raises:
        UsageError: for a pattern that no name matches.
    """
    if patterns is None:
        return list(charts)
    names = [chart.name for chart in charts]
    selected: dict[str, Chart] = {}
    for pattern in split(patterns):
        matching = {chart.name: chart for chart in charts if fnmatchcase(chart.name, pattern)}
        if not matching:
            raise UsageError(f"{asked}{pattern!r}: {unknown(pattern, names, 'figure')}")
        selected |= matching
    return list(selected.values())


def write_figures(charts: Sequence[Chart], kind: Literal["png", "svg"], folder: Path, step: Step = unseen) -> None:
    """Write each chart into a folder, under its name; ``step`` is called before each.

    Raises:
        UsageError: for a folder that cannot be made.
        SmembenchError: for one that cannot be written.
    """
    make_folder(folder, f"--{kind} {folder}")
    with refused(f"--{kind} {folder}: cannot be written", SmembenchError):
        for number, chart in enumerate(charts, 1):
            step(chart.name, number, len(charts))
            write_whole(folder / f"{chart.name}.{kind}", rendered(chart, kind))
