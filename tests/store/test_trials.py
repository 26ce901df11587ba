"""A trial in the journal and on the screen."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from smembench.model.case import Block, Case
from smembench.model.measurement import Conditions, Status, Trial
from smembench.store.journal import Journal, read
from smembench.store.run_json import Description
from smembench.views.run import trial_line

TRIAL = Trial(
    Case("matmul", "tiled", "cuda:0", "float32", 30, 40, 50, Block(16, 16), stride=64),
    1,
    Status.OK,
    "2026-01-01T00:00:00+00:00",
    verified=True,
    max_error=1e-7,
    samples=(1.5, 2.5),
    discarded=3,
    discarded_ms=(9.0, 8.0, 7.0),
    seconds=0.25,
    conditions=Conditions(sm_clock_mhz=1980, throttle_reasons="none"),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A journal with one trial."""
    path = tmp_path / "journal.jsonl"
    head = {"run_id": "x", "seed": 1, "config": {"name": "x", "samples": 3}, "git": None, "devices": []}
    writer = Journal.create(path, Description.model_validate(head))
    writer.append(TRIAL)
    writer.close()
    return path


def changed(path: Path, **values: Any) -> None:
    """Change the trial in a journal; None takes a value out."""
    head, line = map(json.loads, path.read_text().splitlines())
    del head["crc32"], line["crc32"]  # as older versions wrote them
    line["visit"] = {name: value for name, value in (line["visit"] | values).items() if value is not None}
    path.write_text(f"{json.dumps(head)}\n{json.dumps(line)}\n")


def test_the_journal_keeps_everything_of_a_trial(path: Path) -> None:
    assert read(path).trials == [TRIAL]


def test_a_case_without_parameters_is_written_as_it_was_before_there_were_any(path: Path) -> None:
    assert "parameters" not in path.read_text()
    writer, _ = Journal.reopen(path)
    writer.append(replace(TRIAL, case=replace(TRIAL.case, parameters=(("items", 4),))))
    writer.close()
    assert read(path).trials[1].case.parameter("items") == 4


def test_a_journal_from_before_discarded_samples_were_kept_is_readable(path: Path) -> None:
    older = {name: getattr(TRIAL.case, name) for name in TRIAL.case.__slots__ if name != "stride"}
    changed(path, discarded_ms=None, case=older, resources={"registers": None, "local_bytes": None}, conditions={})
    (result,) = read(path).trials
    assert (result.discarded, result.discarded_ms, result.case.stride) == (3, (), None)
    assert result.case.block == Block(16, 16)


def test_a_journal_goes_on_where_an_error_is_infinite_and_a_field_is_of_another_version(path: Path) -> None:
    changed(path, max_error=float("inf"), colour="blue")
    writer, contents = Journal.reopen(path)
    assert contents.trials[0].max_error == float("inf")
    again = replace(contents.trials[0], round=2)
    writer.append(again)
    writer.close()
    assert read(path).trials == [*contents.trials, again]


def test_a_line_lists_discarded_samples_after_those_kept() -> None:
    line = trial_line(TRIAL)
    assert line.startswith(f"round 2 {TRIAL.case.id}: 2 samples of 2.00000 ms")
    assert "3 discarded, 0.25 s, SM 1980 MHz" in line
    assert line.endswith(": 1.50000 2.50000; discarded: 9.00000 8.00000 7.00000")
    assert trial_line(Trial(TRIAL.case, 0, Status.OK, "", samples=(1.0,))).endswith(": 1.00000")
