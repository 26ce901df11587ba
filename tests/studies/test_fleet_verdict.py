"""The verdict on a fleet: who is named, with what, and what is said to be unknown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from smembench.model.device import DeviceInfo
from smembench.model.errors import REGRESSION
from smembench.store.run import Run
from smembench.studies.fleet.judge import judge
from smembench.studies.fleet.members import Fleet, Member, metric
from smembench.studies.fleet.verdict import Against
from smembench.studies.load import load

STORED = Path(__file__).parents[2] / "results/reference/20261120T175739Z-quick-aa/20261120T175742Z-quick-1"


@pytest.fixture(scope="module")
def stored() -> Run:
    """One GPU's run, of which the tests make fleets."""
    run = load(STORED)
    return run.only([row for row in run.rows if row.ok and row.device == "cuda:0"])


def member(stored: Run, number: int, slow: Mapping[str, float] | float = 0.0, model: str = "NVIDIA H200") -> Member:
    """A GPU like the stored one within 0.1 %, slower by a fraction in all metrics or in some."""
    rng = np.random.default_rng(number)
    by = {
        row.case_id: 1 + (slow if isinstance(slow, float) else slow.get(metric(row), 0.0)) + rng.normal(0, 0.001)
        for row in stored.rows
    }
    samples = {
        case: {turn: [value * by[case] for value in values] for turn, values in rounds.items()}
        for case, rounds in stored.samples.items()
        if case in by
    }
    rows = [replace(row, elapsed_ms=(row.elapsed_ms or 0) * by[row.case_id]) for row in stored.rows]
    info = DeviceInfo(name="cuda:0", model=model, uuid=f"GPU-{number}")
    return Member(f"node{number}", "cuda:0", info, replace(stored, rows=rows, samples=samples))


def fleet(members: Sequence[Member]) -> Fleet:
    return Fleet(Path("fleet"), members)


def test_the_slow_one_is_named_with_its_metric(stored: Run) -> None:
    name = metric(max(stored.rows, key=lambda row: row.elapsed_ms or 0))
    found = judge(fleet([member(stored, number, {name: 0.05} if number == 3 else 0.0) for number in range(64)]))
    (slow,) = found.slow
    assert (slow.member.host, slow.reasons[0].metric, slow.reasons[0].against) == ("node3", name, Against.FLEET)
    assert slow.reasons[0].distance.size == pytest.approx(0.05, abs=0.01)
    assert found.exit_code == REGRESSION


def test_a_fleet_in_which_nothing_is_slow_is_quiet(stored: Run) -> None:
    found = judge(fleet([member(stored, number) for number in range(16)]))
    assert not found.slow
    assert found.exit_code == 0
    (group,) = found.groups
    assert len(group.members) == 16
    assert {one.name for one in group.metrics} == {metric(row) for row in stored.rows}


def test_models_are_groups_of_their_own(stored: Run) -> None:
    found = judge(fleet([member(stored, number, 0.3 * (number % 2), f"model {number % 2}") for number in range(12)]))
    assert [(group.model, len(group.members)) for group in found.groups] == [("model 0", 6), ("model 1", 6)]
    assert not found.slow


def test_a_member_without_figures_is_named(stored: Run) -> None:
    lost = Member("node9", "cuda:1", None, None, "the GPU fell off the bus")
    found = judge(fleet([*(member(stored, number) for number in range(8)), lost]))
    assert found.unknown[0] == "node9 cuda:1: the GPU fell off the bus"
    assert found.exit_code == 1
