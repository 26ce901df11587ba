"""A result in a notebook: its tables, its frames, its charts, its comparisons and explanations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

import smembench
from smembench.model.errors import UsageError
from smembench.report import files
from smembench.report.notebook import Result
from smembench.store.run import Run
from smembench.store.schema import COLUMNS

NIGHTLY = Path(__file__).parents[2] / "results/reference/20261201T124959Z-nightly"


@pytest.fixture(scope="module")
def result() -> Result:
    """Transposes of one size on an H200: four dtypes, one of them with a cold cache, too."""
    run = smembench.read(NIGHTLY).run
    return Result(run.only([row for row in run.rows if row.problem == "transpose" and row.n == 4096]))


def html(shown: object) -> ElementTree.Element:
    text = shown._repr_html_()  # type: ignore[attr-defined]
    return ElementTree.fromstring(f"<div>{text}</div>")


def texts(part: ElementTree.Element, tag: str) -> list[str]:
    return ["".join(outcome.itertext()) for outcome in part.iter(tag)]


def test_a_notebook_shows_a_table_per_group_with_the_columns_that_matter(result: Result) -> None:
    tables = list(html(result).iter("table"))
    assert len(tables) == len({(row.dtype, row.cache) for row in result})
    cells = [texts(line, "td") for table in tables for line in table.iter("tr")]
    assert [line[0] for line in cells if line] == list(result["kernel"])
    headings = texts(tables[0], "th")
    assert {"elapsed ms", "95 % CI", "GB/s", "occupancy"} <= set(headings)
    assert len(headings) < 15 < len(COLUMNS)


def test_text_in_a_notebook_cannot_be_markup(result: Result) -> None:
    failed = replace(result.run.rows[0], status="failed", reason="<script>alert(1)</script>\x1b[31m")
    shown = html(Result(result.run.only([failed])))
    assert not list(shown.iter("script"))
    assert any("<script>" in note and "\x1b" not in note for note in texts(shown, "li"))


@pytest.mark.parametrize("columns", [80, 100, 200])
def test_a_terminal_shows_every_kernel_and_breaks_no_line(
    result: Result, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    text = repr(result)
    assert {row.kernel for row in result} <= set(text.split())
    assert max(map(len, text.splitlines())) <= columns
    assert "\x1b" not in text


def test_a_run_without_cases_shows_itself_and_has_no_chart() -> None:
    empty = Result(Run(()))
    assert "no cases" in repr(empty)
    assert len(empty) == len(empty.frame) == len(empty.samples) == 0
    with pytest.raises(UsageError, match="nothing was measured"):
        empty.chart()


def test_frames_hold_every_column_and_every_sample(result: Result) -> None:
    assert tuple(result.frame.columns) == COLUMNS
    assert [row.case_id for row in result] == list(result["case_id"])
    outcome = result.samples.groupby("case_id", sort=False)["elapsed_ms"]
    assert list(outcome.size()) == list(result["samples"])
    assert list(outcome.median()) == pytest.approx(list(result["elapsed_ms"]))
    assert not result.samples.duplicated(["case_id", "round", "sample"]).any()


def test_a_chart_is_a_specification_and_a_picture(result: Result) -> None:
    drawn = result.chart()._repr_mimebundle_()
    spec = drawn["application/vnd.vegalite.v5+json"]
    assert isinstance(spec, dict)
    assert spec["layer"]
    assert "var(--" not in str(spec)  # what a page would replace
    assert str(drawn["image/svg+xml"]).startswith("<svg")
    assert len(repr(result.chart())) < 200


def test_a_chart_is_chosen_by_its_name(result: Result) -> None:
    assert result.chart("samples-*").name.startswith("samples-transpose")
    with pytest.raises(UsageError, match=r"^figure='nothing-like-it': no such figure .*\(there are: ladder-"):
        result.chart("nothing-like-it")


def test_a_chart_without_its_library_says_how_to_install_it(result: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match="pip install"):
        result.chart()


def test_results_are_compared_and_show_what_changed(result: Result) -> None:
    slower = [replace(row, elapsed_ms=2 * (row.elapsed_ms or 0.0)) for row in result]
    samples = {
        case: {number: [2 * value for value in values] for number, values in rounds.items()}
        for case, rounds in result.run.samples.items()
    }
    outcome = result.compare(Result(replace(result.run, rows=slower, samples=samples)))
    assert len(outcome.regressions) == len(result)
    shown = [texts(line, "td") for line in html(outcome).iter("tr")]
    assert {line[0] for line in shown if line} == {"slower"}
    assert repr(outcome).count("2.000×") == len(result)
    assert not result.compare([NIGHTLY], threshold=0.1).regressions


def test_a_measured_kernel_is_explained_as_it_was_measured(result: Result) -> None:
    outcome = result.explain("transposeSmemPad", block="16x16", dtype="float64")
    case = outcome.case
    assert (str(case.block), case.pad, case.dtype, case.n) == ("16x16", 1, "float64", 4096)
    assert case.id in set(result["case_id"])
    assert result.explain("transposeSmem").degree("load") == 32
    assert "32-way" in repr(result.explain("transposeSmem"))
    with pytest.raises(UsageError, match="no such case was measured"):
        result.explain("transposeSmem", block="8x8")
