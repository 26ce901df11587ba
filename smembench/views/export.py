"""A command's result as text for files and programs: CSV, JSON, Markdown, LaTeX or HTML."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from smembench.store import schema
from smembench.store.csv_files import table_text
from smembench.store.run import Run
from smembench.store.run_folder import to_json
from smembench.views import dashboards
from smembench.views.html import page
from smembench.views.latex import latex
from smembench.views.markdown import markdown
from smembench.views.records import Record, csv, values
from smembench.views.sections import Section


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A command's tables, and what makes its other forms, each called only if it is asked for.

    ``data`` are the parts of the JSON object, ``rows`` the records of the CSV or its text; ``html`` makes a page of
    another kind than that of the tables. ``run`` is what the formats of dashboards are made of.
    """

    sections: Sequence[Section]
    data: Callable[[], Mapping[str, object]]
    rows: Callable[[], Sequence[Record] | str] = tuple
    html: Callable[[], str] | None = None
    run: Run | None = None

    def text(self, form: str) -> str:
        """The result in a form: csv, json, markdown, latex, html, or that of a dashboard."""
        if self.run is not None and form in dashboards.FORMS:
            return dashboards.FORMS[form](self.run)
        if form == "csv":
            rows = self.rows()
            return rows if isinstance(rows, str) else csv(rows)
        if form == "json":
            return to_json(self.data())
        if form == "html":
            return self.html() if self.html is not None else page(self.sections)
        return markdown(self.sections) if form == "markdown" else latex(self.sections)


def cases(run: Run) -> list[Record]:
    """The cases, by the columns of cases.csv."""
    return [values(row, schema.COLUMNS) for row in run.rows]


def of_run(run: Run, sections: Sequence[Section], **parts: Sequence[Record]) -> Result:
    """A run with its tables; JSON has ``parts``, records of further tables by their names, beside the cases."""
    return Result(
        sections=sections,
        data=lambda: {"run": run.description.model_dump(mode="json"), "cases": cases(run), **parts},
        rows=lambda: table_text(schema.COLUMNS, map(schema.to_fields, run.rows)),
        run=run,
    )
