"""Progress on stderr: a bar on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from smembench.views.console import notes, say

OFTEN_SECONDS = 10.0
"""How often progress is a line where there are no bars."""


@contextmanager
def steps(*, counted: bool = True) -> Iterator[Callable[[str, int, int], None]]:
    """A function to call when a step begins, with its name, its number and how many there are.

    Without ``counted`` the numbers only fill the bar, for steps whose names say where they are.
    """
    columns = (
        BarColumn(bar_width=20),
        *([MofNCompleteColumn()] if counted else []),
        TimeRemainingColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=notes, transient=True, disable=not notes.is_terminal) as bar:
        task = bar.add_task("", total=None)
        yield lambda name, number, of: bar.update(task, completed=number - 1, total=of, description=name)


@contextmanager
def counts() -> Iterator[Callable[[str, int, int], None]]:
    """A function to call with what is counted now, how much is done, and how much there is.

    Where there is no terminal it is a line, at first and then every few seconds.
    """
    with steps() as step:
        next_line = 0.0

        def count(what: str, done: int, of: int) -> None:
            nonlocal next_line
            step(what, done + 1, of)
            if not notes.is_terminal and (now := monotonic()) >= next_line:
                next_line = now + OFTEN_SECONDS
                say(notes, f"{done} of {of}: {what}")

        yield count
