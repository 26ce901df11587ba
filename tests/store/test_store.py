from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import Measured, Rows
from smembench.kernels.problems import PROBLEMS
from smembench.model.errors import UsageError
from smembench.store import schema
from smembench.store.csv_files import read_rows, read_samples, table_text
from smembench.store.files import write_whole
from smembench.store.schema import Row

REFERENCE = Path(__file__).parents[2] / "results/reference"
DESIGNED = """
schema_version, run_id, case_id, problem, kernel, device, compiler, dtype, m, n, k, block_x, block_y, pad,
shared_bytes, cache, status, reason, verified, max_error, samples, elapsed_ms, elapsed_ms_min, elapsed_ms_q1,
elapsed_ms_q3, elapsed_ms_max, bytes, effective_gb_s, flops, gflop_s, percent_of_copy, percent_of_peak,
speedup_vs_cpu, speedup_vs_naive, sm_clock_mhz, temperature_c, power_w, throttle_reasons, started_at_utc
"""

texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1)
floats = st.floats(allow_nan=False, allow_infinity=False)
BY_HINT: dict[str, st.SearchStrategy[object]] = {
    "str": texts,
    "int": st.integers(),
    "Flag": st.booleans(),
    "Flag | None": st.none() | st.booleans(),
    "str | None": st.none() | texts,
    "int | None": st.none() | st.integers(),
    "float | None": st.none() | floats,
}
BY_NAME: dict[str, st.SearchStrategy[object]] = {
    "schema_version": st.just(schema.SCHEMA_VERSION),
    "problem": st.sampled_from(list(PROBLEMS)),
    "status": st.sampled_from(["failed", "timeout", "skipped"]),
}
any_rows = st.builds(Row, **{name: BY_NAME.get(name, BY_HINT[hint]) for name, hint in Row.__annotations__.items()})


def as_csv(rows: Sequence[Row]) -> str:
    return table_text(schema.COLUMNS, map(schema.to_fields, rows))


@pytest.fixture
def cases(tmp_path: Path, rows: Rows) -> Path:
    """A cases.csv of two rows, the second of a failed case."""
    path = tmp_path / "cases.csv"
    write_whole(path, as_csv(rows({"copyGmem": [0.5, 1.0, 2.0], "naiveGmem": []})))
    return path


def test_columns_begin_with_those_of_the_design_in_its_order() -> None:
    designed = "".join(DESIGNED.split()).split(",")
    assert list(schema.COLUMNS[: len(designed)]) == designed
    assert ",".join(schema.SAMPLE_COLUMNS) == "schema_version,run_id,case_id,round,sample,elapsed_ms"


@given(st.lists(any_rows, max_size=3))
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
        (",1.0,", ",0.0,", "line 2: an ok case has no positive elapsed_ms"),
        (",1.0,", ",,", "line 2: an ok case has no positive elapsed_ms"),
        (",134217728,", ",0,", "line 2: an ok case has no positive bytes"),
        ("\n1,run", "\n2,run", "line 2: schema version 2; this smembench reads 1"),
        (",transpose,", ",sort,", "line 2: there is no problem 'sort'"),
        (",failed,", ",\n", "line 3: the column reason is missing"),
    ],
)
def test_a_damaged_file_is_refused_with_its_line(cases: Path, old: str, new: str, fault: str) -> None:
    cases.write_text(cases.read_text().replace(old, new, 1))
    with pytest.raises(UsageError) as caught:
        read_rows(cases)
    assert str(caught.value) == f"{cases}, {fault}"


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "not a cases.csv: the column schema_version is missing"),
        (b"a,b\n", "not a cases.csv: the column schema_version is missing"),
        (b"\xff\xfe\x00", "cannot be read"),
        (b"a\x00,b\n\x00", "not a cases.csv"),
    ],
)
def test_something_else_than_a_cases_csv_is_refused(tmp_path: Path, content: bytes, fault: str) -> None:
    path = tmp_path / "cases.csv"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=fault):
        read_rows(path)


def test_columns_added_later_may_be_absent(cases: Path) -> None:
    lines = [line.split(",") for line in cases.read_text().splitlines()]
    cases.write_text("".join(",".join(line[: len(schema.REQUIRED)]) + "\n" for line in lines))
    assert [row.converged for row in read_rows(cases)] == [None, None]


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    for read in (read_rows, read_samples):
        with pytest.raises(UsageError, match="cannot be read"):
            read(tmp_path / "none.csv")


def test_samples_round_trip(tmp_path: Path, measured: Measured) -> None:
    done = [measured("copyGmem", [0.1, 1 / 3]), measured("naiveGmem"), measured("transposeSmem", [1e-7])]
    text = table_text(schema.SAMPLE_COLUMNS, schema.sample_fields("run", done))
    write_whole(tmp_path / "samples.csv", text)
    assert read_samples(tmp_path / "samples.csv") == {done[0].case.id: {0: [0.1, 1 / 3]}, done[2].case.id: {0: [1e-7]}}


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "case_id,elapsed_ms\nx,fast\n", "case_id,elapsed_ms\nx\n"])
def test_damaged_samples_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "samples.csv"
    path.write_text(text)
    with pytest.raises(UsageError, match=f"{path}: not a samples.csv"):
        read_samples(path)
