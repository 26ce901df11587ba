"""Kernels over the size on common axes: beside the limit where one was measured, aligned and ragged sizes apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from smembench.kernels import registry
from smembench.kernels.problems import PROBLEMS
from smembench.model.clauses import time
from smembench.model.groups import grouped
from smembench.model.problem import ITEMSIZE, Problem
from smembench.model.text import capital
from smembench.report.charts import Chart, Spec, file_name, layer, names_axis, number_axis
from smembench.store.schema import Row
from smembench.toolchains.registry import is_port
from smembench.views.columns import FIGURES, figures, number, times, value
from smembench.views.limits import is_own
from smembench.views.sections import Section, label, table, unusual_inputs

_LINE_BYTES = 128
"""A cache line: the rows of an aligned matrix begin at one."""
_APART = f"Aligned: the matrices' rows begin at cache lines of {_LINE_BYTES} bytes."
_MOST = 6
"""Lines of a chart: the fastest kernels."""
_TICKS = 7
_FAR = 1.5
"""Smallest ratio of the largest to the smallest size of a chart."""
_WIDE = 20
"""Above this ratio of the largest to the smallest value, an axis is logarithmic."""


@dataclass(frozen=True, slots=True)
class Family:
    """Rows of at least two sizes that differ by nothing else but kernel and block, the fastest block of each.

    Attributes:
        best: by kernel and size.
        beside: the kernel that the others are compared with; "" if none was measured.
        subject: ``matrix transpose float32, warm cache, cuda:0``.
        square: whether all matrices are.
    """

    best: Mapping[tuple[str, str], Row]
    beside: str
    subject: str
    square: bool

    def ratio(self, row: Row) -> float | None:
        """How many times as fast a row is as ``beside`` at its size; None if that was not measured there."""
        limit = self.best.get((self.beside, row.case.size))
        return None if limit is None else time(limit) / time(row)

    def figure(self, row: Row) -> float | None:
        """What is shown of a row: its ratio, or its rate if there is nothing to compare it with."""
        return self.ratio(row) if self.beside else value(row, self.problem.texts.columns[0])

    @property
    def unit(self) -> str:
        """The unit of ``figure``."""
        return f"times as fast as {self.beside}" if self.beside else FIGURES[self.problem.texts.columns[0]].unit

    @property
    def first(self) -> Row:
        """Any of the rows."""
        return next(iter(self.best.values()))

    @property
    def problem(self) -> Problem:
        """What all rows compute."""
        return PROBLEMS[self.first.problem]

    @property
    def lines(self) -> dict[str, list[Row]]:
        """The rows of each kernel but ports, by size: lines before single points, then the fastest first."""
        rows = [row for row in self.best.values() if row.kernel != self.beside and not is_port(row.compiler)]
        told = sorted((row for row in rows if self.figure(row) is not None), key=self.size)
        lines = grouped(told, lambda row: row.kernel)
        most = {kernel: max(self.figure(row) or 0.0 for row in rows) for kernel, rows in lines.items()}
        return {kernel: lines[kernel] for kernel in sorted(lines, key=lambda one: (len(lines[one]) == 1, -most[one]))}

    @property
    def fastest(self) -> list[Row]:
        """Of each size that ``beside`` was measured at, the row of the fastest kernel written here, by size."""
        own = [row for row in self.best.values() if self.ratio(row) is not None and is_own(row)]
        by_size = grouped(sorted(own, key=self.size), lambda row: row.case.size)
        return [min(rows, key=lambda row: (is_port(row.compiler), time(row))) for rows in by_size.values()]

    def size(self, row: Row) -> int:
        """What stands below a row: the side if all matrices are square, else bytes per launch."""
        return row.n if self.square else row.bytes


def families(rows: Sequence[Row]) -> list[Family]:
    """The families of a run, GPUs before the CPU, those with the most sizes first."""
    done = (row for row in rows if row.ok)
    groups = grouped(done, lambda row: replace(row.case.setting, m=0, n=0, k=None)).values()
    several = [members for members in groups if len({row.case.size for row in members}) > 1]
    found = map(_family, several)
    return sorted(found, key=lambda family: (family.first.device == "cpu", -len({size for _, size in family.best})))


def _family(rows: Sequence[Row]) -> Family:
    first, problem = rows[0], PROBLEMS[rows[0].problem]
    best = {}
    for row in sorted(rows, key=time, reverse=True):
        best[f"{row.kernel} {row.compiler}" if is_port(row.compiler) else row.kernel, row.case.size] = row
    names = dict.fromkeys(row.kernel for row in rows)
    known = (problem.ceiling_kernel, *registry.peers(problem.name), problem.naive_kernel)
    subject = [
        f"{problem.texts.title} {first.dtype}",
        *(f"{name} {count}" for name, count in first.case.parameters),
    ]
    subject += unusual_inputs(first)
    subject += [f"stride {first.stride}"] if first.stride else []
    subject += [f"{first.cache} cache"] if "cache" in problem.texts.options else []
    beside = next((kernel for kernel in known if kernel in names and len(names) > 1), None)
    square = all(row.m == row.n and row.k in (None, row.n) for row in rows)
    return Family(best, beside or "", ", ".join([*subject, first.device]), square)


def aligned(row: Row) -> str:
    """``aligned`` if every row of a case's matrices begins at a cache line, else ``ragged``; "" without matrices."""
    if row.m == 1:
        return ""
    sides = (row.n, row.k) if row.k else (row.m, row.n)
    return "ragged" if any(side * ITEMSIZE[row.dtype] % _LINE_BYTES for side in sides) else "aligned"


