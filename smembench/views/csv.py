"""Sections as CSV, for programs."""

from __future__ import annotations

from smembench.store.csv_files import table_text
from smembench.views.sections import Section


def csv(section: Section) -> str:
    """A section's cells under its headings."""
    return table_text([column.heading for column in section.columns], section.cells)
