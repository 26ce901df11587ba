"""A report as files: the page, and single figures for slides."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from importlib.util import find_spec
from pathlib import Path

from smembench.model.errors import SmembenchError, UsageError
from smembench.report.canvas import Plot, render
from smembench.run.axes import split, unknown
from smembench.store.files import write_whole


def check_extra() -> None:
    """Check that the libraries of the report extra are installed.

    Raises:
        UsageError: for missing ones.
    """
    missing = [name for name in ("jinja2", "matplotlib") if find_spec(name) is None]
    if missing:
        raise UsageError(f'report needs {" and ".join(missing)}: pip install "smembench[report]"')


def chosen(plots: Sequence[Plot], patterns: str | None) -> list[Plot]:
    """The plots whose names match one of the patterns, separated by commas, in which ``*`` matches anything.

    Raises:
        UsageError: for a pattern that no name matches.
    """
    if patterns is None:
        return list(plots)
    names = [plot.name for plot in plots]
    found: dict[str, Plot] = {}
    for pattern in split(patterns):
        matching = {plot.name: plot for plot in plots if fnmatchcase(plot.name, pattern)}
        if not matching:
            raise UsageError(f"--figure {pattern!r}: {unknown(pattern, names, 'figure')}")
        found |= matching
    return list(found.values())


def write_figures(plots: Sequence[Plot], kind: str, folder: Path) -> None:
    """Write each plot into a folder, under its name.

    Raises:
        SmembenchError: for a folder that cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for plot in plots:
            data, _ = render(plot, kind, titled=True)
            write_whole(folder / f"{plot.name}.{kind}", data)
    except OSError as error:
        raise SmembenchError(f"--{kind} {folder}: cannot be written ({error.strerror})") from None
