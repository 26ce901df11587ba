"""A fleet's devices against their own earlier runs, from the folders in which those are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from fleets import CALM, TIMES, Special, made_gpus
from smembench.model.errors import REGRESSION, Dropped
from smembench.studies.fleet.history import earlier
from smembench.studies.fleet.judge import judge
from smembench.studies.fleet.members import Fleet, Member
from smembench.studies.fleet.read import read_fleet
from smembench.studies.fleet.verdict import Against, Verdict

NIGHTS = 6


def morning(
    results: Path, count: int, special: Mapping[int, Special] | None = None, *, night: int, noise: float = 0.0005
) -> Path:
    """The runs of a fleet's night, a folder per GPU."""
    folder = results / f"night{night}"
    for gpu in made_gpus(count, special, night=night, noise=noise):
        gpu.write(folder)
    return folder


def verdict(folder: Path) -> Verdict:
    fleet = read_fleet(folder)
    return judge(fleet, earlier(fleet))


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Two GPUs in six unchanged nights."""
    for night in range(NIGHTS):
        morning(tmp_path, 2, night=night)
    return tmp_path


def test_of_two_gpus_the_one_that_became_slower_is_named(results: Path) -> None:
    result = verdict(morning(results, 2, {1: Special(slow=0.03)}, night=NIGHTS))
    (slow,) = result.slow
    assert slow.member.label == "node0 cuda:1"
    assert {reason.against for reason in slow.reasons} == {Against.HISTORY}
    assert len(slow.reasons) == len(TIMES)
    assert slow.reasons[0].distance.size == pytest.approx(0.03, abs=0.005)
    assert result.exit_code == REGRESSION
    assert result.unknown == []


def test_an_unchanged_night_is_quiet(results: Path) -> None:
    result = verdict(morning(results, 2, night=NIGHTS))
    assert not result.slow
    assert all(figure and figure.history for one in result.groups[0].metrics for figure in one.figures)


def test_a_throttling_gpu_is_slow_against_its_history_too(results: Path) -> None:
    hot = Special(slow=0.1, conditions=replace(CALM, throttle_reasons="hw_thermal_slowdown", sm_clock_mhz=1700))
    (slow,) = verdict(morning(results, 2, {0: hot}, night=NIGHTS)).slow
    assert slow.seen == ["throttled (hw_thermal_slowdown) in 4 of 4 cases", "SM clock 1700 MHz, the others' 1980 MHz"]


def test_a_gpu_that_became_faster_is_not_slow(results: Path) -> None:
    assert not verdict(morning(results, 2, {0: Special(slow=-0.1)}, night=NIGHTS)).slow


def test_runs_of_later_nights_and_of_other_devices_are_no_history(results: Path) -> None:
    result = earlier(read_fleet(results / "night2"))
    assert [len(members) for members in result.values()] == [2, 2]
    assert not earlier(read_fleet(results / "night0"))


def test_an_edited_file_is_named_if_its_run_counts(results: Path) -> None:
    for night in (1, 4):
        path = next((results / f"night{night}").glob("*-cuda-0/*/cases.csv"))
        path.write_text(path.read_text() + "\n")
    fleet = read_fleet(results / "night3")
    with pytest.warns(Dropped) as dropped:
        earlier(fleet)
    (line,) = (str(one.message) for one in dropped)
    assert "/night1/" in line
    assert line.endswith("(an earlier run of node0 cuda:0)")


def test_nights_in_one_shared_folder_are_history_too(tmp_path: Path) -> None:
    for night in range(NIGHTS):
        for gpu in made_gpus(2, night=night):
            gpu.write(tmp_path / "shared")
    assert [len(members) for members in earlier(read_fleet(tmp_path / "shared")).values()] == [NIGHTS - 1] * 2


def test_a_gpu_keeps_its_history_when_the_hosts_indices_change(results: Path) -> None:
    fleet = read_fleet(morning(results, 2, {1: Special(slow=0.03)}, night=NIGHTS))
    before = earlier(fleet)
    one, other = fleet.members
    # cuda:1 was cuda:0 in the nights before: the UUID says so.
    moved = {other.identity: [replace(member, info=other.info) for member in before[one.identity]]}
    again = {other.identity: before[other.identity]}
    result = [judge(Fleet(fleet.path, [other]), history).groups[0].metrics for history in (moved, again)]
    assert all(figure and figure.history for metrics in result for one in metrics for figure in one.figures)


def test_a_driver_that_makes_a_gpu_slower_is_named(results: Path) -> None:
    fleet = read_fleet(morning(results, 2, {1: Special(slow=0.03)}, night=NIGHTS))

    def driven(members: Sequence[Member], driver: str) -> list[Member]:
        return [replace(one, info=one.info and one.info.model_copy(update={"driver": driver})) for one in members]

    before = {identity: driven(members, "580") for identity, members in earlier(fleet).items()}
    result = judge(Fleet(fleet.path, driven(fleet.members, "590")), before)
    (slow,) = result.slow
    assert slow.member.device == "cuda:1"
    assert slow.seen == ["cuda:1 driver was 580, is 590"]


def test_of_two_gpus_history_alone_is_asked(results: Path) -> None:
    """So its p-values are adjusted for as many questions as metrics, and in a fleet for twice as many."""
    slow = {1: Special(slow={"tiled": 0.013})}
    of_two = verdict(morning(results, 2, slow, night=NIGHTS))
    of_many = verdict(morning(results, 4, slow, night=NIGHTS))
    few, many = (p_of(result, "tiled", member=1) for result in (of_two, of_many))
    assert 0 < few < many < 1
    assert many == pytest.approx(2 * few)


def test_metrics_that_are_all_a_little_slower_count_together(results: Path) -> None:
    of_all = verdict(morning(results, 2, {1: Special(slow=0.013)}, night=NIGHTS))
    of_one = verdict(morning(results, 2, {1: Special(slow={"tiled": 0.013})}, night=NIGHTS))
    assert p_of(of_all, "tiled", member=1) < p_of(of_one, "tiled", member=1) / 2


def p_of(result: Verdict, kernel: str, member: int) -> float:
    """Of a device's distance to its own history."""
    (one,) = (metric for metric in result.groups[0].metrics if kernel in metric.name)
    figure = one.figures[member]
    assert figure
    assert figure.history
    return figure.history.p
