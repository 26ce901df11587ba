"""Sections as Rich tables with bars."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from smembench.model.text import visible
from smembench.views.columns import number
from smembench.views.console import can_show, plain
from smembench.views.sections import Bar, Section

_WIDE = 100
"""Characters per line from which every column of a table is shown."""
_UNLIMITED = 10_000
_SENTENCE = 16
"""Fewest characters of a column of sentences."""
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def draw(console: Console, sections: Sequence[Section]) -> None:
    """Print sections one below the other."""
    for index, section in enumerate(sections):
        if index:
            console.print()
        _draw_section(console, section)


def _draw_section(console: Console, section: Section) -> None:
    console.print(Text(plain(console, section.heading), style="bold"))
    if section.cells:
        table = _table(console, section)
        if not console.is_terminal:
            # In a pipe or a file names and figures stay on one line, for grep; only sentences are folded.
            table.width = max(console.width, _least_width(console, table))
        console.print(table, crop=console.is_terminal)
    if section.bars:
        if not console.is_terminal:
            console.print()
        _draw_bars(console, section.bars)
    for text, style in [(section.sentence, ""), *((note, "italic") for note in section.notes)]:
        if text:
            console.print(Padding(Text(plain(console, text), style=style), (0, 0)))


def _table(console: Console, section: Section) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD if console.is_terminal else None,
        header_style="bold",
        pad_edge=False,
        padding=(0, 1, 0, 0) if console.is_terminal else (0, 1),
    )
    shown = [not column.wide or console.width >= _WIDE for column in section.columns]
    for place, column in compress(enumerate(section.columns), shown):
        # A column without a heading holds lines of source.
        sentences = not column.heading or any(line[place].count(" ") > 3 for line in section.cells)
        table.add_column(
            Text(plain(console, column.heading)),
            justify="right" if column.numeric else "left",
            overflow="fold",
            no_wrap=not console.is_terminal and not sentences,
            min_width=_SENTENCE if sentences else None,
        )
    for line in section.cells:
        table.add_row(*(Text(plain(console, cell)) for cell in compress(line, shown)))
    return table


def _least_width(console: Console, table: Table) -> int:
    """The width at which only columns of sentences are folded."""
    unlimited = console.options.update(max_width=_UNLIMITED)
    folded = [column for column in table.columns if not column.no_wrap]
    widest = [max(Measurement.get(console, unlimited, cell).maximum for cell in column.cells) for column in folded]
    spare = sum(max(width - _SENTENCE, 0) for width in widest)
    return Measurement.get(console, unlimited, table).maximum - spare


def _draw_bars(console: Console, bars: Sequence[Bar]) -> None:
    labels = [visible(bar.label) for bar in bars]
    label_width = max(map(len, labels))
    values = [f"{number(bar.value)} {bar.unit}" for bar in bars]
    room = max(min(console.width, 100) - label_width - max(map(len, values)) - 3, 8)
    most = max(bar.value for bar in bars)
    for bar, label, value in zip(bars, labels, values, strict=True):
        drawn = bar_text(bar.value / most if most else 0.0, room, fine=can_show(console, _EIGHTHS))
        line = Text(f"{label:<{label_width}} ")
        line.append(drawn, style="cyan")
        line.append(f" {value}")
        console.print(line, soft_wrap=True)


def bar_text(fraction: float, width: int, *, fine: bool) -> str:
    """A bar of ``fraction`` of ``width`` characters, in eighths of a character or in ``#``."""
    if not fine:
        return "#" * round(fraction * width)
    eighths = round(fraction * width * 8)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
