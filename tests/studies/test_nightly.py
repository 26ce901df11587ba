"""Night after night: what a run is compared with, which runs go, and what is told of it."""

from __future__ import annotations

import io
import json
import re
import shutil
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import Metric
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_prometheus
from rich.console import Console

from conftest import Measured
from smembench.cli.nightly import Nightly, after
from smembench.model.errors import INCOMPARABLE, Dropped, UsageError
from smembench.model.measurement import Sample
from smembench.store.csv_files import CASES
from smembench.store.load import load, root_of
from smembench.store.run import Run
from smembench.store.run_folder import JOURNAL, RUN, RunFolder
from smembench.store.run_json import Description
from smembench.studies.accept import accept, accepted, matches, patterns_of
from smembench.studies.baseline import BASELINE, baselines, pin, unpin
from smembench.studies.compare import Rules
from smembench.studies.history.read import read_nights, read_runs
from smembench.studies.history.series import Newest, series_of
from smembench.studies.nightly.against import compare, not_judged
from smembench.studies.nightly.last import compare_with_last
from smembench.studies.nightly.monitoring import json_line, open_metrics
from smembench.studies.nightly.runs import SUMMARY, prune, runs_before, surplus
from smembench.views.console import stderr

Night = Callable[..., Path]

H200 = {"name": "cuda:0", "kind": "cuda", "model": "NVIDIA H200", "uuid": "GPU-1"}
TIMES = {"copyGmem": 1.0, "transposeSmem": 2.0}
SLOWDOWN = Path(__file__).parents[2] / "results/reference/slowdown"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return tmp_path / "results"


@pytest.fixture
def night(results: Path, measured: Measured) -> Night:
    """Store a run of a day, counted from January on: medians by kernel in ms, None for a kernel that failed."""

    def make(
        day: int,
        times: dict[str, float | None] | None = None,
        *,
        complete: bool = True,
        config: str = "nightly",
        sweep: Iterable[dict[str, Any]] = (),
        **run: Any,
    ) -> Path:
        measurements = []
        for kernel, elapsed in (times or TIMES).items():
            wanted = [] if elapsed is None else [(turn, place) for turn in range(3) for place in range(5)]
            taken = [Sample(turn, place, (elapsed or 0) * (1 + 1e-3 * (turn + place))) for turn, place in wanted]
            measurement = measured(kernel, [sample.elapsed_ms for sample in taken])
            measurements.append(replace(measurement, samples=tuple(taken), rounds=3))
        date = datetime(2026, 1, 1, 2, tzinfo=UTC) + timedelta(days=day - 1)
        run_id = f"{date:%Y%m%dT%H%M%SZ}-{config}"
        described = {
            "schema_version": 1,
            "run_id": run_id,
            "started_at_utc": date.isoformat(),
            "seed": day,
            "config": {"name": config, "sweep": list(sweep)},
            "versions": {"numba": "0.61"},
            "git": None,
            "devices": [H200],
            **run,
        }
        folder = RunFolder.create(results, Description.model_validate(described))
        folder.finish(measurements, complete=complete)
        return folder.path

    return make


def run_of(folder: Path) -> Description:
    return load(folder).description


def finished(options: Nightly, results: Path, folder: Path) -> tuple[int, str]:
    """The exit code after a run, and what was printed."""
    finish = after(options, results, "nightly")
    assert finish is not None
    stream = io.StringIO()
    code = finish(folder, Console(file=stream, width=100))
    return code, stream.getvalue()


def test_only_complete_runs_of_the_config_on_the_devices_count(results: Path, night: Night) -> None:
    first, second = night(1), night(2)
    night(3, complete=False)
    night(4, config="quick")
    night(5, devices=[{**H200, "uuid": "GPU-2"}])
    renamed = night(6).rename(results / "a good one")
    shutil.copytree(second, results / "zcopy")
    (results / "link").symlink_to(first)
    damaged = night(7)
    (damaged / RUN).write_text("{")
    (results / "notes.txt").write_text("mine")
    newest = night(8)
    assert runs_before(results, run_of(newest), 1) == [renamed]
    assert runs_before(results, run_of(newest), 7) == [first, results / "zcopy", renamed]
    assert runs_before(results, run_of(first), 1) == []
    assert surplus(results, run_of(newest), newest, 1, []) == [first, second]


def test_a_run_in_a_renamed_folder_is_compared(results: Path, night: Night) -> None:
    night(1).rename(results / "before")
    code, printed = finished(Nightly(compare_to="last"), results, night(2).rename(results / "after"))
    assert (code, "compared with last (20260101T020000Z-nightly)" in printed) == (0, True)


@pytest.mark.parametrize("began", ["2016-01-01T00:00:00+00:00", "2099-01-01T00:00:00+00:00"])
def test_the_run_in_hand_is_kept_whatever_the_clock_says(results: Path, night: Night, began: str) -> None:
    old, future = night(1), night(2, started_at_utc="2098-01-01T00:00:00+00:00")
    mine = night(3, started_at_utc=began)
    assert prune(results, run_of(mine), mine, 1, []) == ([f"removed {old}"], [])
    assert prune(results, run_of(mine), mine, 1, []) == ([], [])
    assert load(mine).rows
    assert load(future).rows


def test_a_run_that_claims_to_begin_after_now_is_set_aside_wherever_a_series_is_read(
    results: Path, night: Night
) -> None:
    for day in range(1, 6):
        night(day)
    odd = night(6, started_at_utc="2099-01-01T00:00:00+00:00")
    newest = night(7, {**TIMES, "copyGmem": 1.2})
    why = f"{odd}: it claims to begin at 2099-01-01T00:00:00+00:00, after now; correct started_at_utc in its run.json"
    others: list[dict[str, Any]] = [{"config": "other"}, {"devices": [{**H200, "uuid": "GPU-2"}]}]
    for day, other in enumerate(others, start=8):
        night(day, **other, started_at_utc="2099-01-01T00:00:00+00:00")  # of no night that could be compared
    code, printed = finished(Nightly(compare_to="last:3"), results, newest)
    assert (code, f"left out {why}" in printed.replace("\n", "")) == (3, True), printed
    assert "more such runs" not in printed
    for path in results.glob("2026010[89]*"):
        shutil.rmtree(path)
    with pytest.warns(Dropped, match=re.escape(why)):
        assert load(results / "last").path == newest
    with pytest.warns(Dropped, match=re.escape(why)):
        assert accept(results, "*", "as agreed")[0] == newest.name
    nights, skipped = read_nights(results)
    assert (len(nights), [one.path for one in skipped]) == (6, [odd])
    runs, lines = read_runs([results])
    assert (len(runs), lines) == (6, [f"skipped {why}"])
    assert len(read_runs([odd])[0]) == 1
    for refused in (lambda: pin(odd), lambda: accept(odd, "*", "as agreed")):
        with pytest.raises(UsageError, match=re.escape(why)):
            refused()
    assert len(prune(results, run_of(newest), newest, 2, [])[0]) == 4
    assert load(odd).rows


