"""The lessons on a real GPU: what has to hold does, and what the documents say of mistakes is found or explained."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from smembench.devices.cuda_description import why_unusable
from smembench.studies.lesson import LESSONS
from smembench.studies.lesson.experiment import load
from smembench.studies.lesson.run import isolated

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(bool(why_unusable()), reason=str(why_unusable()))]

ROWS = [
    (name, number)
    for name in LESSONS
    for number, experiment in enumerate(load(name).experiments)
    if experiment.needs != "nothing"
]


@pytest.mark.untimed
@pytest.mark.parametrize(("name", "number"), ROWS)
def test_every_row_is_as_expected_or_explained(name: str, number: int) -> None:
    result = isolated(name, number, "cuda:0", 10)
    assert result.as_expected or load(name).experiments[number].unless, result.text
    assert "Error" not in result.text


@pytest.mark.untimed
def test_a_missing_barrier_is_seen() -> None:
    assert isolated("barrier", 1, "cuda:0", 10).as_expected


def test_the_command_names_the_gpu() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "smembench", "lesson", "symbols", "--json"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    result = json.loads(run.stdout)
    assert (result["device"]["name"], bool(result["device"]["model"])) == ("cuda:0", True)
    assert [row["as_expected"] for row in result["rows"]] == [True] * 5
