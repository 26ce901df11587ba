"""Sections as Rich tables with bars."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO

from rich import box
from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from smembench.model.text import visible
from smembench.views.columns import number
from smembench.views.console import can_show, plain
from smembench.views.sections import Bar, Section

_WIDE = 104
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


def drawn(sections: Sequence[Section]) -> str:
    """The same as text without colours, as wide as the terminal, or 80 columns without one."""
    text = StringIO()
    draw(Console(file=text, force_terminal=True, force_jupyter=False, color_system=None, highlight=False), sections)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


def _draw_section(console: Console, section: Section) -> None:
    if section.heading:
        console.print(Text(plain(console, section.heading), style="bold"))
    below: list[str] = []
    if section.cells:
        columns = [place for place, column in enumerate(section.columns) if not column.wide or console.width >= _WIDE]
        table = _table(console, section, columns)
        if console.is_terminal:
            near = _table(console, section, columns, near=True)
            if _widths(console, table).minimum > console.width:
                table, below = _narrow(console, section, columns)
            elif _widths(console, near).maximum <= console.width < _widths(console, table).maximum:
                table = near  # nothing is folded then
            _fit(console, table)
        else:
            # In a pipe or a file names and figures stay on one line, for grep; only sentences are folded.
            table.width = min(max(console.width, _least_width(console, table)), _widths(console, table).maximum)
        console.print(table, crop=console.is_terminal)
    if section.bars and console.is_terminal:
        _draw_bars(console, section.bars)
    for text, style in [
        *((line, "") for line in below),
        (section.sentence, ""),
        *((n, "italic") for n in section.notes),
    ]:
        if text:
            whole = not console.is_terminal and "smembench " in text  # a command is copied in one piece
            console.print(Text(plain(console, text), style=style), soft_wrap=whole)


def _narrow(console: Console, section: Section, columns: list[int]) -> tuple[Table, list[str]]:
    """A table that breaks no name and no number on a narrow terminal, and the lines below it that this takes.

    Columns come nearer to each other. If that is not enough, those to the right move below the table, words first.
    """
    moved: list[int] = []
    table = _table(console, section, columns, near=True)
    while _widths(console, table).minimum > console.width and columns[1:]:
        words = [place for place in columns[1:] if not section.columns[place].numeric]
        moved.insert(0, (words or columns)[-1])
        columns = [place for place in columns if place != moved[0]]
        table = _table(console, section, columns, near=True)

    def text_of(cells: Sequence[str], place: int) -> str:
        column = section.columns[place]
        text = cells[place].replace("-\n", "").replace("\n", ", ")
        return f"{column.title} {text}" if column.numeric else text

    words = [place for place, column in enumerate(section.columns) if not column.numeric]
    names = [" ".join(filter(None, line)) for line in _telling(section.cells, words)]
    below = (
        f"{name}: {'; '.join(text_of(cells, place) for place in moved if cells[place])}"
        for name, cells in zip(names, section.cells, strict=True)
        if any(cells[place] for place in moved)
    )
    return table, list(below)


def _telling(lines: Sequence[Sequence[str]], words: Sequence[int]) -> list[list[str]]:
    """Of each line the first cells of these columns, as few as tell all lines apart, or all of them."""
    for count in range(1, len(words) + 1):
        keys = [[line[place] for place in words[:count]] for line in lines]
        if len({tuple(cells) for cells in keys}) == len(lines):
            return keys
    return [[line[place] for place in words or [0]] for line in lines]


def _table(console: Console, section: Section, columns: Sequence[int], *, near: bool = False) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD if console.is_terminal else None,
        header_style="bold",
        pad_edge=False,
        padding=0 if near else (0, 1, 0, 0) if console.is_terminal else (0, 1),
    )
    for place in columns:
        column = section.columns[place]
        sentences = any(part.count(" ") > 3 for line in section.cells for part in line[place].split("\n"))
        table.add_column(
            Text(plain(console, column.heading)),
            justify="right" if column.numeric else "left",
            overflow="fold",
            no_wrap=not console.is_terminal and not sentences,
            min_width=_SENTENCE if sentences else None,
        )
    for line in section.cells:
        table.add_row(*(Text(plain(console, line[place])) for place in columns))
    return table


def _widths(console: Console, shown: RenderableType) -> Measurement:
    """The width below which a name or a number would be broken, and that at which nothing is folded."""
    return Measurement.get(console, console.options.update(max_width=_UNLIMITED), shown)


def _fit(console: Console, table: Table) -> None:
    """Give each column its longest word, and what room is left to those that need the least more."""
    spare = console.width - _widths(console, table).minimum
    needs = []
    for place, column in enumerate(table.columns):
        widths = [_widths(console, cell) for cell in (column.header, *column.cells)]
        column.width = max(column.min_width or 0, *(one.minimum for one in widths))
        needs.append((max(one.maximum for one in widths) - column.width, place))
    for more, place in sorted(needs):
        given = max(min(more, spare), 0)
        table.columns[place].width = (table.columns[place].width or 0) + given
        spare -= given


def _least_width(console: Console, table: Table) -> int:
    """The width at which only columns of sentences are folded."""
    folded = [column for column in table.columns if not column.no_wrap]
    widest = [max(_widths(console, cell).maximum for cell in column.cells) for column in folded]
    spare = sum(max(width - _SENTENCE, 0) for width in widest)
    return _widths(console, table).maximum - spare


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