def test_a_night_for_which_all_others_begin_after_now_is_no_success(results: Path, night: Night) -> None:
    night(1, started_at_utc="2099-01-01T00:00:00+00:00")
    code, printed = finished(Nightly(compare_to="last:3"), results, night(2))
    assert (code, "after now" in printed) == (INCOMPARABLE, True), printed


def test_a_damaged_run_json_is_told_and_changes_no_verdict(results: Path, night: Night) -> None:
    for day in range(1, 5):
        night(day)
    for day in (2, 3):
        cut = (results / f"2026010{day}T020000Z-nightly" / RUN).read_bytes()[:100]
        (results / f"2026010{day}T020000Z-nightly" / RUN).write_bytes(cut)
    (results / "notes.txt").write_text("mine")
    for slower, code in ((1.0, 0), (1.2, 3)):
        newest = night(6 if code else 5, {**TIMES, "copyGmem": slower})
        assert finished(Nightly(compare_to="last:3"), results, newest)[0] == code
        (line,) = [line for line in (newest / SUMMARY).read_text().splitlines() if "damaged:" in line]
        assert line.startswith(f"- left out {results / '20260102T020000Z-nightly' / RUN}: damaged: it is not JSON")
        assert line.endswith("(and 1 more such runs)")
        assert str(results / "notes.txt") not in line


def test_what_a_killed_run_left_does_not_keep_it(results: Path, night: Night) -> None:
    old, new = night(1), night(2)
    (old / ".cases.csv.k3x9_a0b").write_text("half")
    assert prune(results, run_of(new), new, 1, []) == ([f"removed {old}"], [])


def test_the_newest_runs_are_kept_and_nothing_else_is_touched(results: Path, night: Night) -> None:
    runs = [night(day) for day in range(1, 8)]
    kept = [night(20, complete=False), night(21, config="quick")]
    (runs[1] / "notes.txt").write_text("mine")
    (runs[2] / SUMMARY).write_text("old")
    outside = results.parent / "precious"
    outside.write_text("precious")
    (runs[3] / CASES).unlink()
    (runs[3] / CASES).symlink_to(outside)
    pin(runs[0])
    notes, failed = prune(results, run_of(runs[-1]), runs[-1], 2, baselines(results).values())
    assert not failed
    assert notes == [
        f"kept {runs[1]}: it also holds notes.txt",
        f"removed {runs[2]}",
        f"removed {runs[3]}",
        f"removed {runs[4]}",
    ]
    left = sorted(path.name for path in results.iterdir())
    assert left == sorted([BASELINE, *(path.name for path in [*runs[:2], *runs[5:], *kept])])
    assert outside.read_text() == "precious"
    assert sorted(path.name for path in runs[1].iterdir()) == ["cases.csv", "notes.txt", "run.json", "samples.csv"]


def test_a_removal_that_was_cut_off_is_finished(results: Path, night: Night) -> None:
    runs = [night(day) for day in (1, 2)]
    (runs[0] / CASES).unlink()
    assert runs_before(results, run_of(runs[1]), 1) == []
    assert prune(results, run_of(runs[1]), runs[1], 1, []) == ([f"removed {runs[0]}"], [])
    assert list(results.iterdir()) == [runs[1]]


def test_a_run_that_cannot_be_removed_is_named(results: Path, night: Night, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = night(1), night(2)

    def refuse(path: Path, missing_ok: bool = False) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "unlink", refuse)
    notes, failed = prune(results, run_of(new), new, 1, [])
    assert (notes, failed) == ([], [f"{old}: cannot be removed (Permission denied)"])
    assert load(old).rows


def test_a_slower_case_exits_with_3_and_is_on_the_page(results: Path, night: Night) -> None:
    options = Nightly(compare_to="last")
    code, printed = finished(options, results, night(1))
    assert (code, "there is no run before it" in printed) == (0, True)
    assert finished(options, results, night(2))[0] == 0
    newest = night(3, {**TIMES, "transposeSmem": 2.4}, versions={"numba": "0.62"})
    code, printed = finished(options, results, newest)
    page = (newest / SUMMARY).read_text()
    assert code == 3
    assert page.startswith("# nightly: 2 cases measured, 1 slower than the last run\n")
    for text in (page, printed):
        assert "numba was 0.61, is 0.62" in text
        assert "transposeSmem" in text
        assert "1.200×" in text


def test_failed_and_slower_cases_are_both_told_whatever_the_exit_code(results: Path, night: Night) -> None:
    night(1)
    lines, metrics = results.parent / "night.jsonl", results.parent / "night.prom"
    options = Nightly(compare_to="last", json_lines=lines, openmetrics=metrics)
    code, printed = finished(options, results, night(2, {"copyGmem": None, "transposeSmem": 2.4}))
    assert code == 3  # a case that fails every night would hide it otherwise
    assert "1 failed, 1 case measured, 1 slower than the last run" in printed
    assert "LaunchError: out of luck" in printed
    record = json.loads(lines.read_text())
    assert (list(record["failed"].values()), len(record["compared"][0]["slower"])) == (["failed"], 1)
    gauges = metrics.read_text()
    assert 'smembench_failed_cases{config="nightly"} 1.0' in gauges
    gpu = 'device="cuda:0",uuid="GPU-1",model="NVIDIA H200"'
    assert f'smembench_slower_cases{{config="nightly",compared_with="last",{gpu}}} 1.0' in gauges
    assert finished(Nightly(compare_to="last"), results, night(3, {"copyGmem": None, "transposeSmem": 2.4}))[0] in (
        1,
        3,
    )


@pytest.mark.parametrize("named", [True, False])
def test_runs_that_do_not_say_which_gpu_are_not_pooled_and_it_is_said(
    results: Path, night: Night, *, named: bool
) -> None:
    unnamed = [{**H200, "uuid": None}]
    for day in range(1, 5):
        night(day, devices=unnamed)
    newest = night(5, {**TIMES, "copyGmem": 9.0}, devices=[H200] if named else unnamed)
    code, printed = finished(Nightly(compare_to="last:3", keep=1), results, newest)
    assert code == INCOMPARABLE
    assert "left out 4 runs without the device" in printed
    assert "removed" not in printed


def test_a_change_is_told_until_it_is_accepted(results: Path, night: Night) -> None:
    for day in range(1, 6):
        night(day)
    pin(results / "20260103T020000Z-nightly")
    slower = {**TIMES, "copyGmem": 1.2}
    newest = night(6, slower)
    (case,) = (row.case_id for row in load(newest).rows if row.kernel == "copyGmem")
    code, printed = finished(Nightly(compare_to="last:5"), results, newest)
    assert code == 3
    assert f"smembench accept {newest} --case {case} --reason" in printed
    accept(newest, case, "as agreed")
    assert finished(Nightly(compare_to="last:5"), results, newest)[0] == 0
    code, printed = finished(Nightly(compare_to="last:5", keep=2), results, night(7, slower))
    assert code == 0, printed
    assert {"20260103T020000Z-nightly", newest.name} <= {path.name for path in results.iterdir()}
    assert finished(Nightly(compare_to="baseline"), results, night(8, {**slower, "transposeSmem": 2.6}))[0] == 3


