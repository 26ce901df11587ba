"""A run.json or a journal that does not describe a run ends in one line, whatever it holds instead."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from smembench.model.device import DeviceInfo
from smembench.model.errors import UsageError
from smembench.store.run_folder import JOURNAL, RUN, read_run
from smembench.studies.load import load

REFERENCE = Path(__file__).parents[2] / "results/reference"
CASE = {"problem": "transpose", "kernel": "memcpy", "device": "cpu", "dtype": "float32", "m": 8, "n": 8, "k": None}
TRIAL = {
    "case": CASE,
    "round": 0,
    "status": "ok",
    "started_at_utc": "2026-01-01T00:00:00+00:00",
    "samples": [1.0],
    "conditions": {},
}
HEAD: dict[str, Any] = {
    "run_id": "20260101T000000Z-tiny",
    "seed": 1,
    "config": {"name": "tiny", "sweep": [{"problem": "transpose"}]},
    "devices": [{"name": "cpu", "kind": "cpu"}],
}


@pytest.mark.parametrize(
    "folder", sorted(path.parent for path in REFERENCE.rglob("run.json")), ids=lambda path: path.name
)
def test_what_a_run_wrote_is_no_fault(folder: Path) -> None:
    run = read_run(folder)
    assert run["complete"]
    first, *others = (DeviceInfo.from_dict(device).name for device in run["devices"])
    assert first == "cuda:0"
    assert others in ([], ["cpu"])


@pytest.mark.parametrize(
    ("run", "fault"),
    [
        ([], "it is not an object"),
        (None, "it is not an object"),
        ({"run_id": 5}, "run_id is not text"),
        ({"started_at_utc": None}, "started_at_utc is not text"),
        ({"versions": ["numba"]}, "versions is not an object"),
        ({"host": "node1"}, "host is not an object"),
        ({"git": [1]}, "git is not an object"),
        ({"config": "nightly"}, "config is not an object"),
        ({"config": {"name": ["nightly"]}}, "config.name is not text"),
        ({"config": {"sweep": None}}, "config.sweep is not a list"),
        ({"devices": None}, "devices is not a list"),
        ({"devices": {"cpu": 1}}, "devices is not a list"),
        ({"devices": ["cpu"]}, "devices[0] is not an object with a name"),
        ({"devices": [{"name": "cpu"}, {}]}, "devices[1] is not an object with a name"),
        ({"devices": [{"name": ["cpu"]}]}, "devices[0].name is not text"),
        ({"devices": [{"name": "cpu", "driver": [1]}]}, "devices[0].driver is not one value"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, run: object, fault: str) -> None:
    (tmp_path / RUN).write_text(json.dumps(run))
    with pytest.raises(UsageError) as caught:
        read_run(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path / RUN}: damaged: {fault}; ")


def test_nesting_without_end_is_no_traceback(tmp_path: Path) -> None:
    (tmp_path / RUN).write_text("[" * 100_000)
    with pytest.raises(UsageError, match="cannot be read"):
        read_run(tmp_path)


@pytest.mark.parametrize("run", [{}, {"git": None, "host": None}, {"devices": []}, {"config": {}}, {"extra": [1]}])
def test_what_is_left_out_is_no_fault(tmp_path: Path, run: dict[str, Any]) -> None:
    (tmp_path / RUN).write_text(json.dumps(run))
    assert read_run(tmp_path) == run


def test_a_device_of_wrong_types_is_named() -> None:
    with pytest.raises(UsageError, match="the device cuda:0 has the peak_gb_s 'fast'"):
        DeviceInfo.from_dict({"name": "cuda:0", "peak_gb_s": "fast"})
    assert DeviceInfo.from_dict({"name": "cuda:0", "peak_gb_s": 4814}).kind == "cuda"


@pytest.mark.parametrize(
    ("head", "trials", "fault"),
    [
        ([], [], "line 1: damaged: it is not an object"),
        ({**HEAD, "devices": None}, [], "line 1: damaged: devices is not a list"),
        ({key: value for key, value in HEAD.items() if key != "seed"}, [], "line 1: damaged: it has no seed"),
        (HEAD, [[]], "line 2: damaged"),
        (HEAD, [{**TRIAL, "case": {**CASE, "problem": "sort"}}], "holds a trial that cannot be read here"),
        (HEAD, [{**TRIAL, "case": {**CASE, "kernel": "somebodysOwn"}}], "no cpu kernel 'somebodysOwn' for transpose"),
        ({**HEAD, "devices": []}, [TRIAL], "holds a trial that cannot be read here"),
    ],
)
def test_a_journal_that_cannot_be_read_back_is_one_line(
    tmp_path: Path, head: object, trials: list[object], fault: str
) -> None:
    lines = [{"run": head}, *({"visit": trial} for trial in trials)]
    (tmp_path / JOURNAL).write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    with pytest.raises(UsageError) as caught:
        load(tmp_path)
    assert fault in str(caught.value)
    assert str(tmp_path / JOURNAL) in str(caught.value)


def test_a_whole_journal_is_read(tmp_path: Path) -> None:
    (tmp_path / JOURNAL).write_text("".join(f"{json.dumps(line)}\n" for line in ({"run": HEAD}, {"visit": TRIAL})))
    stored = load(tmp_path)
    assert (stored.run, stored.complete, [row.status for row in stored.rows]) == (HEAD, False, ["ok"])
