"""A progress bar on stderr, on a terminal only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from smembench.case import Case
from smembench.views.console import stderr


@contextmanager
def progress(total: int) -> Iterator[tuple[Callable[[Case], None], Callable[[], None]]]:
    """Functions to call when a case begins and when it is done."""
    columns = (
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=stderr, transient=True, disable=not stderr.is_terminal) as bar:
        task = bar.add_task("", total=total)
        yield (lambda case: bar.update(task, description=case.id)), (lambda: bar.advance(task))