@pytest.mark.parametrize(
    ("failed", "described"),
    [
        pytest.param(["copyGmem"], {}, id="a case failed"),
        pytest.param(TIMES, {}, id="all failed"),
        pytest.param([], {"devices": [{**H200, "driver": "590"}]}, id="another driver"),
    ],
)
@pytest.mark.parametrize("all_slower", [False, True])
def test_a_night_that_is_not_judged_does_not_end_an_alarm(
    results: Path, night: Night, failed: Iterable[str], described: dict[str, Any], *, all_slower: bool
) -> None:
    """The runs that slower cases are held against stay, although --keep would remove them."""
    slower = {"copyGmem": 1.2, "transposeSmem": 2.4 if all_slower else 2.0}
    options = Nightly(compare_to="last:3", keep=4)
    for day in range(1, 6):
        night(day)
    for day in range(6, 12):
        assert finished(options, results, night(day, slower))[0] == 3
    finished(options, results, night(12, {**slower, **dict.fromkeys(failed)}, **described))
    for day in range(13, 16):
        code, printed = finished(options, results, night(day, slower))
        assert code == 3, printed


def test_an_alarm_stands_until_it_is_accepted_however_long_that_takes(results: Path, night: Night) -> None:
    slower = {**TIMES, "copyGmem": 1.2}
    before = [night(day) for day in range(1, 8)]
    for day in range(8, 99):
        night(day, slower)
    options = Nightly(compare_to="last:3", keep=10)
    code, printed = finished(options, results, newest := night(99, slower))
    assert code == 3, printed
    assert f"kept {before[2]} and 86 later runs beyond --keep 10: a case" in (newest / SUMMARY).read_text()
    assert [path.exists() for path in before] == [False] * 2 + [True] * 5
    newest = night(100, slower)
    assert finished(options, results, newest)[0] == 3
    accept(newest, "*/copyGmem/*", "as agreed")
    assert finished(options, results, night(101, slower))[0] == 0
    assert len(list(results.glob(f"*/{CASES}"))) == 11  # and the accepted one
    assert finished(options, results, night(102, {**slower, "transposeSmem": 2.4}))[0] == 3


@pytest.mark.parametrize("compare_to", ["last", "last:2", "last:3"])
@pytest.mark.parametrize("keep", [2, 4, 5])
def test_an_alarm_stands_however_few_runs_are_compared_with_and_kept(
    results: Path, night: Night, compare_to: str, keep: int
) -> None:
    """Though the runs since before the change are not surplus at first, those before them are, and make the level."""
    for day in range(1, 9):
        night(day)
    for day in range(9, 20):
        newest = night(day, {**TIMES, "copyGmem": 1.2})
        code, printed = finished(Nightly(compare_to=compare_to, keep=keep), results, newest)
        assert code == 3, (day, printed)


def test_an_alarm_against_the_first_run_of_all_stands_if_that_is_accepted(results: Path, night: Night) -> None:
    accept(night(1), "*", "as agreed")
    slower = {**TIMES, "copyGmem": 4.0}
    for day in range(2, 8):
        night(day, slower)
    code, printed = finished(Nightly(compare_to="last:3"), results, night(8, slower))
    assert code == 3, printed


def test_a_slower_case_than_the_pinned_run_keeps_no_run_between_them(results: Path, night: Night) -> None:
    pin(night(1))
    slower = {**TIMES, "copyGmem": 1.2}
    for day in range(2, 9):
        night(day, slower)
    code, printed = finished(Nightly(compare_to="baseline", keep=2), results, night(9, slower))
    assert (code, len(list(results.glob(f"*/{CASES}")))) == (3, 3), printed


def test_runs_that_are_kept_for_ever_are_no_level_of_the_newest(results: Path, night: Night) -> None:
    """Three accepted runs, and what came long after them, by then 4 % slower little by little."""
    for day in (1, 2, 3):
        accept(night(day), "*", f"on day {day}")
    for day in range(200, 262):
        night(day, {**TIMES, "transposeSmem": 2.08})
    code, printed = finished(Nightly(compare_to="last:3"), results, night(262, {**TIMES, "transposeSmem": 2.08}))
    assert code == 0, printed


def test_a_night_names_what_a_history_does_and_at_the_edge_more() -> None:
    nights, _ = read_nights(SLOWDOWN)
    by_history = {one.case_id for one in series_of(nights) if one.newest is Newest.SLOWER}
    result = compare("last:7", SLOWDOWN, load(nights[-1].path), Rules())
    slower = {case.case.id for _, one in result.compared for case in one.regressions}
    assert len(by_history) == 3
    assert by_history < slower


def test_what_is_faster_for_sixty_nights_is_the_level(results: Path, night: Night) -> None:
    for day in range(1, 8):
        night(day)
    for day in range(8, 72):
        night(day, {**TIMES, "copyGmem": 0.8})
    assert finished(Nightly(compare_to="last:3"), results, night(72))[0] == 3


@pytest.mark.parametrize("throttled", [True, False])
def test_what_changed_before_and_cannot_be_judged_is_no_success(
    results: Path, night: Night, *, throttled: bool
) -> None:
    slower = {**TIMES, "copyGmem": 1.2}
    for day in range(1, 6):
        night(day)
    night(6, slower)
    new = load(night(7, slower))
    why = "hw_thermal_slowdown" if throttled else None
    rows = [replace(row, throttle_reasons=why) if row.kernel == "copyGmem" else row for row in new.rows]
    result = compare("last:3", results, replace(new, rows=rows), Rules())
    case = new.rows[0].case_id
    message = f"last:3: not compared, though changed before: {case}: new: the GPU throttled ({why})"
    assert (result.problems, len(result.compared[0][1].regressions)) == (([message], 0) if throttled else ([], 1))


def test_a_gpu_of_which_nothing_can_be_compared_is_not_hidden_by_the_cpu(results: Path, night: Night) -> None:
    cpu = {"name": "cpu", "kind": "cpu", "model": "a CPU", "uuid": "CPU-1"}
    for day in (1, 2, 3):
        night(day, devices=[H200, cpu])
    new = load(night(4, devices=[H200, cpu]))
    cases = {row.case_id: row.case_id.replace("cuda:0", "cpu") for row in new.rows if row.kernel == "copyGmem"}
    before = [load(path) for path in sorted(results.iterdir())[:3]]

    def moved(run: Run, why: str | None = None) -> Run:
        rows = [
            replace(row, device="cpu", case_id=cases[row.case_id])
            if row.case_id in cases
            else replace(row, throttle_reasons=why)
            for row in run.rows
        ]
        samples = {cases.get(case, case): result for case, result in run.samples.items()}
        return replace(run, rows=rows, samples=samples)

    result = compare_with_last([moved(run) for run in before], moved(new, "hw_slowdown"), 3, Rules())
    assert list(not_judged(result)) == ["nothing on cuda:0 could be compared: new: the GPU throttled (hw_slowdown)"]


