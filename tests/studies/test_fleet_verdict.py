"""The verdict on a fleet: who is named, with what, and what is said to be unknown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fleets import CALM, Special, made_fleet
from smembench.model.device import DeviceInfo
from smembench.model.errors import REGRESSION, UsageError
from smembench.store.load import load
from smembench.store.run import Run
from smembench.studies.fleet.judge import judge
from smembench.studies.fleet.members import Fleet, Member, metric
from smembench.studies.fleet.verdict import Against, Rules

STORED = Path(__file__).parents[2] / "results/reference/slowdown/20261122T220537Z-slowdown"


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
    result = judge(fleet([member(stored, number, {name: 0.05} if number == 3 else 0.0) for number in range(64)]))
    (slow,) = result.slow
    assert (slow.member.host, slow.reasons[0].metric, slow.reasons[0].against) == ("node3", name, Against.FLEET)
    assert slow.reasons[0].distance.size == pytest.approx(0.05, abs=0.01)
    assert result.exit_code == REGRESSION


def test_a_fleet_in_which_nothing_is_slow_is_quiet(stored: Run) -> None:
    result = judge(fleet([member(stored, number) for number in range(16)]))
    assert not result.slow
    assert result.exit_code == 0
    (group,) = result.groups
    assert len(group.members) == 16
    assert {one.name for one in group.metrics} == {metric(row) for row in stored.rows}


def test_models_are_groups_of_their_own(stored: Run) -> None:
    result = judge(fleet([member(stored, number, 0.3 * (number % 2), f"model {number % 2}") for number in range(12)]))
    assert [(group.model, len(group.members)) for group in result.groups] == [("model 0", 6), ("model 1", 6)]
    assert not result.slow


def test_a_member_without_figures_is_named(stored: Run) -> None:
    lost = Member("node9", "cuda:1", None, None, "the GPU fell off the bus")
    result = judge(fleet([*(member(stored, number) for number in range(8)), lost]))
    assert result.unknown[0] == "node9 cuda:1: the GPU fell off the bus"
    assert result.exit_code == 1


def test_a_member_whose_figures_do_not_count_is_told_why(stored: Run) -> None:
    crowded = member(stored, 8)
    assert crowded.run
    rows = [replace(row, cpu_waiting=0.6) for row in crowded.run.rows]
    crowded = replace(crowded, run=replace(crowded.run, rows=rows))
    result = judge(fleet([*(member(stored, number) for number in range(8)), crowded]))
    reason = "node8 cuda:0: none of its figures can be used: measured on a busy host (threads waited for cores)"
    assert result.unknown[0] == reason


def test_of_one_round_the_interval_of_its_samples_is_the_noise(stored: Run) -> None:
    """Fifteen percent slower, within what twenty percent of noise allow."""
    members = [member(stored, number, 0.15 * (number == 0)) for number in range(8)]
    result = judge(fleet([_one_round(one, 0.2 if place == 0 else 0.002) for place, one in enumerate(members)]))
    assert not result.slow
    assert judge(fleet([_one_round(one, 0.002) for one in members])).slow


def _one_round(one: Member, precision: float) -> Member:
    assert one.run
    samples = {case: dict(list(rounds.items())[:1]) for case, rounds in one.run.samples.items()}
    rows = [replace(row, precision=precision) for row in one.run.rows]
    return replace(one, run=replace(one.run, rows=rows, samples=samples))


def test_of_two_that_differ_neither_is_named() -> None:
    result = judge(made_fleet(2, {1: Special(slow=0.04)}))
    assert not result.slow
    assert result.exit_code == 0
    (sentence,) = result.unknown
    assert sentence.startswith("node0 cuda:1 is 4.")
    assert "earlier runs of both would show which is normal" in sentence


def test_two_that_cannot_be_told_apart_may_both_be_slow() -> None:
    assert judge(made_fleet(2)).unknown == [
        "node0 cuda:0 and node0 cuda:1 cannot be told apart: both may be slow; earlier runs or a third device would "
        "show it"
    ]


def test_of_two_one_that_was_cut_off_is_not_compared() -> None:
    whole = made_fleet(2)
    cut = replace(whole, members=[whole.members[0], replace(whole.members[1], reason="interrupted")])
    result = judge(cut)
    assert (result.unknown, result.exit_code) == ([], 1)


def test_the_only_one_has_nothing_to_be_held_against() -> None:
    result = judge(made_fleet(1))
    assert result.unknown == [
        "node0 cuda:0: the only NVIDIA H200 and no earlier runs: nothing tells whether it is slow"
    ]
    assert all(figure and figure.fleet is None for one in result.groups[0].metrics for figure in one.figures)


def test_half_slow_is_said_and_nobody_crowned() -> None:
    result = judge(made_fleet(16, {place: Special(slow=0.05) for place in range(8)}))
    assert not result.slow
    assert "8 of 16 devices are" in result.unknown[0]
    assert "either may be the normal ones: node0 cuda:0, node0 cuda:1" in result.unknown[0]


def test_what_else_was_seen_stands_beside_a_slow_one() -> None:
    state = replace(
        CALM, throttle_reasons="sw_power_cap", sm_clock_mhz=1500, temperature_c=70, pcie_width=8, ecc_uncorrected=2
    )
    (slow,) = judge(made_fleet(16, {5: Special(slow=0.2, conditions=state)})).slow
    assert slow.seen == [
        "throttled (sw_power_cap) in 4 of 4 cases",
        "SM clock 1500 MHz, the others' 1980 MHz",
        "PCIe lanes 8, the others' 16",
        "70 °C, the others 40 °C",
        "2 uncorrected ECC errors",
    ]


def test_rules_out_of_range_are_refused() -> None:
    with pytest.raises(UsageError, match="--threshold -1"):
        Rules(threshold=-0.01)
    with pytest.raises(UsageError, match="--false-alarms 100"):
        Rules(false_alarms=1.0)
