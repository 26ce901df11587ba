from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_type_hints

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import Measured, Rows
from smembench.kernels.problems import PROBLEMS
from smembench.model.errors import UsageError
from smembench.model.problem import ITEMSIZE
from smembench.store import schema
from smembench.store.csv_files import read_rows, read_samples, table_text
from smembench.store.files import write_whole
from smembench.store.run import Run
from smembench.store.run_json import Description
from smembench.store.schema import Row

REFERENCE = Path(__file__).parents[2] / "results/reference"
texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1)
BY_HINT: dict[object, st.SearchStrategy[object]] = {str: texts, str | None: st.none() | texts}
BY_NAME: dict[str, st.SearchStrategy[object]] = {
    "schema_version": st.just(schema.SCHEMA_VERSION),
    "problem": st.sampled_from(list(PROBLEMS)),
    "status": st.sampled_from(["ok", "failed", "timeout", "skipped"]),
    "dtype": st.sampled_from(list(ITEMSIZE)),
    "cache": st.sampled_from(["warm", "cold"]),
    "device": st.sampled_from(["cpu", "cuda:0", "cuda:12"]),
    "inputs": st.sampled_from(["uniform", "normal", "integers", "zeros"]),
    "b_layout": st.sampled_from(["rows", "columns"]),
    "bytes": st.integers(1, 10**30),
    **dict.fromkeys(
        ("elapsed_ms", *(f"elapsed_ms_{name}" for name in ("min", "q1", "q3", "max"))), st.floats(1e-9, 1e12)
    ),
}
HINTS = get_type_hints(Row, include_extras=True)
any_rows = st.builds(
    Row, **{name: BY_NAME.get(name, BY_HINT.get(hint, st.from_type(hint))) for name, hint in HINTS.items()}
).map(lambda row: row if row.ok else replace(row, elapsed_ms=None))


def as_csv(rows: Sequence[Row]) -> str:
    return table_text(schema.COLUMNS, map(schema.to_fields, rows))


@pytest.fixture
def cases(tmp_path: Path, rows: Rows) -> Path:
    """A cases.csv of two rows, the second of a failed case."""
    path = tmp_path / "cases.csv"
    write_whole(path, as_csv(rows({"copyGmem": [0.5, 1.0, 2.0], "naiveGmem": []})))
    return path


@pytest.mark.parametrize("column", schema.COLUMNS)
def test_a_column_has_a_line_that_says_what_it_is(column: str) -> None:
    attributes = (Row.__doc__ or "").partition("Attributes:")[2].replace("elapsed_ms_…", "elapsed_ms_min q1 q3 max")
    named = {
        name for line in attributes.splitlines() if ": " in line for name in re.findall(r"\w+", line.partition(":")[0])
    }
    assert column.removeprefix("elapsed_ms_") in named or column in named


@given(st.lists(any_rows, max_size=3, unique_by=lambda row: row.case_id))
def test_rows_round_trip_through_a_file(tmp_path_factory: pytest.TempPathFactory, rows: list[Row]) -> None:
    path = tmp_path_factory.mktemp("store") / "cases.csv"
    write_whole(path, as_csv(rows))
    assert read_rows(path) == rows


@pytest.mark.parametrize("path", sorted(REFERENCE.rglob("cases.csv")), ids=lambda path: path.parent.name)
def test_a_stored_run_is_written_again_byte_for_byte(path: Path) -> None:
    text, rows = path.read_text(), read_rows(path)
    columns = text.partition("\n")[0].split(",")
    assert columns == list(schema.COLUMNS[: len(columns)])  # later versions add columns at the end
    assert table_text(columns, (schema.to_fields(row)[: len(columns)] for row in rows)) == text
    assert [row.case.id for row in rows] == [row.case_id for row in rows]


def test_stored_samples_have_the_same_columns() -> None:
    headers = {path.read_text().partition("\n")[0] for path in REFERENCE.rglob("samples.csv")}
    assert headers == {",".join(schema.SAMPLE_COLUMNS)}