SWEEPS: list[dict[str, Any]] = [{"problem": "transpose"}, {"problem": "transpose", "n": [1000]}]
SWEPT: dict[str, Any] = {"sweep": SWEEPS, "code": "one"}


@pytest.mark.parametrize(
    ("described", "code", "prefix"),
    [
        pytest.param({}, 1, "without a result, although the config is unchanged", id="nothing explains it"),
        pytest.param(
            {"sweep": SWEEPS[::-1]},
            1,
            "without a result, although the config is unchanged",
            id="its sweeps in another order",
        ),
        pytest.param(
            {"sweep": [dict(reversed(sweep.items())) for sweep in SWEEPS]},
            1,
            "without a result, although the config is unchanged",
            id="their keys in another order",
        ),
        pytest.param({"code": "other"}, 0, "no longer measured", id="another version"),
        pytest.param({"kernels": {"mine.py": "1"}}, 0, "no longer measured", id="other files of kernels"),
        pytest.param(
            {"sweep": [{"problem": "transpose", "kernel": ["transposeSmem"]}]},
            0,
            "no longer measured",
            id="another config",
        ),
        pytest.param(
            {
                "code": "other",
                "devices": [{**H200, "name": "cuda:1", "uuid": "GPU-2"}, {"name": "cpu", "uuid": "CPU-1"}],
            },
            1,
            "without a result, although the config is unchanged",
            id="its device is gone, with another version",
        ),
    ],
)
def test_a_case_that_is_absent_is_named_and_a_failure_if_the_config_plans_it(
    results: Path, night: Night, described: dict[str, Any], code: int, prefix: str
) -> None:
    cpu = {"name": "cpu", "uuid": "CPU-1"}
    for day in (1, 2, 3):
        night(day, **{**SWEPT, "devices": [H200, cpu]})
    fewer = {**SWEPT, "devices": [H200, cpu], **described}
    new = night(4, {"transposeSmem": 2.0}, **fewer)
    result = compare("last:3", results, load(new), Rules())
    (line,) = (line for line in (result.problems if code else result.notes) if line.startswith(prefix))
    case = "transpose/copyGmem/cuda:0/numba/float32/4096x4096/b32x32/warm"
    assert line.endswith(f"{case}; to stop measuring a case, remove it from the config" if code == 1 else case)
    assert any("result" in line or "longer measured" in line for line in result.problems) == bool(code)
    again = compare("last:3", results, load(night(5, {"transposeSmem": 2.0}, **fewer)), Rules())
    assert any(line.startswith(prefix) for line in (*again.problems, *again.notes)) == bool(code)  # a failure stands


@pytest.mark.parametrize(
    ("before", "later"),
    [
        pytest.param({"host": {"name": "pod-1"}}, {"host": {"name": "pod-2"}}, id="another host name"),
        pytest.param({"devices": [H200, {**H200, "name": "cuda:1", "uuid": "GPU-2"}]}, {}, id="the other GPU is gone"),
        pytest.param({}, {"devices": [H200, {**H200, "name": "cuda:1", "uuid": "GPU-2"}]}, id="another GPU is there"),
    ],
)
def test_a_gpu_is_compared_with_itself_whatever_else_there_is(
    results: Path, night: Night, before: dict[str, Any], later: dict[str, Any]
) -> None:
    cpu = {"name": "cpu", "kind": "cpu", "model": "EPYC"}
    before, later = ({**item, "devices": [*item.get("devices", [H200]), cpu]} for item in (before, later))
    for day in range(1, 6):
        night(day, **before)
    assert finished(Nightly(compare_to="last:3"), results, night(6, **later))[0] == 0
    assert finished(Nightly(compare_to="last:3"), results, night(7, {**TIMES, "copyGmem": 1.2}, **later))[0] == 3


def test_gpus_that_changed_places_are_not_compared_and_it_is_said(results: Path, night: Night) -> None:
    other = {**H200, "uuid": "GPU-2"}
    for day in (1, 2):
        night(day, devices=[H200, {**other, "name": "cuda:1"}])
    newest = night(3, devices=[other, {**H200, "name": "cuda:1"}])
    code, printed = finished(Nightly(compare_to="last:3"), results, newest)
    assert (code, "2 other runs of this config" in " ".join(printed.split())) == (INCOMPARABLE, True)


@given(st.sets(st.sampled_from([f"transpose/{kernel}/cuda:0/{n}" for kernel in ("a", "ab", "c") for n in range(4)])))
def test_the_cases_that_are_to_be_accepted_are_the_slower_ones_and_no_others(slower: set[str]) -> None:
    every = [f"transpose/{kernel}/cuda:0/{n}" for kernel in ("a", "ab", "c") for n in range(4)]
    patterns = patterns_of([one for one in every if one in slower], every)
    assert {one for one in every if any(matches(one, pattern) for pattern in patterns)} == slower
    for kernel in ("a", "ab", "c"):
        of_kernel = {one for one in every if one.startswith(f"transpose/{kernel}/")}
        assert (f"transpose/{kernel}/*" in patterns) == (of_kernel <= slower)


def test_a_case_that_was_not_judged_is_not_offered_for_acceptance(results: Path, night: Night) -> None:
    times: dict[str, float | None] = {**TIMES, "naiveGmem": 3.0}
    for day in range(1, 6):
        night(day, times)
    slower = {"copyGmem": 1.2, "transposeSmem": 2.4, "naiveGmem": None}
    code, printed = finished(Nightly(compare_to="last:3"), results, night(6, slower))
    offered = re.findall(r"smembench accept \S+ --case (\S+)", printed)
    assert (code, [case.split("/")[1] for case in offered]) == (3, ["copyGmem", "transposeSmem"])
    for case in offered:
        accept(results / "20260106T020000Z-nightly", case.strip("'"), "as agreed")
    assert finished(Nightly(compare_to="last:3"), results, night(7, {**slower, "naiveGmem": 3.6}))[0] == 3


def test_that_a_case_stays_faster_can_be_accepted_and_then_losing_it_is_told(results: Path, night: Night) -> None:
    faster = {**TIMES, "copyGmem": 0.8}
    for day in range(1, 6):
        night(day)
    assert "if it is to stay faster" not in finished(Nightly(compare_to="last:3"), results, night(6, faster))[1]
    _, printed = finished(Nightly(compare_to="last:3"), results, night(7, faster))
    (case,) = re.findall(r"smembench accept \S+ --case (\S+) --reason TEXT, if it is to stay faster", printed)
    accept(results / "20260107T020000Z-nightly", case, "tuned")
    assert finished(Nightly(compare_to="last:3"), results, night(8, faster))[0] == 0
    assert finished(Nightly(compare_to="last:3"), results, night(9))[0] == 3


