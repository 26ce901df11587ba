"""Time and rate over the size, a panel per kernel and a line per block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log
from typing import TYPE_CHECKING

from smembench.kernels.problems import PROBLEMS
from smembench.report.canvas import MARKERS, MUTED, SERIES, Canvas, Plot, file_name, label_ends, tick
from smembench.store.schema import Row
from smembench.views.columns import FIGURES, Column, milliseconds, number, value
from smembench.views.sections import Section, grouped, label

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TICKS = 7
_DECADES = 100
"""Above this ratio of the largest to the smallest value, an axis is logarithmic."""


def over_sizes(rows: Sequence[Row]) -> list[Plot]:
    """Two figures for each problem, device, dtype, cache mode, stride and parameters with two sizes or more."""

    def family(row: Row) -> tuple[object, ...]:
        return (row.problem, row.device, row.dtype, row.cache, row.stride, row.case.parameters)

    found = []
    for members in grouped((row for row in rows if row.ok), family).values():
        if len({row.case.size for row in members}) > 1:
            rate = PROBLEMS[members[0].problem].columns[0]
            found += [_plot(members, column) for column in ("elapsed_ms", rate)]
    return found


@dataclass(frozen=True, slots=True)
class _Quantity:
    """One column of cases.csv over the size."""

    column: str
    square: bool

    @property
    def unit(self) -> str:
        return "ms" if self.column == "elapsed_ms" else FIGURES[self.column].unit or FIGURES[self.column].heading

    @property
    def axis(self) -> str:
        return "side n" if self.square else "bytes per launch"

    def size(self, row: Row) -> int:
        return row.n if self.square else row.bytes

    def of(self, row: Row) -> float:
        return value(row, self.column) or 0.0

    def text(self, row: Row) -> str:
        return milliseconds(self.of(row)) if self.column == "elapsed_ms" else number(self.of(row))


def _plot(rows: Sequence[Row], column: str) -> Plot:
    first = rows[0]
    quantity = _Quantity(column, square=all(row.m == row.n and row.k in (None, row.n) for row in rows))
    problem = PROBLEMS[first.problem]
    ceiling = problem.ceiling_kernel
    reference = [row for row in rows if row.kernel == ceiling]
    panels = grouped(rows, lambda row: row.kernel)
    if ceiling in panels and len(panels) > 1:
        del panels[str(ceiling)]
    blocks = list(dict.fromkeys(row.block for row in rows if row.block))

    def draw(canvas: Canvas) -> None:
        grid = canvas.panels(len(panels), sharey=True)
        _scale(grid[0], rows, quantity)
        for axes, (kernel, members) in zip(grid, panels.items(), strict=True):
            axes.set_title(kernel)
            ends = []
            if reference and kernel != ceiling:
                ends.append(_line(canvas, axes, reference, quantity, MUTED, "."))
            for place, line in enumerate(grouped(members, _series).values()):
                # A block has the same colour in every panel; lines of one block with different pads differ by markers.
                colour = SERIES[blocks.index(line[0].block) % len(SERIES)] if line[0].block else SERIES[0]
                ends.append(_line(canvas, axes, line, quantity, colour, MARKERS[place % len(MARKERS)]))
            label_ends(axes, ends)
        canvas.figure.supxlabel(quantity.axis, fontsize=9)
        canvas.figure.supylabel(quantity.unit, fontsize=9)

    timed = column == "elapsed_ms"
    stride = f", stride {first.stride}" if first.stride else ""
    stride += "".join(f", {name} {number}" for name, number in first.case.parameters)
    cache = f" · {first.cache} cache" if problem.memory == "device" else ""
    subject = f"{problem.title} {first.dtype}{stride}{cache} · {first.device}"
    title = f"{'Time' if timed else quantity.unit} over size: {subject}"
    return Plot(
        name=file_name(
            f"{'time' if timed else 'rate'}-{first.problem}-{first.device}-{first.dtype}-{first.cache}{stride}"
        ),
        title=title,
        caption=(
            f"{'Median time per launch in ms' if timed else quantity.unit} over the {quantity.axis}, a panel per kernel"
            f"{' and a line per block' if blocks else ''}{f', with {ceiling} dashed' if reference else ''}; "
            f"{'lower' if timed else 'higher'} is faster."
        ),
        size=(7.0, 0.6 + 2.1 * ceil(len(panels) / 2)),
        draw=draw,
        data=_table(rows, quantity, title),
    )


def _scale(axes: Axes, rows: Sequence[Row], quantity: _Quantity) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(apart(sorted({quantity.size(row) for row in rows}), _TICKS)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(tick if quantity.square else prefixed))
    values = [quantity.of(row) for row in rows]
    if min(values) > 0 and max(values) / min(values) > _DECADES:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(FuncFormatter(tick))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.set_ylim(min(values) / 1.5, 1.5 * max(values))
    else:
        axes.set_ylim(0, 1.05 * max(values) or 1)


def apart(sizes: Sequence[int], most: int) -> list[int]:
    """About ``most`` of the ascending sizes, those whose numbers do not overlap on a logarithmic axis."""
    gap = (sizes[-1] / sizes[0]) ** (1 / most)
    found = [sizes[0]]
    for size in sizes:
        if size >= gap * found[-1] * (1 - 1e-9) and size > found[-1]:
            found.append(size)
    return found


def prefixed(count: float, _: int | None = None) -> str:
    """A number of bytes in short: ``64Ki`` where that is exact, else ``80k``."""
    binary, decimal = (min(int(log(count, base) + 1e-9), 3) for base in (1024, 1000))
    if count % 1024**binary == 0:
        return f"{count / 1024**binary:.4g}{('', 'Ki', 'Mi', 'Gi')[binary]}"
    return f"{count / 1000**decimal:.4g}{('', 'k', 'M', 'G')[decimal]}"


def _line(
    canvas: Canvas, axes: Axes, rows: Sequence[Row], quantity: _Quantity, colour: str, marker: str
) -> tuple[float, str, str]:
    """Draw a line and its points; returns what ``label_ends`` takes."""
    ordered = sorted(rows, key=quantity.size)
    axes.plot(
        [quantity.size(row) for row in ordered],
        [quantity.of(row) for row in ordered],
        color=colour,
        linestyle="--" if colour == MUTED else "-",
        linewidth=1.3,
    )
    for row in ordered:
        (point,) = axes.plot(quantity.size(row), quantity.of(row), marker=marker, color=colour)
        canvas.mark(point, f"{label(row)}, {row.case.size}: {quantity.text(row)} {quantity.unit}")
    return quantity.of(ordered[-1]), _series(rows[0]) or rows[0].kernel, colour


def _series(row: Row) -> str:
    """The label of a line within its kernel's panel: ``32x32 +1``."""
    return label(row).removeprefix(row.kernel).strip()


def _table(rows: Sequence[Row], quantity: _Quantity, heading: str) -> Section:
    sizes = list(dict.fromkeys(row.case.size for row in rows))
    by_case = {(label(row), row.case.size): quantity.text(row) for row in rows}
    return Section(
        heading=f"{heading}, {quantity.unit}",
        columns=[Column("case", numeric=False), *map(Column, sizes)],
        cells=[
            [name, *(by_case.get((name, size), "") for size in sizes)]
            for name in dict.fromkeys(label(row) for row in rows)
        ],
    )