def best_over_sizes(family: Family) -> Chart | None:
    """The fastest kernel of each size beside the limit; None without a limit."""
    rows = family.fastest
    if not rows:
        return None
    values = [
        {"size": family.size(row), "figure": family.ratio(row), "shape": aligned(row), "says": _said(family, row)}
        for row in rows
    ]
    domain = sorted({str(value["shape"]) for value in values})
    shape = names_axis("shape", domain, scale={"domain": domain}, **({} if len(domain) > 1 else {"legend": None}))
    ratios = [1.0, *(family.ratio(row) or 1.0 for row in rows)]
    limits = [min(ratios) / 1.03, max(ratios) * 1.03]
    y = number_axis("figure", family.unit, domain=limits, nice=False)
    marks = {"x": _size_axis(family, rows), "y": y, "color": shape, "shape": shape}
    return Chart(
        name=file_name(f"fastest-{rows[0].problem}-{rows[0].dtype}-{rows[0].cache}"),
        title=f"The fastest kernel at each size, compared with {family.beside}",
        caption=f"{capital(family.subject)}; above 1 is faster. {_APART if len(domain) > 1 else ''}",
        spec={
            "height": 240,
            "layer": [_one(y), layer("point", values, {"filled": True, "size": 80, "opacity": 1}, **marks)],
        },
        data=table(
            f"The fastest kernel of each size: {family.subject}",
            rows,
            {
                "size": lambda row: row.case.size,
                "kernel": label,
                **figures(family.problem, ["elapsed_ms", family.problem.texts.columns[0]]),
                f"over {family.beside}": lambda row: times(family.ratio(row)),
                "rows": aligned,
            },
            words=("size", "kernel", "rows"),
        ),
    )


def over_sizes(rows: Sequence[Row]) -> list[Chart]:
    """A chart for each family, or two with the same axes and kernels where it has aligned and ragged sizes.

    Sizes that are all close to each other have none: they would be a single dot.
    """
    found = []
    for family in families(rows):
        shapes = grouped(family.best.values(), aligned)
        far = [shape for shape, of in shapes.items() if max(map(family.size, of)) > _FAR * min(map(family.size, of))]
        found += [_chart(family, shape, apart=len(shapes) > 1) for shape in sorted(far)]
    return found