def test_a_headline_says_how_many_are_ambiguous(results: Path, night: Night) -> None:
    for day in range(1, 5):
        night(day)
    printed = finished(
        Nightly(compare_to="last:3"), results, night(5, {name: 1.004 * ms for name, ms in TIMES.items()})
    )[1]
    assert "none slower than the last 3 runs (2 ambiguous)" in printed


def test_what_hides_a_change_is_named(results: Path, night: Night) -> None:
    """A case that comes and goes by 20 % is ambiguous when it does so again, and measuring more would not help."""
    slower = {**TIMES, "transposeSmem": 2.4}
    for day in range(1, 11):
        night(day, slower if day in (4, 8) else TIMES)
    code, printed = finished(Nightly(compare_to="last:7"), results, newest := night(11, slower))
    assert "1 of them no larger than slowdowns that recovered before" in " ".join(printed.split())
    assert "ambiguous: transposeSmem 32x32 4096x4096: alternates" in printed  # listed, though ambiguous
    (_, result), *_ = compare("last:7", results, load(newest), Rules()).compared
    (reason,) = {case.reason for case in result.cases if case.case.kernel == "transposeSmem"}
    assert (code, "alternates between two levels 20.0 % apart" in reason) == (0, True), reason


def test_what_one_case_does_on_some_nights_hides_no_other(results: Path, night: Night) -> None:
    for day in range(1, 11):
        night(day, {**TIMES, "transposeSmem": 2.4 if day in (4, 8) else 2.0})
    code, _ = finished(Nightly(compare_to="last:7"), results, night(11, {**TIMES, "copyGmem": 1.3}))
    assert code == 3


def test_the_newest_run_has_a_name_wherever_a_run_is_named(results: Path, night: Night) -> None:
    for day in (1, 2):
        night(day)
    assert pin(results / "last") == "nightly"
    assert baselines(results) == {"nightly": results / "20260102T020000Z-nightly"}
    accept(results / "last", "*", "as agreed")
    assert root_of(results / "last") == results


def test_a_second_acceptance_leaves_the_verdicts_on_earlier_runs_as_they_were(results: Path, night: Night) -> None:
    for day in range(1, 6):
        night(day)
    folders = [night(day, {**TIMES, "copyGmem": 1.2 if day < 8 else 1.5}) for day in range(6, 10)]
    codes = []
    for meant in (folders[0], folders[2]):
        (case,) = (row.case_id for row in load(meant).rows if row.kernel == "copyGmem")
        accept(meant, case, "as agreed")
        codes.append([finished(Nightly(compare_to="last:3"), results, folder)[0] for folder in folders])
    assert codes == [[0, 0, 3, 3], [0, 0, 0, 0]]


def test_what_is_accepted_on_one_gpu_is_news_on_another(results: Path, night: Night) -> None:
    slower, other = {**TIMES, "copyGmem": 1.2}, [{**H200, "uuid": "GPU-2"}]
    for day in (1, 2):
        night(day)
        night(day + 10, devices=other)
    accept(night(3, slower), "*", "as agreed")
    assert finished(Nightly(compare_to="last"), results, night(4, slower))[0] == 0
    assert finished(Nightly(compare_to="last"), results, night(13, slower, devices=other))[0] == 3


@pytest.mark.parametrize(("threshold", "code"), [(None, 3), (10.0, 3), (30.0, 0)])
def test_the_threshold_is_the_users(results: Path, night: Night, threshold: float | None, code: int) -> None:
    night(1)
    newest = night(2, {**TIMES, "copyGmem": 1.2})
    assert finished(Nightly(compare_to="last", threshold=threshold), results, newest)[0] == code
    of_config = after(Nightly(compare_to="last"), results, "nightly", threshold)
    assert of_config is not None
    assert of_config(newest, Console(file=io.StringIO())) == code


def test_last_compares_with_the_baseline_too(results: Path, night: Night) -> None:
    pin(night(1))
    for day in range(2, 6):
        night(day, {"copyGmem": 1.01**day, "transposeSmem": 2.0})
    newest = night(6, {"copyGmem": 1.01**6, "transposeSmem": 2.0})
    code, printed = finished(Nightly(compare_to="last"), results, newest)
    assert code == 3
    assert "none slower than the last run (1 ambiguous), 1 slower than baseline" in printed
    assert finished(Nightly(compare_to="baseline"), results, newest)[0] == 3
    assert finished(Nightly(compare_to=str(results / "20260105T020000Z-nightly")), results, newest)[0] == 0


def test_several_runs_before_it_tell_how_much_runs_differ(results: Path, night: Night) -> None:
    """Each night as a whole is up to 2 % off, its rounds hardly: by its rounds the newest would be called slower."""
    for day, level in enumerate((1.0, 1.02, 0.99, 1.01, 0.98, 1.0), 1):
        night(day, {"copyGmem": level, "transposeSmem": 2 * level})
    newest = night(7, {"copyGmem": 1.025, "transposeSmem": 2.05})
    assert finished(Nightly(compare_to="last"), results, newest)[0] == 0
    code, printed = finished(Nightly(compare_to="last:6"), results, newest)
    assert code == 0, printed
    assert "none slower than the last 6 runs" in printed
    worse = night(8, {"copyGmem": 1.0, "transposeSmem": 2.6})
    code, printed = finished(Nightly(compare_to="last:6"), results, worse)
    assert code == 3
    assert "1 slower than the last 6 runs" in printed


def test_the_newest_runs_together_are_held_against_the_baseline(results: Path, night: Night) -> None:
    pin(night(1))
    for day in range(2, 7):
        night(day, {"copyGmem": 1.05 + day / 1e3, "transposeSmem": 2.0})
    newest = night(7, {"copyGmem": 1.057, "transposeSmem": 2.0})
    code, printed = finished(Nightly(compare_to="last:5"), results, newest)
    assert code == 3
    assert "none slower than the last 5 runs (1 ambiguous), 1 slower than baseline" in printed


@pytest.mark.filterwarnings("ignore::smembench.model.errors.Dropped")
def test_of_several_runs_damaged_ones_are_left_out(results: Path, night: Night) -> None:
    (night(1) / "cases.csv").write_text("case_id\nx\n")
    for day in (3, 4, 5):
        night(day)
    code, printed = finished(Nightly(compare_to="last:5"), results, night(6))
    assert code == 0, printed
    assert "not compared: last:5: " in printed
    assert "(20260103T020000Z-nightly, 20260104T020000Z-nightly, 20260105T020000Z-nightly): 2 same" in printed


