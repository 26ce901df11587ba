"""A run.json or a journal that does not describe a run ends in one line, whatever it holds instead."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from smembench.explain.prediction import predictor
from smembench.model.device import DeviceInfo
from smembench.model.errors import UsageError
from smembench.store.load import load
from smembench.store.run_folder import JOURNAL, RUN, read_description, to_json

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
    run = read_description(folder)
    assert to_json(run.data) == (folder / RUN).read_text()
    assert run.complete is not None
    assert {device.name for device in run.devices} in ({"cuda:0"}, {"cuda:0", "cpu"}, {"cuda:1"})


@pytest.mark.parametrize(
    ("run", "fault"),
    [
        ([], "it should be an object, not []"),
        (None, "it should be an object, not None"),
        ({"run_id": 5}, "run_id: should be a string, not 5"),
        ({"started_at_utc": None}, "started_at_utc: should be a string, not None"),
        ({"started_at_utc": "yesterday"}, "started_at_utc: should be a time"),
        ({"seed": {"a": 1}}, "seed: should be a whole number"),
        ({"schema_version": 0}, "schema_version: should be 1"),
        ({"versions": ["numba"]}, "versions: should be an object, not ['numba']"),
        ({"host": "node1"}, "host: should be an object, not 'node1'"),
        ({"git": [1]}, "git: should be an object, not [1]"),
        ({"config": "nightly"}, "config: should be an object, not 'nightly'"),
        ({"config": {"name": ["nightly"]}}, "config.name: should be a string, not ['nightly']"),
        ({"config": {"sweep": None}}, "config.sweep: should be a list, not None"),
        ({"devices": None}, "devices: should be a list, not None"),
        ({"devices": {"cpu": 1}}, "devices: should be a list, not {'cpu': 1}"),
        ({"devices": ["cpu"]}, "devices[0]: should be an object, not 'cpu'"),
        ({"devices": [{"name": "cpu"}, {}]}, "devices[1].name is missing"),
        ({"devices": [{"name": ["cpu"]}]}, "devices[0].name: should be a string, not ['cpu']"),
        ({"devices": [{"name": "cpu", "driver": [1]}]}, "devices[0].driver: should be a string, not [1]"),
        (
            {"devices": [{"name": "cuda:0", "peak_gb_s": "fast"}]},
            "devices[0].peak_gb_s: should be a number, not 'fast'",
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, run: object, fault: str) -> None:
    (tmp_path / RUN).write_text(json.dumps(run))
    with pytest.raises(UsageError) as caught:
        read_description(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path / RUN}: damaged: {fault}")


def test_a_file_of_a_later_version_is_not_damaged(tmp_path: Path) -> None:
    (tmp_path / RUN).write_text('{"run_id": 5, "schema_version": 2}')
    with pytest.raises(UsageError, match="schema version 2, of a newer smembench than this: update it") as caught:
        read_description(tmp_path)
    assert "damaged" not in str(caught.value)


def test_what_an_editor_puts_before_the_text_is_no_damage(tmp_path: Path) -> None:
    (tmp_path / RUN).write_text(json.dumps(HEAD), encoding="utf-8-sig")
    assert read_description(tmp_path).run_id == HEAD["run_id"]


def test_nesting_without_end_is_no_traceback(tmp_path: Path) -> None:
    (tmp_path / RUN).write_text("[" * 100_000)
    with pytest.raises(UsageError, match="damaged: it is not JSON"):
        read_description(tmp_path)


@pytest.mark.parametrize(
    "run",
    [
        {},
        {"git": None, "host": None},
        {"devices": []},
        {"config": {}},
        {"extra": [1]},
        {"devices": [{"name": "cuda:0", "colour": "green"}]},
    ],
)
def test_what_is_left_out_is_no_fault(tmp_path: Path, run: dict[str, Any]) -> None:
    (tmp_path / RUN).write_text(json.dumps(run))
    assert read_description(tmp_path).data == run


def test_what_a_device_is_follows_from_its_name() -> None:
    device = DeviceInfo.model_validate({"name": "cuda:0", "peak_gb_s": 4814})
    assert (device.kind, device.model, device.peak_gb_s) == ("cuda", "cuda:0", 4814)
    assert device.known == {"name": "cuda:0", "peak_gb_s": 4814}


@pytest.mark.parametrize(
    ("head", "trials", "fault"),
    [
        ([], [], "line 1: damaged: run: should be an object, not []"),
        ({**HEAD, "devices": None}, [], "line 1: damaged: run.devices: should be a list, not None"),
        ({key: value for key, value in HEAD.items() if key != "seed"}, [], "line 1: damaged: it has no seed"),
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
        load(tmp_path, predictor)
    assert fault in str(caught.value)
    assert str(tmp_path / JOURNAL) in str(caught.value)


def test_a_whole_journal_is_read(tmp_path: Path) -> None:
    (tmp_path / JOURNAL).write_text("".join(f"{json.dumps(line)}\n" for line in ({"run": HEAD}, {"visit": TRIAL})))
    stored = load(tmp_path)
    assert (stored.description.data, stored.complete, [row.status for row in stored.rows]) == (HEAD, False, ["ok"])
