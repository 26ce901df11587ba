"""Destinations of a command's result: files and stdout, in the forms of ``--export`` and ``--json``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import typer

from smembench.cli.options import Outputs
from smembench.model.errors import UsageError

if TYPE_CHECKING:
    from smembench.store.files import Output
    from smembench.views.export import Result

_DASHBOARDS: dict[str, str] = {f".{form}.json": form for form in ("gbench", "nvbench", "bmf", "smaller")}
_FORMS: dict[str, str] = {
    **_DASHBOARDS,
    ".csv": "csv",
    ".json": "json",
    ".md": "markdown",
    ".tex": "latex",
    ".html": "html",
}
"""The form of an exported file by its suffix, the longest first."""
_NONE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Opened:
    """Files to be written, each with its form, and the form that stdout gets; "" for tables."""

    printed: str
    files: Sequence[tuple[Output, str]]

    @property
    def forms(self) -> set[str]:
        """The forms that are printed or written."""
        return {self.printed, *(form for _, form in self.files)}

    def show(self, result: Result, draw: Callable[[], None] | None = None) -> None:
        """Write the files, then print the result; ``draw`` prints its tables, if not as usual."""
        from smembench.views.console import stdout
        from smembench.views.table import draw as draw_tables

        for file, form in self.files:
            file.write(result.text(form))
        if self.printed:
            typer.echo(result.text(self.printed), nl=False)
        elif draw is not None:
            draw()
        else:
            draw_tables(stdout, result.sections)

    def show_lines(self, lines: Iterable[str], **data: object) -> None:
        """Print lines with columns apart by tabs, or the ``data`` as JSON; for commands that ask for ``only_json``."""
        from smembench.store.run_folder import to_json
        from smembench.views.console import plain, stdout

        for file, _ in self.files:
            file.write(to_json(data))
        if self.printed:
            print_json(**data)
            return
        for line in lines:
            typer.echo("\t".join(plain(stdout, column) for column in line.split("\t")))


def opened(asked: Outputs, *, but: Mapping[str, str] = _NONE, of_run: bool = False) -> Opened:
    """The outputs that are asked for, checked now and written later.

    Args:
        asked: the user's options.
        but: forms that the command does not have, with the reason.
        of_run: whether the result is a run, which dashboards take.

    Raises:
        UsageError: for a file that is there or cannot be written, an unknown suffix, a form that the command does not
            have, and two outputs for one place.
    """
    from smembench.store.files import Output

    if not of_run:
        but = {**dict.fromkeys(_DASHBOARDS.values(), "a run has this form; smembench show RUN writes it"), **but}
    every = list(_asked(asked, but))
    for option, path, form in every:
        if form in but:
            raise UsageError(f"{option if path is None else f'{option} {path}'}: {but[form]}")
    shown = printed(asked)
    named = [(option, path) for option, path, _ in every if path is not None]
    if len(named) > 1 and len({path.resolve() for _, path in named}) == 1:
        options = " and ".join(f"{option} {path}" for option, path in named)
        raise UsageError(f"{options}: are one file; give each its own")
    files = [(Output(path, force=asked.force, what=option), form) for option, path, form in every if path is not None]
    return Opened(shown, files)


def printed(asked: Outputs) -> str:
    """The form that stdout gets; "" for tables.

    Raises:
        UsageError: for several at once.
    """
    forms = [(option, form) for option, path, form in _asked(asked) if path is None]
    if len(forms) > 1:
        raise UsageError(f"{' and '.join(option for option, _ in forms)}: give one of them")
    return "".join(form for _, form in forms)


def _asked(asked: Outputs, but: Mapping[str, str] = _NONE) -> Iterator[tuple[str, Path | None, str]]:
    """For each output: the option that asks for it, its file or None for stdout, and its form."""
    for form in ("json", "markdown", "latex"):
        if getattr(asked, form):
            yield f"--{form}", None, form
    if asked.csv is not None:
        to_stdout = str(asked.csv) == "-"
        yield "--csv -" if to_stdout else "--csv", None if to_stdout else asked.csv, "csv"
    if (path := asked.export) is not None:
        suffix = next((suffix for suffix in _FORMS if path.name.lower().endswith(suffix)), "")
        if not suffix:
            known = [suffix for suffix, form in _FORMS.items() if form not in but]
            raise UsageError(f"--export {path}: its suffix is none of {', '.join(known)}")
        form, to_stdout = _FORMS[suffix], str(path).lower() == f"-{suffix}"
        yield f"--export {path}" if to_stdout else "--export", None if to_stdout else path, form


def monitoring(json_lines: Path | None, openmetrics: Path | None) -> tuple[Output | None, Output | None]:
    """The files for a monitoring system, checked now: lines are appended, metrics replaced.

    Raises:
        UsageError: for a file that cannot be written, and metrics that the textfile collector does not read.
    """
    from smembench.store.files import Output

    if openmetrics is not None and openmetrics.suffix != ".prom":
        raise UsageError(f"--openmetrics {openmetrics}: the textfile collector only reads names in .prom")
    lines = Output(json_lines, what="--json-lines", append=True) if json_lines is not None else None
    return lines, Output(openmetrics, what="--openmetrics", force=True) if openmetrics is not None else None


def only_json(why: str) -> dict[str, str]:
    """The forms that a command does not have which prints lines instead of tables; ``why`` is the reason."""
    return {form: why for form in _FORMS.values() if form != "json"}


def print_json(**parts: object) -> None:
    """Print one JSON object."""
    from smembench.store.run_folder import to_json

    typer.echo(to_json(parts), nl=False)
