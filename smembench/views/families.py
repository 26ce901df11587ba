"""Kernels over the size, beside the limit: rows that differ by nothing but size, kernel and block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from smembench.kernels import registry
from smembench.kernels.problems import PROBLEMS
from smembench.kernels.reduction.problem import PROBLEM as SUMS
from smembench.kernels.time.problem import PROBLEM as TIME
from smembench.model.case import Case
from smembench.model.clauses import time
from smembench.model.groups import grouped
from smembench.model.problem import ITEMSIZE, Problem
from smembench.store.run import Run
from smembench.store.schema import Row
from smembench.studies.difference import Ratio, ratio
from smembench.toolchains.registry import is_port, named
from smembench.views.columns import FIGURES, value
from smembench.views.limits import is_own
from smembench.views.sections import size_text, unusual_inputs

SIDE, ROWS, OPERATIONS, BYTES = "side n", "rows m", "floating-point operations per launch", "bytes per launch"
"""What the sizes of matrices differ by."""

LINE_BYTES = 128
"""A cache line: the rows of an aligned matrix begin at one."""


@dataclass(frozen=True)
class Family:
    """Rows of at least two sizes that differ by nothing else but kernel and block, the fastest block of each.

    Attributes:
        run: the run of the rows.
        best: by kernel and size.
        beside: the kernel that the others are compared with, the one measured at the most sizes; "" if none was.
        subject: ``matrix transpose float32, warm cache, cuda:0``.
        axis: what the sizes differ by: ``SIDE`` of square matrices, ``ROWS`` of products of few rows, ``n`` of rows, a
            size of the user's launches, else ``OPERATIONS`` of products or ``BYTES``.
    """

    run: Run
    best: Mapping[tuple[str, str], Row]
    beside: str
    subject: str
    axis: str

    @cached_property
    def _ratios(self) -> Mapping[Row, Ratio | None]:
        limits = ((self.best.get((self.beside, size_text(row.case))), row) for row in self.best.values())
        return {row: ratio(self.run, limit, row) for limit, row in limits if limit}

    def ratio(self, row: Row) -> Ratio | None:
        """A row's speed over that of ``beside`` at its size, if both were measured well."""
        return self._ratios.get(row)

    def figure(self, row: Row) -> Ratio | None:
        """A row's ratio, or its rate if there is nothing to compare it with."""
        rate = value(row, self.problem.texts.columns[0])
        return self.ratio(row) if self.beside else None if rate is None else Ratio(rate, row.interval)

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
        """The problem that all rows compute."""
        return PROBLEMS[self.first.problem]

    @property
    def lines(self) -> dict[str, list[Row]]:
        """The rows of each kernel but ports, by size: lines before single points, then the fastest first."""
        rows = [row for row in self.best.values() if row.kernel != self.beside and not is_port(row.compiler)]
        shown = sorted((row for row in rows if self.figure(row) is not None), key=self.size)
        lines = grouped(shown, lambda row: row.kernel)
        most = {kernel: max(one.value for one in map(self.figure, rows) if one) for kernel, rows in lines.items()}
        return {kernel: lines[kernel] for kernel in sorted(lines, key=lambda one: (len(lines[one]) == 1, -most[one]))}

    @property
    def fastest(self) -> list[Row]:
        """Of each size that ``beside`` was measured at, the row of the fastest kernel written here, by size."""
        own = [row for row in self.best.values() if self.ratio(row) is not None and is_own(row)]
        by_size = grouped(sorted(own, key=self.size), lambda row: size_text(row.case))
        return [min(rows, key=lambda row: (is_port(row.compiler), time(row))) for rows in by_size.values()]

    def size(self, row: Row) -> int:
        """The position on the x axis."""
        if self.axis == OPERATIONS:
            return row.flops or row.bytes
        if self.axis == ROWS:
            return row.m
        return row.bytes if self.axis == BYTES else dict(row.case.parameters).get(self.axis, row.n)

    def heading(self, row: Row) -> str:
        """The size of a row beside the subject: ``4096×4096``, ``count 1024``."""
        swept = self.axis in dict(row.case.parameters)
        return f"{self.axis} {self.size(row)}" if swept else self.problem.texts.size(row.case)


