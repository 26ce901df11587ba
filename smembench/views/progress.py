"""A progress bar on stderr, on a terminal only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from smembench.model.case import Case
from smembench.model.text import visible
from smembench.views.console import stderr

if TYPE_CHECKING:
    from smembench.run.runner import Begin


def _short(case: Case) -> str:
    return visible(" ".join(str(part) for part in (case.kernel, case.block, case.size) if part is not None))


@contextmanager
def progress() -> Iterator[Begin]:
    """A function to call when work on a case begins."""
    with steps() as step:
        yield lambda case, number, of: step(_short(case), number, of)


@contextmanager
def steps() -> Iterator[Callable[[str, int, int], None]]:
    """A function to call when a step begins, with its name, its number and how many there are."""
    columns = (
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=stderr, transient=True, disable=not stderr.is_terminal) as bar:
        task = bar.add_task("", total=None)
        yield lambda name, number, of: bar.update(task, completed=number - 1, total=of, description=name)
