"""Kernels over the size on common axes: beside the limit where one was measured, aligned and ragged sizes apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from smembench.model.groups import grouped
from smembench.model.text import capital
from smembench.report.charts import Chart, Spec, file_name, layer, layered, names_axis, number_axis
from smembench.store.run import Run
from smembench.store.schema import Row
from smembench.studies.difference import Ratio
from smembench.views.columns import figures, ratio_text
from smembench.views.families import LINE_BYTES, OPERATIONS, Family, aligned, families, of_few_rows
from smembench.views.sections import Section, label, size_text, table

_APART = f"Aligned: the matrices' rows begin at cache lines of {LINE_BYTES} bytes."
_MOST = 6
"""Lines of a chart: the fastest kernels."""
_TICKS = 7
_FAR = 1.5
"""Smallest ratio of the largest to the smallest size of a chart."""
_LONG = 100_000
"""From here on an axis has decimal prefixes."""
_WIDE = 20
"""Above this ratio of the largest to the smallest value, an axis is logarithmic."""


def best_over_sizes(family: Family) -> Chart | None:
    """The fastest kernel of each size beside the limit; None without a limit."""
    rows = family.fastest
    if not rows:
        return None
    values = [_point(family, row, "shape", aligned(row)) for row in rows]
    domain = sorted({str(value["shape"]) for value in values})
    shape = names_axis("shape", domain, scale={"domain": domain}, **({} if len(domain) > 1 else {"legend": None}))
    limits = [min(1.0, *(one["low"] for one in values)) / 1.03, max(1.0, *(one["high"] for one in values)) * 1.03]
    y = number_axis("figure", family.unit, domain=limits, nice=False)
    marks: dict[str, Spec] = {"x": _size_axis(family, rows), "y": y, "color": shape, "shape": shape}
    return Chart(
        name=file_name(f"fastest-{rows[0].problem}-{rows[0].dtype}-{rows[0].cache}"),
        title=f"The fastest kernel at each size, compared with {family.beside}",
        caption=f"{capital(family.subject)}; above 1 is faster. {_APART if len(domain) > 1 else ''}",
        spec=layered(
            240,
            _one(y),
            _intervals(values, **marks),
            layer("point", values, {"filled": True, "size": 80, "opacity": 1}, **marks),
        ),
        data=table(
            f"The fastest kernel of each size: {family.subject}",
            rows,
            {
                "size": family.heading,
                "kernel": label,
                **figures(family.problem, ["elapsed_ms", family.problem.texts.columns[0]], rows),
                f"over {family.beside}": lambda row: _text(family, row),
                "rows": aligned,
            },
            words=("size", "kernel", "rows"),
        ),
    )


def _point(family: Family, row: Row, key: str, value: str) -> dict[str, Any]:
    """A row's figure with its interval; ``value`` tells apart the rows of a chart."""
    figure, within = family.figure(row) or Ratio(0.0), (family.figure(row) or Ratio(0.0)).within or 0.0
    interval = {"low": figure.value / (1 + within), "high": figure.value * (1 + within)}
    return {"size": family.size(row), "figure": figure.value, **interval, key: value, "says": _caption(family, row)}


def _intervals(values: Sequence[Mapping[str, Any]], *, x: Spec, y: Spec, color: Spec, **_: object) -> Spec:
    """Lines from the lower to the upper ends of intervals."""
    return layer("rule", values, x=x, y=y | {"field": "low"}, y2={"field": "high"}, color=color)


def _text(family: Family, row: Row) -> str:
    figure = family.figure(row)
    return ratio_text(figure) if figure else ""


def over_sizes(run: Run) -> list[Chart]:
    """A chart for each family, or two with the same axes and kernels where it has aligned and ragged sizes.

    Sizes that are all close to each other have none: they would be a single dot. Products of few rows also stand beside
    a read of B.
    """
    charts = []
    for family in [*families(run), *of_few_rows(run)]:
        shapes = grouped([row for row in family.best.values() if row.problem == family.first.problem], aligned)
        far = [shape for shape, of in shapes.items() if max(map(family.size, of)) > _FAR * min(map(family.size, of))]
        charts += [_chart(family, shape, apart=len(shapes) > 1) for shape in sorted(far)]
    return charts