def families(run: Run) -> list[Family]:
    """The families of a run, GPUs before the CPU, those with the most sizes first."""
    done = [row for row in run.rows if row.ok]
    swept = _swept([row for row in done if row.problem == TIME.name])

    def setting(row: Row) -> Case:
        rest = tuple(one for one in row.case.parameters if row.problem != TIME.name or one[0] != swept)
        return replace(row.case.setting, m=0, n=0, k=None, parameters=rest)

    groups = grouped(done, setting).values()
    several = [members for members in groups if len({size_text(row.case) for row in members}) > 1]
    results = (_family(run, members, swept) for members in several)
    return sorted(results, key=lambda family: (family.first.device == "cpu", -len({size for _, size in family.best})))


def _swept(rows: Sequence[Row]) -> str:
    """The size that launches of the user's are drawn over: n, or the first other that differs; "" without any."""
    if len({row.n for row in rows}) > 1:
        return "n"
    values = dict.fromkeys(one for row in rows for one in row.case.parameters)
    return next((name for name, often in Counter(name for name, _ in values).items() if often > 1), "")


def _axis(rows: Sequence[Row], swept: str) -> str:
    if rows[0].problem == TIME.name:
        return swept
    if all(row.m == row.n and row.k in (None, row.n) for row in rows):
        return SIDE
    return "n" if all(row.m == 1 and row.k is None for row in rows) else OPERATIONS if rows[0].k else BYTES


def of_few_rows(run: Run) -> list[Family]:
    """Products of three or more counts of rows with one B, beside a read of as many bytes as B has."""
    done = [row for row in run.rows if row.ok]
    read_all = SUMS.ceiling_kernel
    reads = {(row.device, row.cache, row.n * ITEMSIZE[row.dtype]): row for row in done if row.kernel == read_all}
    groups = grouped([row for row in done if row.k], lambda row: replace(row.case.setting, m=0)).values()
    results = []
    for rows in (rows for rows in groups if len({row.m for row in rows}) > 2):
        first = rows[0]
        read = reads.get((first.device, first.cache, first.n * (first.k or 0) * ITEMSIZE[first.dtype]))
        if read is not None:
            best = _best(rows)
            best |= {(read_all, size): read for _, size in best}
            subject = f"{_subject(first, ROWS)}, {first.device}, {first.k}×{first.n}"
            results.append(Family(run, best, read_all, subject, ROWS))
    return results


def _best(rows: Sequence[Row]) -> dict[tuple[str, str], Row]:
    """The fastest block's row, by kernel and size."""
    slowest_first = sorted(rows, key=time, reverse=True)
    return {(f"{row.kernel} {named(row.compiler)}".strip(), size_text(row.case)): row for row in slowest_first}


def _subject(first: Row, axis: str) -> str:
    """What the rows of a family share but the device."""
    problem = PROBLEMS[first.problem]
    subject = [
        f"{problem.texts.title} {first.dtype}",
        *(f"{name} {count}" for name, count in first.case.parameters if name != axis),
    ]
    subject += unusual_inputs(first)
    subject += [f"stride {first.stride}"] if first.stride else []
    subject += [f"{first.cache} cache"] if "cache" in problem.texts.options else []
    return ", ".join(subject)


def _family(run: Run, rows: Sequence[Row], swept: str) -> Family:
    first, problem, axis = rows[0], PROBLEMS[rows[0].problem], _axis(rows, swept)
    best = _best(rows)
    names = dict.fromkeys(row.kernel for row in rows)
    known = (problem.ceiling_kernel, *registry.peers(problem.name), problem.naive_kernel)
    often = Counter(kernel for kernel, _ in best if kernel in known)
    beside = max((kernel for kernel in known if kernel in often), key=lambda kernel: often[kernel or ""], default=None)
    beside = beside or "" if len(names) > 1 else ""
    return Family(run, best, beside, f"{_subject(first, axis)}, {first.device}", axis)


def aligned(row: Row) -> str:
    """``aligned`` if every row of a case's matrices begins at a cache line, else ``ragged``; "" without matrices."""
    if row.m == 1 and not row.k:
        return ""
    sides = (row.n, row.k) if row.k else (row.m, row.n)
    return "ragged" if any(side * ITEMSIZE[row.dtype] % LINE_BYTES for side in sides) else "aligned"