def test_a_row_holds_the_median_and_what_follows_from_it(cases: Path) -> None:
    ok, failed = read_rows(cases)
    assert (ok.elapsed_ms, ok.elapsed_ms_min, ok.elapsed_ms_q1, ok.elapsed_ms_q3, ok.elapsed_ms_max) == (
        1.0,
        0.5,
        0.75,
        1.5,
        2.0,
    )
    assert ok.effective_gb_s == 2 * 4096**2 * 4 / 1e6
    assert (ok.ok, ok.samples, ok.speedup_vs_naive, ok.gflop_s, ok.k) == (True, 3, None, None, None)
    assert ok.case.id == ok.case_id
    assert (failed.ok, failed.reason, failed.samples) == (False, "LaunchError: out of luck", 0)
    assert failed.elapsed_ms is failed.effective_gb_s is failed.percent_of_copy is None


def test_what_does_not_apply_is_an_empty_field(cases: Path) -> None:
    fields = cases.read_text().splitlines()[2].split(",")
    record = dict(zip(schema.COLUMNS, fields, strict=True))
    empty = {name for name, field in record.items() if not field}
    assert empty >= {"k", "pad", "elapsed_ms", "effective_gb_s", "flops", "speedup_vs_cpu", "power_w"}
    assert (record["status"], record["verified"]) == ("failed", "false")


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        (",4096,", ",4k,", "line 2: the column m holds '4k'"),
        (",true,", ",yes,", "line 2: the column verified holds 'yes'"),
        (",false,", ",0,", "line 3: the column verified holds '0'"),
        (",1.0,", ",fast,", "line 2: the column elapsed_ms holds 'fast'"),
        (",1.0,", ",nan,", "line 2: the column elapsed_ms holds 'nan'"),
        (",1.0,", ",0.0,", "line 2: the column elapsed_ms holds '0.0'"),
        (",1.0,", ",1e-320,", "line 2: the column elapsed_ms holds '1e-320'"),
        (",4096,", f",{'9' * 5000},", "line 2: the column m holds '999999999999...9999999999999'"),
        (",warm,", ",tepid,", "line 2: there is no cache 'tepid'"),
        (",float32,", ",float31,", "line 2: there is no dtype 'float31'"),
        (",cuda:0,", ",cuda:x,", "line 2: there is no device 'cuda:x'"),
        (",1.0,", ",,", "line 2: an ok case has no positive elapsed_ms"),
        (",ok,", ",wrong_result,", "line 2: a case with the status wrong_result has an elapsed_ms"),
        (",134217728,", ",0,", "line 2: an ok case has no positive bytes"),
        ("\n1,run", "\n2,run", "line 2: schema version 2; this smembench reads 1"),
        (",transpose,", ",sort,", "line 2: there is no problem 'sort'"),
        (",failed,", ",\n", "line 3: damaged: it has 17 fields, and the first line "),
        (",uniform,", ",", f"line 2: damaged: it has {len(schema.COLUMNS) - 1} fields, and the first"),
    ],
)
def test_a_damaged_file_is_refused_with_its_line(cases: Path, old: str, new: str, fault: str) -> None:
    cases.write_text(cases.read_text().replace(old, new, 1))
    with pytest.raises(UsageError) as caught:
        read_rows(cases)
    assert str(caught.value).startswith(f"{cases}, {fault}")


def test_two_runs_in_one_file_are_refused(cases: Path) -> None:
    """They would be shown and compared as one run, of the first one's name."""
    text = cases.read_text()
    cases.write_text(text + text.partition("\n")[2])
    with pytest.raises(UsageError) as caught:
        read_rows(cases)
    case = text.splitlines()[1].split(",")[2]
    assert str(caught.value) == f"{cases}, line 4: {case} is there twice; give each run a file of its own"


def test_a_column_that_is_there_twice_is_refused(cases: Path) -> None:
    """The first was taken, whatever the other held."""
    header, *records = cases.read_text().splitlines()
    cases.write_text("\n".join([f"elapsed_ms,{header}", *(f"99,{record}" for record in records)]))
    with pytest.raises(UsageError, match="the column elapsed_ms is there twice; remove the one that is wrong"):
        read_rows(cases)


