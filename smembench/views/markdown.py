"""Sections as Markdown, for README files and issues."""

from __future__ import annotations

from collections.abc import Sequence

from smembench.model.text import visible
from smembench.views.sections import Section


def markdown(sections: Sequence[Section]) -> str:
    """Sections as GitHub tables, each with its heading above and its sentence below."""
    return visible("\n\n".join(map(_section, sections)), keep="\n") + "\n"


def _section(section: Section) -> str:
    lines = [section.heading]
    if section.cells:
        lines += ["", _line([column.title for column in section.columns])]
        lines.append(_line(["---:" if column.numeric else ":---" for column in section.columns]))
        lines += [_line(cells) for cells in section.cells]
    if section.sentence:
        lines += ["", section.sentence]
    if section.notes:
        lines += ["", *(f"- {note}" for note in section.notes)]
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", "<br>") for cell in cells) + " |"
