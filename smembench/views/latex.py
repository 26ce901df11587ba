"""Sections as LaTeX tables, for lecture notes and papers."""

from __future__ import annotations

import re
from collections.abc import Sequence

from smembench.model.text import visible
from smembench.views.columns import Column
from smembench.views.sections import Section

_PREAMBLE = r"% \usepackage{booktabs,amssymb}"
_TEXT = {"\\": "textbackslash", "~": "textasciitilde", "^": "textasciicircum", "<": "textless", ">": "textgreater"}
_TEXT |= {"|": "textbar", "…": "dots"}
_MATHS = {"×": r"\times", "±": r"\pm", "·": r"\cdot", "²": "^2", "µ": r"\mu", "μ": r"\mu", "°": r"^\circ"}
_MATHS |= {"≤": r"\le", "≥": r"\ge", "→": r"\to", "✓": r"\checkmark"}
_SPECIAL = {sign: f"\\{sign}" for sign in "&%$#_{}"}
_SPECIAL |= {sign: f"\\{name}{{}}" for sign, name in _TEXT.items()}
_SPECIAL |= {sign: f"${formula}$" for sign, formula in _MATHS.items()}
# At the beginning of a row the brackets and the star would belong to the line break before it.
_SPECIAL |= {"[": "{[}", "*": "{*}", '"': "''", "–": "--"}
_SIGNS = re.compile("|".join(map(re.escape, _SPECIAL)))


def latex(sections: Sequence[Section]) -> str:
    """Sections as booktabs tables, each with its heading as caption and its sentence below; packages in a comment."""
    return "\n\n".join([_PREAMBLE, *map(_section, sections)]) + "\n"


def escape(text: str) -> str:
    """Text that LaTeX prints literally: characters its fonts lack become commands, control characters escapes."""
    shown = "".join(sign for sign in visible(text) if sign.isprintable())
    return _SIGNS.sub(lambda match: _SPECIAL[match[0]], shown)


def _section(section: Section) -> str:
    if not section.cells:
        texts = (rf"\textbf{{{escape(section.heading)}}}" if section.heading else "", escape(section.sentence))
        return "\n\n".join(filter(None, (*texts, *map(escape, section.notes))))
    alignment = "".join("r" if column.numeric else "l" for column in section.columns)
    lines = [
        r"\begin{table}[htbp]",
        r"\centering",
        rf"\caption{{{escape(section.heading)}}}",
        rf"\begin{{tabular}}{{{alignment}}}",
        r"\toprule",
        _line([column.heading for column in section.columns], section.columns),
        r"\midrule",
        *(_line(cells, section.columns) for cells in section.cells),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    for text in (section.sentence, *section.notes):
        if text:
            lines += ["", rf"\smallskip\footnotesize {escape(text)}"]
    return "\n".join([*lines, r"\end{table}"])


def _line(cells: Sequence[str], columns: Sequence[Column]) -> str:
    return " & ".join(_cell(cell, column) for cell, column in zip(cells, columns, strict=True)) + r" \\"


def _cell(text: str, column: Column) -> str:
    lines = [escape(line) for line in text.split("\n")]
    if len(lines) == 1:
        return lines[0]
    stacked = r" \\ ".join(lines)
    return rf"\shortstack[{'r' if column.numeric else 'l'}]{{{stacked}}}"
