"""``smembench explain``: the worst bank conflict of a kernel, as a picture of its shared array."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import groupby, pairwise

from rich.text import Text

from smembench.explain.banks import bank_of, worst_part
from smembench.explain.costs import Costs, SharedAccess
from smembench.explain.trace import SharedArray
from smembench.model.hardware import BANKS, WORD_BYTES

_SCREEN = 80
_GAP = -1
"""In a list of columns: some that are not drawn."""
_COLOURS = ("cyan", "green", "magenta", "blue", "red")
_Marks = dict[int, dict[int, str]]
"""What stands in a cell, by row and column: a bank, or ``o``."""


def picture(explained: Costs) -> list[Text]:
    """The request with the worst conflict in its array: each word in conflict by its bank, below a legend.

    One line for a kernel without conflicts, none for one without shared memory.
    """
    # Between equals, the load: padding is for the column that it reads.
    worst = max(explained.shared, key=lambda access: (access.degree, access.site.kind == "load"), default=None)
    if worst is None:
        return []
    if worst.degree == 1:
        of = " of loads and stores" if explained.shared_atomics else ""
        of += " among the accesses that were followed" if explained.trace.unfollowed else ""
        return [Text(f"No bank conflicts{of}: no wavefront needs two different words of one bank.")]
    (array,) = (array for array in explained.trace.shared if array.name == worst.site.array)
    return conflict_picture(array, worst, explained.pad)


def conflict_picture(array: SharedArray, access: SharedAccess, pad: int) -> list[Text]:
    """The worst request of an access: of its parts that are served one by one, that with most wavefronts.

    Rows are those of a tile, which end with ``pad`` elements of padding; an array of one dimension has rows of one word
    per bank. Without a picture if no screen holds a row.
    """
    lanes, banks = worst_part(access.worst.addresses, access.site.width, access.site.kind)
    drawing = _title(access, lanes, banks)
    unit = max(array.itemsize, WORD_BYTES)
    columns, odd = divmod(array.shape[-1] * array.itemsize, unit)
    first, tile = array.base, len(array.shape) > 1 and not odd
    if not tile:
        columns = BANKS * WORD_BYTES // unit
        first -= first % (BANKS * WORD_BYTES)
    border = columns - pad * array.itemsize // unit if tile and pad else None
    marks: _Marks = {}
    # The first word of a wide element comes last and names its bank.
    for word in sorted(set().union(*banks), reverse=True):
        address = word * WORD_BYTES
        row, column = divmod((address - first) // unit, columns)
        bank = bank_of(address)
        marks.setdefault(row, {})[column] = str(bank) if len(banks[bank]) > 1 else "o"
    end = max(-(-(array.base + array.bytes - first) // (unit * columns)), max(marks) + 1)  # of rows
    margin = len(str(end - 1)) + 1
    shown, cell = _layout(columns, marks, _SCREEN - margin - bool(border))
    if not shown:
        return drawing
    if not tile:
        drawing[-1].append(f" A row has {BANKS * WORD_BYTES} bytes.")
    legend = [
        f"number: {'bank of words' if unit == WORD_BYTES else 'first bank'} in conflict",
        "o: no conflict" if any("o" in of_row.values() for of_row in marks.values()) else "",
        f".: not {'stored' if access.site.kind == 'store' else 'loaded'}",
        "|: padding" if border in shown else "",
    ]
    drawing.append(Text(", ".join(filter(None, legend))))
    for before, row in pairwise([min(0, *marks) - 1, *sorted(marks), end]):
        empty = range(before + 1, row)
        if len(empty) > 1:
            drawing.append(Text(f"{'…':>{margin - 1}} {len(empty)} rows without accesses", style="dim"))
        drawn = [at for at in (*empty[: len(empty) == 1], row) if at < end]
        drawing += [_row(f"{at:>{margin - 1}} ", marks.get(at, {}), shown, cell, border) for at in drawn]
    return drawing


def _title(access: SharedAccess, lanes: range, banks: Sequence[Collection[int]]) -> list[Text]:
    site, most = access.site, max(map(len, banks))
    busiest = [bank for bank, words in enumerate(banks) if len(words) == most]
    line = f", line {site.line}" if site.line else ""
    who = f"Bank {busiest[0]} has" if len(busiest) == 1 else f"{len(busiest)} banks have"
    return [
        Text(f"Bank conflict: {site.kind} of {site.array}{line}, lanes {lanes[0]} to {lanes[-1]}", "bold"),
        Text(f"{who} to serve {most} words{' each' if len(busiest) > 1 else ''}, one per wavefront."),
    ]


def _layout(columns: int, marks: _Marks, room: int) -> tuple[list[int], int]:
    """The columns to draw and the characters of each: all, or those with marks. No columns if there is no room."""
    places = {(row, column) for row, of_row in marks.items() for column in of_row}
    touched = {column for _, column in places}
    beside = any((row, column - 1) in places and len(marks[row][column]) > 1 for row, column in places)
    every, some = list(range(columns)), []
    for drawn, group in groupby(every, touched.__contains__):
        some += list(group) if drawn else [_GAP]
    narrow = [] if beside else [(every, 2)]
    fitting = ((shown, cell) for shown, cell in [(every, 3), *narrow, (some, 3)] if cell * len(shown) <= room)
    return next(fitting, ([], 0))


def _row(label: str, marks: dict[int, str], shown: list[int], cell: int, border: int | None) -> Text:
    line = Text()
    line.append(label, style="dim")
    for column in shown:
        if column == border:
            line.append("|")
        mark = "…" if column == _GAP else marks.get(column, ".")
        line.append(" " * (cell - len(mark)))
        colour = _COLOURS[int(mark) % len(_COLOURS)] if mark.isdecimal() else ""
        line.append(mark, style=f"bold reverse {colour}" if colour else "" if mark == "o" else "dim")
    return line
