"""A fleet read from a folder: its devices, and the newest run on each."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from fleets import CALM, Special, made_fleet, made_gpus
from smembench.studies.fleet.members import metric
from smembench.studies.fleet.read import read_fleet


def test_a_made_fleet_is_read_as_it_was_written(tmp_path: Path) -> None:
    special = {2: Special(slow=0.05), 3: Special(failed={"tiled": "LaunchError: out of luck"})}
    for gpu in made_gpus(6, special, per_host=4):
        gpu.write(tmp_path)
    read, made = read_fleet(tmp_path), made_fleet(6, special, per_host=4)
    assert [member.label for member in read.members] == [f"node{place // 4} cuda:{place % 4}" for place in range(6)]
    for stored, member in zip(read.members, made.members, strict=True):
        assert stored.run is not None
        assert member.run is not None
        assert stored.run.rows == member.run.rows
        assert (stored.identity, stored.reason) == (member.identity, "")
    (failed,) = read.members[3].run.failed if read.members[3].run else []
    assert (failed.kernel, failed.reason) == ("tiled", "LaunchError: out of luck")
    row = read.members[0].run.rows[0] if read.members[0].run else None
    assert row is not None
    state = asdict(CALM)
    del state["energy_j"]  # of loads only
    assert {name: getattr(row, name) for name in state} == state


def test_of_several_nights_the_newest_counts_and_a_run_that_was_cut_off_says_so(tmp_path: Path) -> None:
    for night in range(2):
        for gpu in made_gpus(2, {1: Special(slow=0.1 * night, cut_off=night == 1)}, night=night):
            gpu.write(tmp_path)
    first, second = read_fleet(tmp_path).members
    assert first.reason == ""
    assert second.reason == "the run was cut off"
    assert second.run is not None
    assert second.run.id == "20260102T020000Z-fleet"
    assert [row.rounds for row in second.run.rows] == [1] * 4


def test_a_metric_is_a_case_without_its_device(tmp_path: Path) -> None:
    names = [{metric(row) for row in member.run.rows} for member in made_fleet(3).members if member.run]
    assert names[0] == names[1] == names[2]
    assert "transpose/memcpy/numba/float32/8192x8192/warm" in names[0]