@pytest.mark.filterwarnings("ignore::smembench.model.errors.Dropped")
def test_a_run_compared_with_that_turns_out_damaged_is_no_success(results: Path, night: Night) -> None:
    old = night(1)
    (old / "cases.csv").write_text("case_id\nx\n")
    code, printed = finished(Nightly(compare_to="last"), results, night(2))
    assert code == INCOMPARABLE
    assert "not compared: last: " in printed


def test_everything_is_removed_told_and_stored_in_one_night(results: Path, night: Night) -> None:
    old, first, *_ = (night(day) for day in range(1, 5))
    lines, metrics = results.parent / "night.jsonl", results.parent / "night.prom"
    lines.write_text("{}\n")
    options = Nightly(compare_to="last", keep=1, json_lines=lines, openmetrics=metrics)
    newest = night(5, {**TIMES, "copyGmem": 1.5})
    assert finished(options, results, newest)[0] == 3
    assert not old.exists()
    kept = f"kept {first} and 2 later runs beyond --keep 1: a case is compared with runs before it changed"
    assert kept in (newest / SUMMARY).read_text()
    assert f"removed {old}" in (newest / SUMMARY).read_text()
    record = json.loads(lines.read_text().splitlines()[1])
    assert (record["exit_code"], record["run_id"], record["devices"]) == (3, newest.name, ["NVIDIA H200"])
    ((case, ratio),) = record["compared"][0]["slower"].items()
    assert "copyGmem" in case
    assert ratio == pytest.approx(1.5)
    assert len(record["elapsed_ms"]) == 2
    assert 'smembench_slower_cases{config="nightly",compared_with="last",' in metrics.read_text()
    assert finished(options, results, night(6, {**TIMES, "copyGmem": 1.5}))[0] == 3


def test_what_cannot_be_written_at_the_end_exits_with_1(
    results: Path, night: Night, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = results.parent / "gone"
    folder.mkdir()
    finish = after(Nightly(openmetrics=folder / "x.prom", json_lines=folder / "x.jsonl"), results, "nightly")
    assert finish is not None
    folder.rmdir()
    assert finish(night(1), Console(file=io.StringIO())) == 1
    assert f"{folder / 'x.prom'}: cannot be written (No such file or directory)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"keep": 0}, "--keep 0: keep at least 1 run"),
        ({"compare_to": "baseline"}, "baseline: no run is pinned for nightly"),
        ({"compare_to": "nowhere"}, "nowhere: there is no such file or folder"),
        ({"compare_to": "last:0"}, "last:0: give a number of runs, such as last:7"),
        ({"compare_to": f"last:{'9' * 5000}"}, "last:999"),
        ({"compare_to": "x" * 300}, "File name too long"),
        ({"compare_to": "last:week"}, "last:week: give a number of runs"),
        ({"openmetrics": Path("metrics.txt")}, "--openmetrics metrics.txt: the textfile collector only reads"),
        ({"openmetrics": Path("nowhere/metrics.prom")}, "there is no folder nowhere"),
        ({"json_lines": Path("nowhere/lines")}, "there is no folder nowhere"),
        ({"json_lines": Path("/")}, "--json-lines /: is a folder"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_cannot_be_done_is_refused_before_measuring(tmp_path: Path, options: dict[str, Any], fault: str) -> None:
    with pytest.raises(UsageError, match=re.escape(fault)):
        after(Nightly(**options), tmp_path, "nightly")


def test_the_page_has_no_markup_of_stored_texts_and_commands_to_copy(results: Path, night: Night) -> None:
    hostile = "<script>alert(1)</script> *x* [y](z)"
    for day in range(1, 4):
        night(day, devices=[{**H200, "driver": "580"}])
    newest = night(4, {**TIMES, "copyGmem": 1.3}, devices=[{**H200, "driver": hostile}])
    assert finished(Nightly(compare_to="last:3"), results, newest)[0] == 3
    page = (newest / SUMMARY).read_text()
    assert "<script>" not in page
    assert "&lt;script>alert(1)&lt;/script> \\*x\\* [y\\](z)" in page
    assert f"`smembench accept {newest} --case transpose/copyGmem/cuda:0/" in page


def test_nothing_asked_for_is_nothing_to_do(tmp_path: Path) -> None:
    assert after(Nightly(), tmp_path, "nightly") is None


def read_openmetrics(text: str) -> Iterable[Metric]:
    result: Iterable[Metric] = openmetrics.text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
    return result


def test_metrics_are_valid_for_openmetrics_and_for_the_textfile_collector(results: Path, night: Night) -> None:
    device = {**H200, "model": 'A "quoted" \\ name\nin two lines'}
    stored = load(night(1, {**TIMES, "naiveGmem": None}, devices=[device]))
    text = open_metrics(stored, [], 1)
    assert text.endswith("# EOF\n")
    families = {family.name: family for family in read_openmetrics(text)}
    assert {family.name: family.samples for family in parse_prometheus(text)} == {
        name: family.samples for name, family in families.items()
    }
    elapsed = {sample.labels["kernel"]: sample for sample in families["smembench_elapsed_seconds"].samples}
    assert set(elapsed) == {"copyGmem", "transposeSmem"}
    assert elapsed["copyGmem"].value == pytest.approx(1.003e-3)
    assert elapsed["copyGmem"].labels["model"] == device["model"]
    assert elapsed["copyGmem"].timestamp is None
    ok = {sample.labels["kernel"]: sample.value for sample in families["smembench_case_ok"].samples}
    assert ok == {"copyGmem": 1, "transposeSmem": 1, "naiveGmem": 0}
    assert elapsed["copyGmem"].labels["uuid"] == "GPU-1"
    bandwidth = families["smembench_effective_bandwidth_bytes_per_second"].samples[0]
    assert bandwidth.value == pytest.approx(2 * 4096**2 * 4 / 1.003e-3)
    assert families["smembench_run_exit_code"].samples[0].value == 1
    assert families["smembench_run_started_timestamp_seconds"].samples[0].value == 1767232800


def test_metrics_tell_which_gpu_throttled_and_in_how_many_cases(results: Path, night: Night) -> None:
    stored = load(night(1, devices=[{**H200, "uuid": "anonymous-0123"}, {**H200, "name": "cuda:1", "uuid": "GPU-2"}]))
    first, *others = stored.rows
    stored = replace(stored, rows=[replace(first, throttle_reasons="sw_thermal"), *others])
    text = open_metrics(stored, [], 0)
    samples = next(family for family in parse_prometheus(text) if family.name == "smembench_throttled_cases").samples
    assert {sample.labels["uuid"]: sample.value for sample in samples} == {"anonymous-0123": 1, "GPU-2": 0}


def test_a_problem_is_told_once_where_the_page_is_on_stderr(
    results: Path, night: Night, capsys: pytest.CaptureFixture[str]
) -> None:
    """As with --csv -: stdout has the CSV."""
    night(1, started_at_utc="2099-01-01T00:00:00+00:00")
    finish = after(Nightly(compare_to="last:3"), results, "nightly")
    assert finish is not None
    assert finish(night(2), stderr) == INCOMPARABLE
    assert capsys.readouterr().err.count("after now") == 1


def test_a_json_line_is_one_line(results: Path, night: Night) -> None:
    stored = load(night(1, {"copyGmem": None}))
    line = json_line(stored, [], 1)
    assert line.count("\n") == 1
    assert list(json.loads(line)["failed"].values()) == ["failed"]


def test_of_several_that_accept_and_pin_at_once_none_is_lost(results: Path, night: Night) -> None:
    run = night(1)
    configs = [night(2 + number, config=f"config{number}") for number in range(8)]
    cases = [row.case_id for row in load(run).rows]
    (results / "accepted.json").write_text('{"accepted": []}')
    with ThreadPoolExecutor(8) as pool:
        accepting = [pool.submit(accept, folder, case, "as agreed") for folder in (run, *configs) for case in cases]
        pinning = [pool.submit(pin, folder) for folder in configs]
    assert all(job.result() for job in accepting)
    assert all(job.result() for job in pinning)
    assert len(accepted(results)) == 9 * len(cases)
    assert set(baselines(results)) == {f"config{number}" for number in range(8)}
    assert [path.name for path in results.iterdir() if not path.is_dir()] == ["accepted.json", BASELINE]


def test_a_baseline_survives_a_move_of_the_results(results: Path, night: Night) -> None:
    assert pin(night(1)) == "nightly"
    assert pin(night(2)) == "nightly"
    pin(night(3, config="quick"))
    moved = results.rename(results.parent / "moved")
    pinned = {name: folder.relative_to(moved).name for name, folder in baselines(moved).items()}
    assert pinned == {"nightly": "20260102T020000Z-nightly", "quick": "20260103T020000Z-quick"}
    assert unpin(moved, "quick") == ["quick"]
    assert unpin(moved) == ["nightly"]
    assert unpin(moved) == []
    assert baselines(moved) == {}


def test_only_a_complete_run_can_be_the_baseline(results: Path, night: Night) -> None:
    partial = night(1, complete=False)
    assert (partial / JOURNAL).exists()
    with pytest.raises(UsageError, match="is not complete"):
        pin(partial)
    (partial / "cases.csv").unlink(missing_ok=True)  # as a killed run leaves it
    with pytest.raises(UsageError, match=r"is not complete; continue it with: smembench run --resume"):
        pin(partial)
    with pytest.raises(UsageError, match="is not a run of smembench"):
        pin(results)
    assert not (results / BASELINE).exists()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"pinned": 3}', '{"pinned": {"nightly": "../../etc"}}', "\x00", "[" * 9999]
)
def test_a_damaged_baseline_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / BASELINE).write_text(text)
    with pytest.raises(UsageError, match=BASELINE):
        baselines(tmp_path)


