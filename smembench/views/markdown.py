"""Sections as Markdown, for README files and issues. Text is shown as it is: none of it is markup."""

from __future__ import annotations

import re
from collections.abc import Sequence

from smembench.model.text import visible
from smembench.views.sections import Section

_MARKUP = re.compile(
    r"""\\(?=[!-/:-@\[-`{-~])     # an escape
    | [`*~$]                      # code, emphasis, strikethrough, mathematics
    | (?<![^\W_])_ | _(?![^\W_])  # emphasis too, unless within a word
    | \](?=[(\[:])                # a link
    | <(?=[A-Za-z/!?])            # a tag
    | &(?=\#?\w+;)                # a character by its name""",
    re.VERBOSE,
)
_BLOCK = re.compile(
    r"^(\s*)(?:(?=[-+](?:[\s|:-]|$)|:-|=+\s*$|\#{1,6}(?:\s|$)|[>|])|(\d+)(?=[.)](?:\s|$)))", re.MULTILINE
)
"""Where a line would begin a list, a rule, a heading, a quotation or a table."""
_NAMED = {"<": "&lt;", "&": "&amp;"}


def markdown(sections: Sequence[Section]) -> str:
    """Sections as GitHub tables, each with its heading above and its sentence below."""
    return visible("\n\n".join(map(_section, sections)), keep="\n") + "\n"


def escaped(text: str) -> str:
    """Text that Markdown and HTML show as it is."""
    return _MARKUP.sub(lambda match: _NAMED.get(match[0], f"\\{match[0]}"), text)


def line(text: str) -> str:
    """The same as one line of its own."""
    return _as_text(" ".join(text.splitlines()))


def code(text: str) -> str:
    """A command, to be copied as it is."""
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    room = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{room}{text}{room}{fence}"


def _as_text(text: str) -> str:
    """Text of which no line begins a block."""
    return _BLOCK.sub(lambda match: f"{match[0]}\\", escaped(text))


def _section(section: Section) -> str:
    lines = [line(section.heading)]
    if section.cells:
        lines += ["", _line([column.title for column in section.columns])]
        lines.append(_line(["---:" if column.numeric else ":---" for column in section.columns]))
        lines += [_line(cells) for cells in section.cells]
    if section.sentence:
        lines += ["", _as_text(section.sentence)]
    if section.notes:
        lines += ["", *(f"- {line(note)}" for note in section.notes)]
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(escaped(cell).replace("|", "\\|").replace("\n", "<br>") for cell in cells) + " |"
