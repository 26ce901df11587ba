"""Notebook results, which draw themselves with the tables of the terminal and the charts of the report."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import fields
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import pandas as pd

from smembench.explain.analysis import Explanation
from smembench.explain.costs import Costs
from smembench.explain.lanes import Lanes
from smembench.explain.prediction import predictor
from smembench.model.case import Case
from smembench.model.errors import UsageError
from smembench.report.charts import Chart
from smembench.report.files import check_extra, chosen
from smembench.store.load import load
from smembench.store.run import Run
from smembench.store.schema import COLUMNS, Row
from smembench.studies.compare import Comparison, Rules, compare_runs
from smembench.studies.compare.beside import beside
from smembench.studies.explain import capability_of, explained
from smembench.studies.tune import Tuned
from smembench.toolchains.registry import is_port
from smembench.views.break_even import tables
from smembench.views.compare import comparison_sections
from smembench.views.explain import explanation
from smembench.views.explain import tables as explanation_tables
from smembench.views.explain_cure import cure_lines
from smembench.views.explain_lanes import lanes_picture, lanes_section
from smembench.views.export import cases
from smembench.views.html import html
from smembench.views.sections import Section
from smembench.views.table import drawn
from smembench.views.tune import finals

T = TypeVar("T")


class Shown(ABC):
    """Data that shows itself: as a table in a notebook, as text in a terminal."""

    @abstractmethod
    def _sections(self) -> list[Section]: ...

    def __repr__(self) -> str:
        return drawn(self._sections())

    def _repr_html_(self) -> str:
        return html(self._sections())


class Compared(Shown, Comparison):
    """A comparison that shows what differs between the environments, and the cases that changed."""

    def _sections(self) -> list[Section]:
        return comparison_sections(self)


class _ShownCosts(Shown, Costs):
    def _sections(self) -> list[Section]:
        return explanation_tables(self, explanation(self), cure_lines(self))


class Explained(_ShownCosts, Explanation):
    """An explanation that shows its accesses and what they cost."""


class ExplainedFunction(_ShownCosts):
    """The same of a kernel that is not the package's."""

    def conflicts(self, kind: str | None = None, *, partial: bool = False) -> float:
        """The worst n of its n-way bank conflicts, as ``smembench.conflicts`` describes.

        Raises:
            UsageError: for an unknown kind, mistakes, and unless ``partial`` for unknown data.
        """
        if reasons := self.trace.reasons(partial=partial):
            raise UsageError(f"{self.trace.filename}, {reasons[0]}")
        return self.worst(kind)


class ExplainedLayout(Shown, Lanes):
    """Accesses of a warp without a kernel, with their banks."""

    def _sections(self) -> list[Section]:
        return [lanes_section(self)]

    def __repr__(self) -> str:
        return "\n".join([super().__repr__(), *(line.plain for line in lanes_picture(self))])


class Best(Shown, Tuned):
    """The result of a search, which shows its finalists."""

    def _sections(self) -> list[Section]:
        return [finals(self)]


def shown(kind: Callable[..., T], data: Comparison | Costs | Lanes | Tuned) -> T:
    """Data as the class of it that shows itself."""
    return kind(**{field.name: getattr(data, field.name) for field in fields(data)})


class Result(Shown):
    """The cases of a run, just measured or stored.

    It shows the tables of ``smembench run``. ``result["elapsed_ms"]`` is a column of ``frame``; ``for row in result``
    gives each case with the columns as attributes.

    Attributes:
        run: the rows, samples, run.json and folder that everything else is made of.
    """

    def __init__(self, run: Run) -> None:
        self.run = run

    def _sections(self) -> list[Section]:
        return tables(self.run) or [Section(f"{self.run.id}: no cases", (), ())]

    @cached_property
    def frame(self) -> pd.DataFrame:
        """A row per case, with all columns of cases.csv."""
        return pd.DataFrame(cases(self.run), columns=list(COLUMNS))

    @cached_property
    def samples(self) -> pd.DataFrame:
        """A row per sample: ``case_id``, ``round``, ``sample`` within the round, ``elapsed_ms`` per launch.

        Empty if the samples were not kept, as beside a lone cases.csv.
        """
        records = [
            (row.case_id, number, index, elapsed_ms)
            for row in self.run.rows
            for number, values in self.run.samples.get(row.case_id, {}).items()
            for index, elapsed_ms in enumerate(values)
        ]
        return pd.DataFrame(records, columns=["case_id", "round", "sample", "elapsed_ms"])

    def chart(self, figure: str | None = None) -> Chart:
        """The chart that a report of this run begins with, or the first whose name matches; ``*`` matches anything.

        An unknown name is answered with the names of all charts. Needs the report extra.

        It shows itself in a notebook; ``alone`` is its Vega-Lite specification.

        Raises:
            UsageError: without the report extra, for a name that nothing matches, and if there is nothing to draw.
        """
        check_extra("chart", "vl_convert")
        from smembench.report.contents import contents

        page = contents([self.run]) if self.run.rows else None
        if page is None or page.headline.chart is None:
            raise UsageError(f"{self.run.id}: nothing was measured that a chart could show")
        return page.headline.chart if figure is None else chosen(page.charts, figure, asked="figure=")[0]

    def compare(self, new: Side, *, threshold: float | None = None, across: Collection[str] = ()) -> Compared:
        """Compare this run with one that was measured later; the rest is as in ``smembench.compare``."""
        rules = Rules() if threshold is None else Rules(threshold)
        return compared(self, new, rules, across)

    def explain(
        self, kernel: str, *, block: str | None = None, dtype: str | None = None, n: int | None = None
    ) -> Explained:
        """Explain a CUDA kernel as it was measured here: on that GPU, the first of its cases that the keys fit.

        Raises:
            UsageError: if no such case was measured.
        """
        wanted = {"kernel": kernel, "kind": "cuda", "block": block, "dtype": dtype, "n": n}

        def fits(case: Case) -> bool:
            return all(value is None or str(getattr(case, key)) == str(value) for key, value in wanted.items())

        case = next((row.case for row in self.run.rows if not is_port(row.compiler) and fits(row.case)), None)
        if case is None:
            raise UsageError(
                f"{kernel}: no such case was measured on a GPU here; "
                f"smembench.explain_kernel({kernel!r}) explains kernels that were not measured"
            )
        device = self.run.description.device(case.device)
        return shown(Explained, explained(case, capability_of(device), device.sm_count if device else None))

    def __getitem__(self, column: str) -> pd.Series[Any]:
        return self.frame[column]

    def __len__(self) -> int:
        return len(self.run.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.run.rows)


Side: TypeAlias = Result | str | Path | Sequence[Result | str | Path]
"""Results, runs' folders or cases.csv files; several are pooled."""


def compared(base: Side, new: Side, rules: Rules, across: Collection[str]) -> Compared:
    """Compare two sides case by case; stored runs beside them tell what lies between runs."""
    sides = _runs(base), _runs(new)
    return shown(Compared, compare_runs(*sides, rules, across=across, beside=beside(*sides)))


def _runs(side: Side) -> list[Run]:
    parts = [side] if isinstance(side, Result | str | Path) else side
    if not parts:
        raise UsageError("a side without runs: give a result, a run's folder or a cases.csv")
    return [part.run if isinstance(part, Result) else load(Path(part), predictor) for part in parts]
