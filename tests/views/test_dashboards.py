"""Runs in the formats of dashboards."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median
from typing import Any

import pytest

from smembench.model.device import DeviceInfo
from smembench.model.errors import UsageError
from smembench.store.load import load
from smembench.store.run import Run
from smembench.store.schema import Row
from smembench.views.export import of_run
from smembench.views.sections import subject

Rows = Callable[..., list[Row]]


@pytest.fixture
def run(rows: Rows) -> Run:
    """Two cases, one of them without a time, and samples of two rounds."""
    copy, naive = rows({"copyGmem": [2.0] * 3, "naiveGmem": []})
    copy = replace(copy, uncertainty=0.01, samples=4)
    return Run([copy, naive], samples={copy.case_id: {0: [2.0, 2.2, 1.8], 1: [2.4]}})


def exported(run: Run, form: str) -> Any:
    return json.loads(of_run(run, []).text(form))


def test_google_benchmark_has_a_repetition_per_round(run: Run) -> None:
    result = exported(run, "gbench")
    assert {"context", "benchmarks"} == {*result}
    assert result["context"]["date"] == run.began.isoformat()
    undated = exported(replace(run, rows=[replace(run.rows[0], started_at_utc="")]), "gbench")
    assert "date" not in undated["context"]
    named = run.rows[0].case_id
    assert [(item["run_name"], item["repetition_index"], item["iterations"]) for item in result["benchmarks"]] == [
        (named, 0, 3),
        (named, 1, 1),
    ]
    assert [item["real_time"] for item in result["benchmarks"]] == [1e6 * median([2.0, 2.2, 1.8]), 2.4e6]
    assert {item["time_unit"] for item in result["benchmarks"]} == {"ns"}
    (only,) = exported(replace(run, samples={}), "gbench")["benchmarks"]
    assert (only["real_time"], only["repetitions"], only["iterations"]) == (2e6, 1, run.rows[0].samples)


def test_smaller_is_better_has_medians_with_their_interval(run: Run) -> None:
    (result,) = exported(run, "smaller")
    assert (result["name"], result["unit"], result["value"], result["range"]) == (
        run.rows[0].case_id,
        "µs",
        2000.0,
        "± 20",
    )


def test_bencher_has_latency_in_ns_between_its_ends(run: Run) -> None:
    (result,) = exported(run, "bmf").items()
    latency = result[1]["latency"]
    assert result[0] == run.rows[0].case_id
    assert (latency["value"], latency["lower_value"], latency["upper_value"]) == pytest.approx((2e6, 1.98e6, 2.02e6))
    wide = replace(run, rows=[replace(run.rows[0], uncertainty=1.5)])
    (result,) = exported(wide, "bmf").values()
    assert (result["latency"]["lower_value"], result["latency"]["upper_value"]) == pytest.approx((0, 5e6))
    bare = replace(run, rows=[replace(run.rows[0], uncertainty=None, precision=None)])
    assert {*next(iter(exported(bare, "bmf").values()))["latency"]} == {"value"}


def test_nvbench_has_a_state_per_gpu_case_and_is_read_back(run: Run, tmp_path: Path) -> None:
    described = run.description.model_copy(update={"devices": [DeviceInfo(name="cuda:0", compute_capability="9.0")]})
    file = tmp_path / "run.nvbench.json"
    file.write_text(of_run(replace(run, description=described), []).text("nvbench"))
    (bench,) = json.loads(file.read_text())["benchmarks"]
    (state,) = bench["states"]
    row, back = run.rows[0], load(file)
    assert bench["name"] == row.case_id.replace("/cuda:0/", "/")
    values = {item["tag"]: item["data"][0]["value"] for item in state["summaries"]}
    assert float(values["nv/cold/time/gpu/mean"]) == pytest.approx(fmean([2.0, 2.2, 1.8, 2.4]) / 1e3)
    assert [(item.elapsed_ms, item.samples, item.bytes) for item in back.rows] == [(2.0, 4, row.bytes)]
    assert (back.rows[0].cache, subject(back.rows[0])) == ("warm", "user kernels · warm cache")
    file.write_text(of_run(replace(run, description=described, samples={}), []).text("nvbench"))
    assert [item.samples for item in load(file).rows] == [row.samples]
    device = back.description.device("cuda:0")
    assert device is not None
    assert device.compute_capability == "9.0"


def test_nvbench_takes_no_run_without_a_gpu(run: Run) -> None:
    with pytest.raises(UsageError, match="NVBench's JSON has times of a GPU only"):
        exported(replace(run, rows=[replace(run.rows[0], device="cpu")]), "nvbench")
