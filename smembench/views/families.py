"""Kernels over the size, beside the limit: rows that differ by nothing but size, kernel and block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from smembench.kernels import registry
from smembench.kernels.problems import PROBLEMS
from smembench.model.clauses import time
from smembench.model.groups import grouped
from smembench.model.problem import ITEMSIZE, Problem
from smembench.store.run import Run
from smembench.store.schema import Row
from smembench.studies.difference import Ratio, ratio
from smembench.toolchains.registry import is_port, named
from smembench.views.columns import FIGURES, value
from smembench.views.limits import is_own
from smembench.views.sections import unusual_inputs

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
        square: whether all matrices are.
    """

    run: Run
    best: Mapping[tuple[str, str], Row]
    beside: str
    subject: str
    square: bool

    @cached_property
    def _ratios(self) -> Mapping[Row, Ratio | None]:
        limits = ((self.best.get((self.beside, row.case.size)), row) for row in self.best.values())
        return {row: ratio(self.run, limit, row) for limit, row in limits if limit}

    def ratio(self, row: Row) -> Ratio | None:
        """How many times as fast a row is as ``beside`` at its size, if both were measured well."""
        return self._ratios.get(row)

    def figure(self, row: Row) -> Ratio | None:
        """What is shown of a row: its ratio, or its rate if there is nothing to compare it with."""
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
        """What all rows compute."""
        return PROBLEMS[self.first.problem]

    @property
    def lines(self) -> dict[str, list[Row]]:
        """The rows of each kernel but ports, by size: lines before single points, then the fastest first."""
        rows = [row for row in self.best.values() if row.kernel != self.beside and not is_port(row.compiler)]
        told = sorted((row for row in rows if self.figure(row) is not None), key=self.size)
        lines = grouped(told, lambda row: row.kernel)
        most = {kernel: max(found.value for found in map(self.figure, rows) if found) for kernel, rows in lines.items()}
        return {kernel: lines[kernel] for kernel in sorted(lines, key=lambda one: (len(lines[one]) == 1, -most[one]))}

    @property
    def fastest(self) -> list[Row]:
        """Of each size that ``beside`` was measured at, the row of the fastest kernel written here, by size."""
        own = [row for row in self.best.values() if self.ratio(row) is not None and is_own(row)]
        by_size = grouped(sorted(own, key=self.size), lambda row: row.case.size)
        return [min(rows, key=lambda row: (is_port(row.compiler), time(row))) for rows in by_size.values()]

    def size(self, row: Row) -> int:
        """The position on the x axis: the side of square matrices, else a product's operations, else bytes."""
        return row.n if self.square else row.flops if self.by_operations and row.flops else row.bytes

    @property
    def by_operations(self) -> bool:
        """Whether the matrices are of products of different shapes."""
        return not self.square and self.first.k is not None


def families(run: Run) -> list[Family]:
    """The families of a run, GPUs before the CPU, those with the most sizes first."""
    done = (row for row in run.rows if row.ok)
    groups = grouped(done, lambda row: replace(row.case.setting, m=0, n=0, k=None)).values()
    several = [members for members in groups if len({row.case.size for row in members}) > 1]
    found = (_family(run, members) for members in several)
    return sorted(found, key=lambda family: (family.first.device == "cpu", -len({size for _, size in family.best})))


def _family(run: Run, rows: Sequence[Row]) -> Family:
    first, problem = rows[0], PROBLEMS[rows[0].problem]
    best = {}
    for row in sorted(rows, key=time, reverse=True):
        best[f"{row.kernel} {named(row.compiler)}".strip(), row.case.size] = row
    names = dict.fromkeys(row.kernel for row in rows)
    known = (problem.ceiling_kernel, *registry.peers(problem.name), problem.naive_kernel)
    subject = [
        f"{problem.texts.title} {first.dtype}",
        *(f"{name} {count}" for name, count in first.case.parameters),
    ]
    subject += unusual_inputs(first)
    subject += [f"stride {first.stride}"] if first.stride else []
    subject += [f"{first.cache} cache"] if "cache" in problem.texts.options else []
    often = Counter(kernel for kernel, _ in best if kernel in known)
    beside = max((kernel for kernel in known if kernel in often), key=lambda kernel: often[kernel or ""], default=None)
    square = all(row.m == row.n and row.k in (None, row.n) for row in rows)
    beside = beside or "" if len(names) > 1 else ""
    return Family(run, best, beside, ", ".join([*subject, first.device]), square)


def aligned(row: Row) -> str:
    """``aligned`` if every row of a case's matrices begins at a cache line, else ``ragged``; "" without matrices."""
    if row.m == 1:
        return ""
    sides = (row.n, row.k) if row.k else (row.m, row.n)
    return "ragged" if any(side * ITEMSIZE[row.dtype] % LINE_BYTES for side in sides) else "aligned"