def _chart(family: Family, shape: str, *, apart: bool) -> Chart:
    lines = family.lines
    shown = list(lines)[:_MOST]
    every = [family.figure(row) or 0.0 for kernel in shown for row in lines[kernel]]
    every += [1.0] if family.beside or not every else []
    own = {key: row for key, row in family.best.items() if aligned(row) == shape}
    values = [
        {"kernel": kernel, "size": family.size(row), "figure": family.figure(row), "says": _said(family, row)}
        for kernel in shown
        for row in lines[kernel]
        if aligned(row) == shape
    ]
    scale: Spec = {"type": "log" if max(every) > _WIDE * min(every) else "linear", "nice": False}
    y = number_axis("figure", family.unit, domain=[min(every) / 1.05, 1.05 * max(every)], **scale)
    names = names_axis("kernel", shown, scale={"domain": shown})
    marks: Spec = {"x": _size_axis(family, own.values()), "y": y, "color": names}
    few = f" The {len(shown)} fastest of {len(lines)} kernels; the table has all." if len(lines) > len(shown) else ""
    title = f"{capital(family.subject)}{f': {shape} sizes' if apart else ''}"
    return Chart(
        name=file_name(
            f"sizes-{family.first.problem}-{family.subject.removeprefix(family.problem.texts.title)}-{shape}"
        ),
        title=title,
        caption=f"{capital(family.unit)} over the size; higher is faster.{few} {_APART if apart else ''}",
        spec={
            "height": 280,
            "layer": [
                *([_one(y)] if family.beside else []),
                # Ragged sizes are ragged in different ways: a line between them would say nothing.
                *([] if shape == "ragged" else [layer("line", values, {"strokeWidth": 1.5}, **marks)]),
                layer("point", values, {"filled": True, "size": 50, "opacity": 1}, **marks, shape=names),
            ],
        },
        data=_table(family, own, f"{title}, {family.unit}"),
    )


def _table(family: Family, own: Mapping[tuple[str, str], Row], heading: str) -> Section:
    def at(size: str) -> Callable[[str], str]:
        return lambda kernel: number(family.figure(own[kernel, size])) if (kernel, size) in own else ""

    sizes = dict.fromkeys(row.case.size for row in sorted(own.values(), key=family.size))
    kernels = dict.fromkeys(kernel for kernel, _ in own)
    return table(heading, kernels, {"kernel": str, **{size: at(size) for size in sizes}}, words=("kernel",))


def _said(family: Family, row: Row) -> str:
    figure = family.figure(row)
    said = f"{times(figure)} {family.beside}" if family.beside else f"{number(figure)} {family.unit}"
    return f"{label(row)}, {row.case.size}: {said}"


def _one(y: Spec) -> Spec:
    """The line at which a kernel is as fast as what it stands beside."""
    return layer("rule", [{"figure": 1}], {"color": "var(--ink)", "strokeDash": [4, 3]}, y=y)


def _size_axis(family: Family, rows: Iterable[Row]) -> Spec:
    every = sorted({family.size(row) for row in family.best.values()})
    sizes = sorted({family.size(row) for row in rows})
    form, title = ("d", "side n") if family.square else (".3~s", "bytes per launch")
    axis: Spec = {"values": _spaced(sizes), "format": form, "grid": False}
    domain = [every[0] / 1.1, every[-1] * 1.1]
    return number_axis("size", title, axis, type="log", base=2, domain=domain, nice=False)


def _spaced(sizes: Sequence[int]) -> list[int]:
    """Those of the sizes whose numbers do not overlap on a logarithmic axis, multiples of large powers of 2 first."""
    gap = max((sizes[-1] / sizes[0]) ** (1 / _TICKS), 1.1)
    found: list[int] = []
    for size in sorted(sizes, key=lambda size: -(size & -size)):
        if all(max(size / other, other / size) >= gap for other in found):
            found.append(size)
    return sorted(found)
