"""``smembench history`` on a folder of fleets: each GPU is its own series, wherever it is in its host."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import Program
from fleets import CALM, TIMES, Special, made_gpus
from smembench.model.measurement import Conditions


def write(folder: Path, count: int, nights: int, **special: tuple[int, Special]) -> Path:
    """Fleets of some nights; ``gpu3=(5, …)`` is special from the sixth night on."""
    for night in range(nights):
        of_night = {int(name.removeprefix("gpu")): one for name, (since, one) in special.items() if night >= since}
        for gpu in made_gpus(count, of_night, night=night):
            gpu.write(folder / f"night{night}")
    return folder


@pytest.fixture(scope="module")
def three_nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    throttled = Special(conditions=Conditions(throttle_reasons="sw_power_cap", sm_clock_mhz=CALM.sm_clock_mhz))
    return write(tmp_path_factory.mktemp("fleets"), 4, 3, gpu3=(0, throttled))


def test_each_gpu_has_its_own_series_with_its_host_and_index(program: Program, three_nights: Path) -> None:
    shown = program("history", three_nights)
    assert shown.returncode == 0, shown.stderr
    headings = [line for line in shown.stdout.splitlines() if line.startswith("NVIDIA H200")]
    assert [line.split()[2:4] for line in headings] == [["node0", f"cuda:{place}"] for place in range(3)]
    result = json.loads(program("history", three_nights, "--json").stdout)["series"]
    assert len(result) == 3 * len(TIMES)
    assert {one["place"] for one in result} == {f"node0 cuda:{place}" for place in range(3)}
    assert all(len(one["elapsed_ms"]) == 3 for one in result)


def test_a_gpu_without_any_time_that_counts_is_named(program: Program, three_nights: Path) -> None:
    stderr = program("history", three_nights).stderr
    assert "no time can be compared of node0 cuda:3: the GPU throttled (sw_power_cap)" in stderr


def test_of_many_gpus_those_that_changed_are_shown_and_the_others_counted(program: Program, tmp_path: Path) -> None:
    shown = program("history", write(tmp_path, 9, 7, gpu8=(4, Special(slow={"memcpy": 0.1}))))
    lines = shown.stdout.splitlines()
    assert lines[0] == "9 devices, of which 1 changed"
    (changed,) = (line for line in lines if line.startswith("node1 cuda:0 ") and "memcpy" in line)
    assert "2026-01-05" in changed
    assert "8 devices did not change." in lines
    assert sum("oldest to newest" in line for line in lines) == 1
