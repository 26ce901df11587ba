"""Time and rate over the size, a panel per kernel and a line per block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, log
from typing import TYPE_CHECKING

from smembench.kernels.problems import PROBLEMS
from smembench.report.canvas import MARKERS, MUTED, SERIES, Canvas, Plot, file_name, label_ends, tick
from smembench.store.schema import Row
from smembench.views.columns import FIGURES, value
from smembench.views.sections import grouped, label, table

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


def _plot(rows: Sequence[Row], column: str) -> Plot:
    first, timed, figure = rows[0], column == "elapsed_ms", FIGURES[column]
    problem, unit = PROBLEMS[first.problem], figure.unit or figure.heading
    square = all(row.m == row.n and row.k in (None, row.n) for row in rows)
    axis = "side n" if square else "bytes per launch"
    ceiling = problem.ceiling_kernel
    reference = [row for row in rows if row.kernel == ceiling]
    panels = grouped(rows, lambda row: row.kernel)
    if ceiling in panels and len(panels) > 1:
        del panels[str(ceiling)]
    blocks = list(dict.fromkeys(row.block for row in rows if row.block))

    def size(row: Row) -> int:
        return row.n if square else row.bytes

    def line(canvas: Canvas, axes: Axes, members: Sequence[Row], colour: str, marker: str) -> tuple[float, str, str]:
        """Draw a line and its points; returns what ``label_ends`` takes."""
        ordered = sorted(members, key=size)
        values = [value(row, column) or 0.0 for row in ordered]
        style = "--" if colour == MUTED else "-"
        axes.plot([size(row) for row in ordered], values, color=colour, linestyle=style, linewidth=1.3)
        for row, shown in zip(ordered, values, strict=True):
            (point,) = axes.plot(size(row), shown, marker=marker, color=colour)
            canvas.mark(point, f"{label(row)}, {row.case.size}: {figure.text(shown)} {unit}")
        return values[-1], _series(ordered[0]) or ordered[0].kernel, colour

    def draw(canvas: Canvas) -> None:
        grid = canvas.panels(len(panels), sharey=True)
        _scale(grid[0], sorted({size(row) for row in rows}), [value(row, column) or 0.0 for row in rows])
        grid[0].xaxis.set_major_formatter(tick if square else prefixed)
        for axes, (kernel, members) in zip(grid, panels.items(), strict=True):
            axes.set_title(kernel)
            ends = []
            if reference and kernel != ceiling:
                ends.append(line(canvas, axes, reference, MUTED, "."))
            for place, found in enumerate(grouped(members, _series).values()):
                # A block has the same colour in every panel; lines of one block with different pads differ by markers.
                colour = SERIES[blocks.index(found[0].block) % len(SERIES)] if found[0].block else SERIES[0]
                ends.append(line(canvas, axes, found, colour, MARKERS[place % len(MARKERS)]))
            label_ends(axes, ends)
        canvas.figure.supxlabel(axis, fontsize=9)
        canvas.figure.supylabel(unit, fontsize=9)

    stride = f", stride {first.stride}" if first.stride else ""
    stride += "".join(f", {name} {number}" for name, number in first.case.parameters)
    cache = f" · {first.cache} cache" if problem.memory == "device" else ""
    subject = f"{problem.title} {first.dtype}{stride}{cache} · {first.device}"
    title = f"{'Time' if timed else unit} over size: {subject}"
    place = f"{first.problem}-{first.device}-{first.dtype}-{first.cache}{stride}"
    by_case = {(label(row), row.case.size): figure.text(value(row, column)) for row in rows}

    def at(size: str) -> Callable[[str], str]:
        return lambda name: by_case.get((name, size), "")

    return Plot(
        name=file_name(f"{'time' if timed else 'rate'}-{place}"),
        title=title,
        caption=(
            f"{'Median time per launch in ms' if timed else unit} over the {axis}, a panel per kernel"
            f"{' and a line per block' if blocks else ''}{f', with {ceiling} dashed' if reference else ''}; "
            f"{'lower' if timed else 'higher'} is faster."
        ),
        size=(7.0, 0.6 + 2.1 * ceil(len(panels) / 2)),
        draw=draw,
        data=table(
            f"{title}, {unit}",
            dict.fromkeys(name for name, _ in by_case),
            {"case": str, **{size: at(size) for _, size in by_case}},
            words=("case",),
        ),
    )


def _scale(axes: Axes, sizes: Sequence[int], values: Sequence[float]) -> None:
    from matplotlib.ticker import NullLocator

    axes.set_xscale("log", base=2)
    axes.set_xticks(apart(sizes, _TICKS))
    axes.xaxis.set_minor_locator(NullLocator())
    if min(values) > 0 and max(values) / min(values) > _DECADES:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(tick)
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


def prefixed(count: float, _: float = 0) -> str:
    """A number of bytes in short: ``64Ki`` where that is exact, else ``80k``."""
    binary, decimal = (min(int(log(count, base) + 1e-9), 3) for base in (1024, 1000))
    if count % 1024**binary == 0:
        return f"{count / 1024**binary:.4g}{('', 'Ki', 'Mi', 'Gi')[binary]}"
    return f"{count / 1000**decimal:.4g}{('', 'k', 'M', 'G')[decimal]}"


def _series(row: Row) -> str:
    """The label of a line within its kernel's panel: ``32x32 +1``."""
    return label(row).removeprefix(row.kernel).strip()