@pytest.mark.parametrize("separator", [";", "\t"])
def test_a_spreadsheets_separator_is_refused_with_a_way_out(cases: Path, separator: str) -> None:
    cases.write_text(cases.read_text().replace(",", separator))
    with pytest.raises(UsageError, match="save it with commas between its fields and points in its numbers"):
        read_rows(cases)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "notes.txt: not a cases.csv: it is empty"),
        (b"a,b\n", "notes.txt: not a cases.csv: the column schema_version is missing"),
        (b"\xff\xfe\x00", "cannot be read"),
        (b"a\x00,b\n\x00", "not a cases.csv"),
    ],
)
def test_something_else_than_a_cases_csv_is_refused(tmp_path: Path, content: bytes, fault: str) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=fault):
        read_rows(path)


def test_columns_added_later_may_be_absent(cases: Path) -> None:
    lines = [line.split(",") for line in cases.read_text().splitlines()]
    cases.write_text("".join(",".join(line[: len(schema.REQUIRED)]) + "\n" for line in lines))
    assert [row.converged for row in read_rows(cases)] == [None, None]


def test_what_an_editor_puts_before_the_text_is_no_damage(cases: Path) -> None:
    before = read_rows(cases)
    cases.write_text(cases.read_text(), encoding="utf-8-sig")
    assert read_rows(cases) == before


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    for read in (read_rows, read_samples):
        with pytest.raises(UsageError, match="cannot be read"):
            read(tmp_path / "none.csv")


def test_samples_round_trip(tmp_path: Path, measured: Measured) -> None:
    done = [measured("copyGmem", [0.1, 1 / 3]), measured("naiveGmem"), measured("transposeSmem", [1e-7])]
    text = table_text(schema.SAMPLE_COLUMNS, schema.sample_fields("run", Run.of(Description(), done).samples))
    write_whole(tmp_path / "samples.csv", text)
    assert read_samples(tmp_path / "samples.csv") == {done[0].case.id: {0: [0.1, 1 / 3]}, done[2].case.id: {0: [1e-7]}}


SAMPLES = "schema_version,case_id,round,elapsed_ms\n1,x,0,1.5\n1,x,0,"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a,b\n1,2\n", ": the column case_id is missing"),
        ("case_id,elapsed_ms\nx,1.5\n", ": the column round is missing"),
        *((f"{SAMPLES}{value}\n", ", line 3: the column elapsed_ms ") for value in ("fast", "nan", "-1", "1e-320", "")),
        (SAMPLES.replace("x,0,1", f"x,{'9' * 5000},1") + "1\n", ", line 2: the column round "),
        (SAMPLES.replace("1,x", "2,x") + "1\n", ": schema version 2; this smembench reads 1"),
        (SAMPLES + "1,2,3\n", ", line 3: damaged: it has 6 fields, and the first line 4"),
        (SAMPLES[:-2], ", line 3: damaged: it has 3 fields, and the first line 4"),
    ],
    ids=lambda value: value[-40:],
)
def test_damaged_samples_are_refused(tmp_path: Path, text: str, fault: str) -> None:
    path = tmp_path / "samples.csv"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        read_samples(path)
    assert str(caught.value).startswith(f"{path}{fault}")


@pytest.mark.parametrize("run", ["20261129T121757Z-documents", "20261201T004410Z-limits"])
def test_what_pandas_makes_of_the_files_is_read_alike(tmp_path: Path, run: str) -> None:
    exactly: dict[str, Any] = {"float_precision": "round_trip"} if pd.__version__ < "3" else {}  # later it is usual
    for name in ("cases.csv", "samples.csv"):
        pd.read_csv(REFERENCE / run / name, **exactly).to_csv(tmp_path / name)
    assert read_rows(tmp_path / "cases.csv") == read_rows(REFERENCE / run / "cases.csv")
    assert read_samples(tmp_path / "samples.csv") == read_samples(REFERENCE / run / "samples.csv")