def test_what_was_not_timed_keeps_its_level(results: Path, night: Night) -> None:
    """The accepted night could not time copyGmem, which is slower from the next one on."""
    for day in range(1, 6):
        night(day)
    _, cases = accept(night(6, {"copyGmem": None, "transposeSmem": 2.6}), "*", "as agreed")
    assert [case.split("/")[1] for case in cases] == ["transposeSmem"]
    slower = night(7, {"copyGmem": 1.3, "transposeSmem": 2.6})
    result = compare("last:3", results, load(slower), Rules())
    assert [case.case.kernel for _, one in result.compared for case in one.regressions] == ["copyGmem"]
    with pytest.raises(UsageError, match="has no level in 20260106T020000Z-nightly"):
        accept(results / "20260106T020000Z-nightly", "*/copyGmem/*", "as agreed")


def test_a_headline_says_how_many_cases_could_be_compared(results: Path, night: Night) -> None:
    printed = finished(Nightly(compare_to="last:3"), results, night(1))[1]
    assert "nightly: 2 cases measured; no earlier run to compare with" in printed
    night(2)
    code, printed = finished(Nightly(compare_to="last:3"), results, night(3, {"transposeSmem": 2.0}))
    assert (code, "none slower than the last 2 runs, 1 of 2 cases compared" in printed) == (0, True), printed


def test_a_night_without_the_gpu_is_no_success(results: Path, night: Night) -> None:
    """Neither with cases on the CPU that go on, nor without any."""
    cpu = {"name": "cpu", "kind": "cpu", "model": "a CPU", "uuid": "CPU-1"}
    night(1, devices=[H200, cpu])
    night(2, devices=[H200, cpu])
    for day in (3, 4):
        code, printed = finished(Nightly(compare_to="last:3"), results, night(day, devices=[cpu]))
        assert (code, "no GPU was measured, unlike in 20260102T020000Z-nightly" in printed) == (1, True), printed


def test_a_stored_night_is_judged_by_nothing_that_came_after_it(results: Path, night: Night) -> None:
    """Neither by a GPU that was there only later, nor by a run that was pinned later."""
    cpu = {"name": "cpu", "kind": "cpu", "model": "a CPU", "uuid": "CPU-1"}
    for day in (1, 2, 3):
        night(day, devices=[{**H200, "kind": "cpu"}])
    judged = load(night(4, devices=[{**H200, "kind": "cpu"}]))
    pin(night(5, {name: ms / 2 for name, ms in TIMES.items()}, devices=[H200, cpu]))
    night(6, devices=[{**H200, "uuid": "GPU-2"}])
    result = compare("last:3", results, judged, Rules())
    assert [asked for asked, _ in result.compared] == ["last:3"]
    assert (result.problems, result.notes, result.compared[0][1].regressions) == ([], [], [])


def test_a_case_that_is_skipped_though_it_was_measured_is_no_success(results: Path, night: Night) -> None:
    for day in (1, 2, 3):
        night(day, **SWEPT)
    new = load(night(4, **SWEPT))
    rows = [
        replace(row, status="skipped", reason="too long", elapsed_ms=None) if row.kernel == "copyGmem" else row
        for row in new.rows
    ]
    (problem,) = compare("last:3", results, replace(new, rows=rows), Rules()).problems
    assert problem.startswith("without a result, although the config is unchanged: transpose/copyGmem/")


def test_a_lower_clock_does_not_hide_what_it_slows_down(results: Path, night: Night) -> None:
    for day in range(1, 6):
        night(day)
    folder = night(6, {name: 1.3 * ms for name, ms in TIMES.items()})
    runs = [load(results / f"202601{day:02}T020000Z-nightly") for day in range(1, 7)]
    *before, new = (
        replace(run, rows=[replace(row, sm_clock_mhz=1980 if run.path != folder else 1523) for row in run.rows])
        for run in runs
    )
    result = compare_with_last(before, new, 3, Rules())
    assert len(result.regressions) == 2
    assert {case.reason for case in result.regressions} == {
        "the SM clock was 1980 MHz, then 1523 MHz: 1.300× in time, 1.000× in cycles"
    }