def _chart(family: Family, shape: str, *, apart: bool) -> Chart:
    lines = family.lines
    shown = list(lines)[:_MOST]
    every = [figure.value for kernel in shown for row in lines[kernel] if (figure := family.figure(row))]
    every += [1.0] if family.beside or not every else []
    own = {key: row for key, row in family.best.items() if aligned(row) == shape}
    values = [
        _point(family, row, "kernel", kernel) for kernel in shown for row in lines[kernel] if aligned(row) == shape
    ]
    scale: Spec = {"type": "log" if max(every) > _WIDE * min(every) else "linear", "nice": False}
    y = number_axis("figure", family.unit, domain=[min(every) / 1.05, 1.05 * max(every)], **scale)
    names = names_axis("kernel", shown, scale={"domain": shown})
    marks: dict[str, Spec] = {"x": _size_axis(family, own.values()), "y": y, "color": names}
    few = f" The {len(shown)} fastest of {len(lines)} kernels; the table has all." if len(lines) > len(shown) else ""
    title = f"{capital(family.subject)}{f': {shape} sizes' if apart else ''}"
    # A line between sizes that are ragged in different ways, or of different shapes, would say nothing.
    joined = shape != "ragged" and family.axis != OPERATIONS
    subject = family.subject.removeprefix(family.problem.texts.title)
    return Chart(
        name=file_name(f"sizes-{family.first.problem}-{subject}-{shape}"),
        title=title,
        caption=f"{capital(family.unit)} over the size; higher is faster.{few} {_APART if apart else ''}",
        spec=layered(
            280,
            *([_one(y)] if family.beside else []),
            *([layer("line", values, {"strokeWidth": 1.5}, **marks)] if joined else []),
            _intervals(values, **marks),
            layer("point", values, {"filled": True, "size": 50, "opacity": 1}, **marks, shape=names),
        ),
        data=_table(family, own, f"{title}, {family.unit}"),
    )


def _table(family: Family, own: Mapping[tuple[str, str], Row], heading: str) -> Section:
    def at(size: str) -> Callable[[str], str]:
        return lambda kernel: _text(family, own[kernel, size]) if (kernel, size) in own else ""

    sizes = {size_text(row.case): family.heading(row) for row in sorted(own.values(), key=family.size)}
    kernels = dict.fromkeys(kernel for kernel, _ in own)
    columns: dict[str, Callable[[str], str]] = {"kernel": str, **{text: at(size) for size, text in sizes.items()}}
    return table(heading, kernels, columns, words=("kernel",))


def _caption(family: Family, row: Row) -> str:
    return f"{label(row)}, {family.heading(row)}: {_text(family, row)} {family.unit}"


def _one(y: Spec) -> Spec:
    """The line at which a kernel is as fast as what it stands beside."""
    return layer("rule", [{"figure": 1}], {"color": "var(--ink)", "strokeDash": [4, 3]}, y=y)


def _size_axis(family: Family, rows: Iterable[Row]) -> Spec:
    every = sorted({family.size(row) for row in family.best.values()})
    sizes = sorted({family.size(row) for row in rows})
    axis: Spec = {"values": _spaced(sizes), "format": "d" if sizes[-1] < _LONG else ".3~s", "grid": False}
    domain = [every[0] / 1.1, every[-1] * 1.1]
    return number_axis("size", family.axis, axis, type="log", base=2, domain=domain, nice=False)


def _spaced(sizes: Sequence[int]) -> list[int]:
    """The sizes whose labels do not overlap on a logarithmic axis, multiples of large powers of 2 first."""
    gap = max((sizes[-1] / sizes[0]) ** (1 / _TICKS), 1.1)
    spaced: list[int] = []
    for size in sorted(sizes, key=lambda size: -(size & -size)):
        if all(max(size / other, other / size) >= gap for other in spaced):
            spaced.append(size)
    return sorted(spaced)
