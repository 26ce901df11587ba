"""NVBench's JSON as a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smembench.model.errors import Dropped, UsageError
from smembench.store.load import load
from smembench.store.nvbench import read_nvbench
from smembench.studies.compare.comparison import compare_runs
from smembench.studies.compare.verdicts import Verdict


def summary(tag: str, **values: object) -> dict[str, Any]:
    return {"tag": tag, "data": [{"name": name, "type": "any", "value": str(value)} for name, value in values.items()]}


def state(seconds: float, *more: dict[str, Any], **axes: object) -> dict[str, Any]:
    gpu = "nv/cold/time/gpu/"
    values = {f"{gpu}mean": seconds, f"{gpu}stdev/relative": 0.01, "nv/cold/sample_size": 400}
    named = [{"name": name, "type": "any", "value": str(value)} for name, value in axes.items()]
    summaries = [*(summary(tag, value=value) for tag, value in values.items()), *more]
    return {"name": "", "device": 0, "axis_values": named or None, "summaries": summaries, "is_skipped": False}


def written(path: Path, *states: dict[str, Any]) -> Path:
    device = {"id": 0, "name": "Quadro GV100", "sm_version": 700, "number_of_sms": 80}
    path.write_text(json.dumps({"devices": [device], "benchmarks": [{"name": "copy", "states": states}]}))
    return path


def test_summaries_are_read_where_there_are_no_samples(tmp_path: Path) -> None:
    rate = summary("nv/cold/bw/global/bytes_per_second", value=5e11)
    skipped = {**state(1.0, T="I8"), "is_skipped": True, "skip_reason": "no type", "summaries": None}
    run = load(written(tmp_path / "a.json", state(1e-3, rate, Elements=4096, T="U8"), skipped))
    done, other = run.rows
    assert (done.kernel, done.parameters) == ("copy[T=U8]", (("Elements", 4096),))
    assert (done.device, done.cache) == ("cuda:0", "cold")
    assert (done.elapsed_ms, done.samples, done.bytes) == (1.0, 400, 500_000_000)
    assert done.interval == pytest.approx(1.96 * 0.01 / 20)
    assert (other.status, other.reason, run.samples) == ("skipped", "no type", {})
    assert [(item.model, item.compute_capability) for item in run.description.devices] == [("Quadro GV100", "7.0")]


def test_samples_are_read_from_the_file_that_the_json_names(tmp_path: Path) -> None:
    times = summary("nv/json/bin:nv/cold/sample_times", filename="elsewhere/a.json-bin/0.bin", size=4)
    file = written(tmp_path / "a.json", state(9.0, times))
    with pytest.warns(Dropped, match="has not all samples"):
        assert read_nvbench(file).rows[0].elapsed_ms == pytest.approx(9000.0)
    (tmp_path / "a.json-bin").mkdir()
    (tmp_path / "a.json-bin/0.bin").write_bytes(np.array([2e-3, 3e-3, 4e-3, 3e-3], "<f4").tobytes())
    run = read_nvbench(file)
    assert run.rows[0].elapsed_ms == pytest.approx(3.0)
    assert run.values(run.rows[0].case_id) == pytest.approx([2, 3, 4, 3])
    (tmp_path / "a.json-bin/0.bin").write_bytes(bytes(16))
    with pytest.raises(UsageError, match=r"holds 0 times, and .* says 4"):
        read_nvbench(file)


def test_a_case_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    """Both states had the samples of the last."""
    file = written(tmp_path / "a.json", state(1e-3, N=1024), state(2e-3, N=2048), state(4e-3, N=1024))
    with pytest.raises(UsageError) as caught:
        read_nvbench(file)
    case = "time/copy/cuda:0/nvbench/none/1x1/N=1024/cold"
    assert str(caught.value) == f"{file}: {case} is there 2 times; give each measurement a file of its own"


def test_two_files_per_side_are_compared(tmp_path: Path) -> None:
    base, new = (
        [load(written(tmp_path / f"{time}.json", *(state(time * n, n=n) for n in (1, 2, 3)))) for time in times]
        for times in ((1.0, 1.002), (1.1, 1.102))
    )
    result = compare_runs(base, new, across=("device",))
    assert result.counts[Verdict.SLOWER] == 3


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('{"run_id": "a"}', ": not NVBench's JSON"),
        ("[]", ": not NVBench's JSON"),
        ('{"run": {}, "cases": []}', ": the JSON that --export writes of a run"),
        ('{"context": {}, "benchmarks": [{"name": "a", "real_time": 1.0}]}', ": Google Benchmark's JSON"),
        ("[", ": damaged: it is not JSON"),
        ('{"benchmarks": [{"states": []}]}', ": damaged: benchmarks[0].name is missing"),
    ],
)
def test_other_json_is_refused_with_what_it_is_and_the_way_out(tmp_path: Path, text: str, what: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(UsageError) as caught:
        load(tmp_path / "a.json")
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'a.json'}{what}")
    assert message.endswith("; give a run's folder, a cases.csv or NVBench's JSON")
