"""What is said while a run goes on: rounds that are over, and the first times of a slow run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from smembench.model.case import Block, Case
from smembench.model.measurement import Status, Trial
from smembench.views.run import Rounds, first_times
from smembench.views.sections import Section
from smembench.views.table import drawn

CASES = [
    Case("matmul", "naive", "cpu", "float32", 1024, 1024, 1024, Block(16, 16)),
    Case("matmul", "cpu", "cpu", "float32", 1024, 1024, 1024),
]
MANY = [replace(CASES[1], n=n) for n in range(21)]


def trials(round_: int, seconds: float, cases: Sequence[Case] = CASES) -> list[Trial]:
    return [Trial(case, round_, Status.OK, "now", samples=(4321.5, 4400.0), seconds=seconds) for case in cases]


def replay(*rounds: list[Trial]) -> tuple[list[str], list[Section]]:
    """The lines and the tables of a run of these rounds, each trial of which takes ten seconds."""
    lines: list[str] = []
    tables: list[Section] = []
    now = 0.0
    saying = Rounds(lines.append, tables.append, lambda: now)
    for trial in (trial for round_ in rounds for trial in round_):
        saying.begin(trial.case)
        now += 10
        saying.add(trial)
    saying.end()
    saying.begin(CASES[0])  # of the prediction, which is no round
    return lines, tables


def test_the_times_of_a_slow_first_round_are_shown_once_before_the_others() -> None:
    lines, tables = replay(trials(0, 6), trials(1, 6), trials(2, 6, CASES[1:]))
    assert lines == ["round 1 done after 20 s", "round 2 done after 40 s"]
    (shown,) = tables
    assert shown.heading.startswith("times of the first round, after 20 s; their intervals come")
    assert "4360" in drawn([shown])
    assert "±" not in drawn([shown])


def test_rounds_of_a_run_that_was_resumed_within_one_are_over_once() -> None:
    lines, _ = replay(trials(1, 6, CASES[:1]), trials(2, 6, CASES[::-1]), trials(3, 6))
    assert [line.split(" after ")[0] for line in lines] == ["round 2 done", "round 3 done"]


@pytest.mark.parametrize(
    "rounds",
    [
        [trials(0, 4), trials(1, 40)],  # a short first round
        [trials(1, 60), trials(2, 60)],  # resumed
        [trials(0, 60)],  # the only round
        [trials(0, 60, MANY), trials(1, 60)],  # too many cases
    ],
    ids=["short", "resumed", "only", "many"],
)
def test_other_rounds_have_no_table_before_the_last(rounds: list[list[Trial]]) -> None:
    assert replay(*rounds)[1] == []


def test_a_case_without_samples_says_why_in_the_table_of_the_first_round() -> None:
    shown = first_times([*trials(0, 6), Trial(CASES[0], 0, Status.SKIPPED, "now", "too long")], "8 s")
    assert [(line[0], line[-1]) for line in shown.cells] == [("cpu", "4360"), ("naive", "4360"), ("naive", "skipped")]
