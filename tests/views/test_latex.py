from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import Rows
from smembench.store.run import Run
from smembench.views.columns import Column
from smembench.views.latex import escape, latex
from smembench.views.sections import Section, sections


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("naive_gmem 50 % of #1 & $2", r"naive\_gmem 50 \% of \#1 \& \$2"),
        (r"\input{x}~^", r"\textbackslash{}input\{x\}\textasciitilde{}\textasciicircum{}"),
        ("4096×4096 ± 2 ✓ 4²", r"4096$\times$4096 $\pm$ 2 $\checkmark$ 4$^2$"),
        ("[0] *", "{[}0] {*}"),
        ("a\x1b\nb", r"a\textbackslash{}x1b\textbackslash{}nb"),
    ],
)
def test_text_is_printed_as_it_is(text: str, expected: str) -> None:
    assert escape(text) == expected


def test_a_section_is_a_table() -> None:
    section = Section(
        "heading & more",
        [Column("kernel", numeric=False), Column("% of\ncopy")],
        [["naiveGmem", "1"], ["a|b", "1 ms\n2 ms"]],
        sentence="A sentence.",
        notes=["a_note"],
    )
    assert latex([section]).splitlines() == [
        r"% \usepackage{booktabs,amssymb}",
        "",
        r"\begin{table}[htbp]",
        r"\centering",
        r"\caption{heading \& more}",
        r"\begin{tabular}{lr}",
        r"\toprule",
        r"kernel & \shortstack[r]{\% of \\ copy} \\",
        r"\midrule",
        r"naiveGmem & 1 \\",
        r"a\textbar{}b & \shortstack[r]{1 ms \\ 2 ms} \\",
        r"\bottomrule",
        r"\end{tabular}",
        "",
        r"\smallskip\footnotesize A sentence.",
        "",
        r"\smallskip\footnotesize a\_note",
        r"\end{table}",
    ]


@given(st.text())
def test_no_text_leaves_its_cell(text: str) -> None:
    cells = [[text, "1"]]
    columns = [Column("case", numeric=False), Column("ms")]
    (row,) = [line for line in latex([Section("", columns, cells)]).splitlines() if line.endswith(r"& 1 \\")]
    shown = row.replace(r"\textbackslash{}", "")
    assert shown.count("&") - shown.count(r"\&") == 1
    assert shown.count("{") - shown.count(r"\{") == shown.count("}") - shown.count(r"\}")
    assert shown.count("$") % 2 == shown.count(r"\$") % 2


def test_tables_of_a_run_have_as_many_cells_as_columns(rows: Rows) -> None:
    times = {"copyGmem": [1.0], "naiveGmem": [4.0], "transposeSmem": []}
    text = latex(sections(Run(rows(times))))
    body = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert {line.count(" & ") for line in body} == {6}
