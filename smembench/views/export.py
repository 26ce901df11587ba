"""A run as text for files and programs: CSV, JSON, Markdown or LaTeX."""

from __future__ import annotations

from collections.abc import Sequence

from smembench.store import schema
from smembench.store.csv_files import table_text
from smembench.store.run import Run
from smembench.views.latex import latex
from smembench.views.markdown import markdown
from smembench.views.records import Record, json
from smembench.views.sections import Section


def cases(run: Run) -> list[Record]:
    """The cases, by the columns of cases.csv."""
    return [{column: getattr(row, column) for column in schema.COLUMNS} for row in run.rows]


def exported(form: str, run: Run, sections: Sequence[Section], **parts: Sequence[Record]) -> str:
    """The cases as CSV, as JSON below what run.json says of the run, or the sections as Markdown or LaTeX.

    ``parts`` are records of further tables, which only JSON has, by their name there.
    """
    if form == "csv":
        return table_text(schema.COLUMNS, map(schema.to_fields, run.rows))
    if form == "json":
        return json(run=run.description.model_dump(mode="json"), cases=cases(run), **parts)
    return markdown(sections) if form == "markdown" else latex(sections)
