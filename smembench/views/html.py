"""Sections as HTML: tables in a notebook's own colours, or a page of them."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from smembench.model.text import visible
from smembench.views.sections import Section


def page(sections: Sequence[Section]) -> str:
    """Sections as a page of their own, with the first heading as its title."""
    title = _text(sections[0].heading) if sections else "smembench"
    head = f'<head><meta charset="utf-8"><title>{title}</title></head>'
    return f'<!DOCTYPE html>\n<html lang="en">{head}<body>{html(sections)}</body></html>\n'


def html(sections: Sequence[Section]) -> str:
    """Sections one below the other, each with its sentence and notes below."""
    return "".join(map(_section, sections))


def _section(section: Section) -> str:
    sides = ["right" if column.numeric else "left" for column in section.columns]

    def line(tag: str, cells: Sequence[str]) -> str:
        style = [f'<{tag} style="text-align: {side}">' for side in sides]
        pairs = zip(style, cells, strict=True)
        return f"<tr>{''.join(f'{start}{_text(cell)}</{tag}>' for start, cell in pairs)}</tr>"

    heading = _text(section.heading)
    parts = [f"<p><strong>{heading}</strong></p>"] if heading else []
    if section.cells:
        head = line("th", [column.title for column in section.columns])
        body = "".join(line("td", cells) for cells in section.cells)
        parts = [
            f'<table><caption style="text-align: left"><strong>{heading}</strong></caption>'
            f"<thead>{head}</thead><tbody>{body}</tbody></table>"
        ]
    if section.sentence:
        parts.append(f"<p>{_text(section.sentence)}</p>")
    if section.notes:
        parts.append(f"<ul>{''.join(f'<li>{_text(note)}</li>' for note in section.notes)}</ul>")
    return "".join(parts)


def _text(text: str) -> str:
    return escape(visible(text, keep="\n")).replace("\n", "<br/>")