@pytest.mark.parametrize("nights_before", [1, 3])
@pytest.mark.parametrize(
    ("was", "now", "change"),
    [
        pytest.param({"driver": "580"}, {"driver": "590"}, "driver was 580, is 590", id="driver"),
        pytest.param(
            {"power_limit_w": 700.0},
            {"power_limit_w": 500.0},
            "power limit in W was 700.0, is 500.0",
            id="power limit",
        ),
        pytest.param(
            {"sm_clock_max_mhz": 1980},
            {"sm_clock_max_mhz": 1500},
            "SM clock limit in MHz was 1980, is 1500",
            id="clock limit",
        ),
        pytest.param({"ecc": False}, {"ecc": True}, "ecc was False, is True", id="ECC"),
        pytest.param({}, {"versions": {"numba": "0.62"}}, "numba was 0.61, is 0.62", id="library"),
        pytest.param(
            {"git": {"revision": "a" * 40, "dirty": True}, "code": "1" * 64},
            {"git": {"revision": "a" * 40, "dirty": True}, "code": "2" * 64},
            f"git revision was {'a' * 12}+ {'1' * 12}, is {'a' * 12}+ {'2' * 12}",
            id="code",
        ),
        pytest.param(
            {"kernels": {"mine.py": "1" * 64}},
            {"kernels": {"mine.py": "2" * 64}},
            f"kernel file mine.py was {'1' * 12}, is {'2' * 12}",
            id="kernel file",
        ),
    ],
)
def test_what_changed_is_named_beside_what_it_slowed_down_every_night(
    results: Path, night: Night, was: dict[str, Any], now: dict[str, Any], change: str, nights_before: int
) -> None:
    def described(facts: dict[str, Any]) -> dict[str, Any]:
        of_run: dict[str, Any] = {name: facts[name] for name in ("versions", "git", "code", "kernels") if name in facts}
        return {**of_run, "devices": [{**H200, **{name: facts[name] for name in facts if name not in of_run}}]}

    for day in range(1, nights_before + 1):
        night(day, **described(was))
    asked = f"last:{nights_before}"
    for day in range(nights_before + 1, nights_before + (2 if nights_before == 1 else 4)):
        slower = night(day, {**TIMES, "copyGmem": 1.3}, **described(now))
        lines = results.parent / "night.jsonl"
        code, printed = finished(Nightly(compare_to=asked, json_lines=lines), results, slower)
        assert (code, "copyGmem 32x32 4096x4096; possible cause: " in printed) == (3, True), printed
        assert change in " ".join(printed.split())
        (line,) = (line for line in (slower / SUMMARY).read_text().splitlines() if "possible cause" in line)
        assert change in line
        ((causes),) = json.loads(lines.read_text().splitlines()[-1])["compared"][0]["causes"].values()
        assert any(cause.endswith(change) for cause in causes)


def test_only_what_no_run_at_the_level_had_is_a_cause(results: Path, night: Night) -> None:
    for day, driver in enumerate(("580", "580", "590", "590"), 1):
        night(day, devices=[{**H200, "driver": driver}])
    slower = night(5, {**TIMES, "copyGmem": 1.3}, devices=[{**H200, "driver": "590"}])
    code, printed = finished(Nightly(compare_to="last:4"), results, slower)
    assert (code, "nothing that is recorded changed" in printed) == (3, True), printed


def test_a_lower_clock_limit_is_why_a_case_is_slower_and_no_reason_to_doubt_it(results: Path, night: Night) -> None:
    """With one run before it, nothing tells what lies between runs, and in cycles the case is the same."""
    before = load(night(1, devices=[{**H200, "sm_clock_max_mhz": 1980}]))
    new = load(night(2, {name: 1.3 * ms for name, ms in TIMES.items()}, devices=[{**H200, "sm_clock_max_mhz": 1523}]))
    clocked = [
        replace(run, rows=[replace(row, sm_clock_mhz=clock) for row in run.rows])
        for run, clock in ((before, 1980), (new, 1523))
    ]
    result = compare_with_last(clocked[:1], clocked[1], 1, Rules())
    assert len(result.regressions) == 2
    assert str(result.regressions[0].causes[0]) == "cuda:0 SM clock limit in MHz was 1980, is 1523"


@pytest.mark.filterwarnings("ignore::smembench.model.errors.Dropped")
@pytest.mark.parametrize(
    ("before", "message"),
    [
        pytest.param({"devices": [{**H200, "uuid": None}]}, "without the device", id="no identity"),
        pytest.param({"devices": [{**H200, "uuid": "GPU-2"}]}, "of other devices", id="another GPU"),
        pytest.param({"started_at_utc": "2099-01-01T00:00:00+00:00"}, "after now", id="a wrong clock"),
        pytest.param({"complete": False}, "not complete", id="unfinished"),
        pytest.param({"new": [{**H200, "uuid": None}]}, "does not say on which device", id="no identity of its own"),
        pytest.param("run.json", "damaged", id="a damaged run.json"),
        pytest.param("cases.csv", "not compared", id="a damaged cases.csv"),
    ],
)
def test_earlier_runs_of_which_none_can_be_compared_are_no_success(
    results: Path, night: Night, before: dict[str, Any] | str, message: str
) -> None:
    described = dict(before) if isinstance(before, dict) else {}
    devices = described.pop("new", [H200])
    for day in range(1, 4):
        folder = night(day, **described)
        if isinstance(before, str):
            (folder / before).write_text("x")
    metrics = results.parent / "night.prom"
    options = Nightly(compare_to="last:3", openmetrics=metrics, keep=1)
    code, printed = finished(options, results, night(4, devices=devices))
    assert (code, message in " ".join(printed.split()), f"removed {results}" in printed) == (5, True, False), printed
    assert 'smembench_run_exit_code{config="nightly"} 5.0' in metrics.read_text()
    failed = night(5, {**TIMES, "copyGmem": None}, devices=devices)
    assert finished(options, results, failed)[0] == 1  # a failed case is not hidden


def test_a_night_whose_cases_are_all_accepted_has_nothing_to_be_compared_with_and_is_a_success(
    results: Path, night: Night
) -> None:
    night(1)
    accept(night(2, {"copyGmem": 1.3, "transposeSmem": 2.6}), "*", "as agreed")
    code, printed = finished(Nightly(compare_to="last:3"), results, results / "20260102T020000Z-nightly")
    assert (code, "accepted from this run on, 2 cases" in printed) == (0, True), printed


def test_a_change_that_cannot_be_judged_tonight_is_not_forgotten(results: Path, night: Night) -> None:
    for day in range(1, 6):
        night(day)
    night(6, {**TIMES, "copyGmem": 1.3})
    code, printed = finished(Nightly(compare_to="last:3"), results, night(7, {**TIMES, "copyGmem": None}))
    assert code == 1
    assert "1 of 2 cases compared, without 1 that changed before" in " ".join(printed.split())
