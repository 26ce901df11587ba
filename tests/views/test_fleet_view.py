"""A fleet's tables, strips and lines, from made-up fleets whose slow GPUs are known."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from conftest import records
from fleets import CALM, TIMES, Special, made_fleet
from smembench.studies.fleet.judge import judge
from smembench.studies.fleet.monitoring import json_lines, open_metrics
from smembench.studies.fleet.verdict import Metric, Verdict
from smembench.views.fleet import fleet_lines, fleet_sections, headline, metric_names
from smembench.views.fleet_records import result
from smembench.views.fleet_strip import WIDTH, axis, reach, strip
from smembench.views.sections import Section
from smembench.views.table import draw

POWER = replace(CALM, throttle_reasons="sw_power_cap")


def verdict_of(count: int, **special: Special) -> Verdict:
    """The verdict on a fleet whose GPU of that number (``gpu3``) is special."""
    return judge(made_fleet(count, {int(name.removeprefix("gpu")): one for name, one in special.items()}))


def column(section: Section, title: str) -> list[str]:
    place = [column.title for column in section.columns].index(title)
    return [cells[place] for cells in section.cells]


@pytest.fixture(scope="module")
def fleet() -> Verdict:
    """Of 16 GPUs on 2 hosts two are so slow that any rule says so."""
    return verdict_of(
        16,
        gpu3=Special(slow=0.3, conditions=POWER),
        gpu5=Special(slow={"memcpy": 0.2}),
        gpu6=Special(failed={"tiled": "LaunchError: out of luck"}),
    )


def test_the_slowest_gpu_comes_first_with_its_deviations(fleet: Verdict) -> None:
    metrics, devices = fleet_sections(fleet, fine=True)
    assert metrics.heading == "NVIDIA H200 · 16 GPUs"
    assert column(metrics, "metric") == ["memcpy", "transposeSmem", "transposeSmemPad", "tiled"]
    assert column(metrics, "slow")[0] == "node0 cuda:3 and 1 more"
    assert column(metrics, "slow")[1] == "node0 cuda:3"
    assert column(devices, "device")[:2] == ["node0 cuda:3", "node0 cuda:5"]
    assert column(devices, "slow in")[:3] == ["1, 2, 3, 4", "1", ""]
    assert all(29 < float(column(devices, str(number))[0]) < 31 for number in (1, 2, 3, 4))
    assert devices.notes == ["a GPU throttled or its host was busy: 4 of 63 figures"]
    failed = column(devices, "device").index("node0 cuda:6")
    assert column(devices, "4")[failed] == "–"


def test_a_line_per_slow_gpu_says_which_in_what_how_far_and_what_else_was_seen(fleet: Verdict) -> None:
    first, second, *others = fleet_lines(fleet)
    info = fleet.fleet.members[3].info
    assert info is not None
    assert first.startswith(f"slow: node0 cuda:3 {info.uuid}: ")
    assert "; 1 more metric; " in first
    assert "sw_power_cap" in first
    assert second.startswith("slow: node0 cuda:5 ")
    assert "memcpy +" in second
    assert " against the fleet" in second
    assert "failed: node0 cuda:6: tiled: failed: LaunchError: out of luck" in others
    assert headline(fleet) == "16 GPUs on 2 hosts: 2 slow, 1 failed"


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_tables_fit_80_columns_and_any_encoding(fleet: Verdict, encoding: str) -> None:
    text = StringIO()
    console = Console(file=text, force_terminal=True, color_system=None, width=80)
    draw(console, fleet_sections(fleet, fine=encoding == "utf-8"))
    lines = text.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    mark = "×" if encoding == "utf-8" else "x"
    assert any("memcpy" in line and "cuda:3" in line and mark in line for line in lines)


def test_no_deviation_is_minus_zero() -> None:
    _, devices = fleet_sections(verdict_of(8), fine=True)
    shown = [cell for cells in devices.cells for cell in cells]
    assert "+0.0" in shown
    assert "-0.0" not in shown


def test_what_two_gpus_cannot_tell_is_said_with_the_short_name_of_the_metric() -> None:
    (line,) = fleet_lines(verdict_of(2, gpu1=Special(slow={"memcpy": 0.2})))
    assert "% slower than node0 cuda:0 in memcpy: earlier runs of both" in line


def test_a_large_fleet_names_those_that_stand_out_and_counts_the_others() -> None:
    outcome = verdict_of(60, gpu17=Special(slow=0.1), gpu40=Special(slow={"tiled": 0.04}))
    _, devices = fleet_sections(outcome, fine=True)
    assert column(devices, "device")[:2] == ["node2 cuda:1", "node5 cuda:0"]
    assert len(devices.cells) == 16
    assert devices.notes[0].startswith("and 44 GPUs more, all within ±0.")
    assert len(records(result(outcome).text("csv"))) == 60 * len(TIMES)


def test_of_one_gpu_the_times_are_shown_and_nothing_is_called_fast_or_slow() -> None:
    outcome = verdict_of(1)
    (section,) = fleet_sections(outcome, fine=True)
    assert column(section, "metric")[0] == "memcpy"
    assert headline(outcome) == "1 GPU on 1 host: nothing to compare with"


def test_equal_failures_of_many_gpus_are_one_line() -> None:
    gone = {f"gpu{place}": Special(cut_off=True) for place in range(8)}
    (line,) = (line for line in fleet_lines(verdict_of(16, **gone)) if line.startswith("failed"))
    assert line == "failed: 8 devices (node0 cuda:0, …): the run was cut off"


def test_a_kernel_with_several_metrics_has_what_tells_them_apart() -> None:
    """Its element type, which all of its cases have, is not worth a word, though other kernels have another."""
    (group,) = (outcome := judge(made_fleet(4))).groups

    def chain(one: Metric, n: int) -> Metric:
        changed: dict[str, Any] = {"problem": "latency", "kernel": "globalChain", "dtype": "int32", "m": 64, "n": n}
        changed |= {"block_x": None, "block_y": None, "pad": None}
        figures = [figure and replace(figure, row=replace(figure.row, **changed)) for figure in one.figures]
        return replace(one, name=f"latency of {n}", figures=figures)

    first, second, *others = group.metrics
    chains = [chain(first, 1024), chain(second, 2048)]
    names = metric_names(replace(outcome, groups=[replace(group, metrics=[*chains, *others])]))
    assert list(names.values()) == ["globalChain 64x1024", "globalChain 64x2048", "transposeSmemPad", "tiled"]


def test_models_are_apart() -> None:
    others = {f"gpu{place}": Special(model="NVIDIA B200", slow=-0.4) for place in range(4)}
    sections = fleet_sections(verdict_of(8, **others), fine=True)
    assert [section.heading for section in sections[::2]] == ["NVIDIA B200 · 4 GPUs", "NVIDIA H200 · 4 GPUs"]


DEVIATIONS = st.lists(st.tuples(st.floats(-0.5, 0.5), st.booleans()), max_size=60)


@given(DEVIATIONS, st.booleans())
def test_a_strip_has_a_mark_for_every_device(values: list[tuple[float, bool]], fine: bool) -> None:
    deviations, slow = [one for one, _ in values], [is_slow for _, is_slow in values]
    end = reach(deviations)
    line = strip(deviations, slow, end, fine=fine)
    assert len(line) == len(axis(end)) == WIDTH
    assert line.isascii() or fine
    marks = Counter(line)
    assert bool(marks["×" if fine else "x"]) == any(slow)
    drawn = WIDTH - marks[" "] - marks["┊" if fine else "|"]
    assert min(len(values), 1) <= drawn <= len(values)


def test_the_median_is_in_the_middle_and_the_farthest_at_the_ends() -> None:
    line = strip([0.0, -0.05, 0.05], [False] * 3, 0.05, fine=False)
    assert line == f".{' ' * 11}.{' ' * 11}."
    assert axis(0.05).split() == ["-5", "%", "0", "+5", "%"]


def test_json_has_every_figure_with_the_state_of_its_gpu(fleet: Verdict) -> None:
    outcome = json.loads(result(fleet).text("json"))
    assert outcome["fleet"]["exit_code"] == 3
    assert [device["slow"] for device in outcome["devices"]] == [place in (3, 5) for place in range(16)]
    assert list(outcome["devices"][6]["failed"].values()) == ["failed: LaunchError: out of luck"]
    assert len(outcome["figures"]) == 16 * len(TIMES) - 1
    figure = next(one for one in outcome["figures"] if (one["host"], one["device"]) == ("node0", "cuda:3"))
    assert (figure["throttle_reasons"], figure["pcie_width"], figure["nvlinks_up"]) == ("sw_power_cap", 16, 18)
    assert outcome["slow"][0]["reasons"][0]["against"] == "the fleet"
    assert result(fleet).text("markdown").count("| memcpy") == 1


def test_of_two_gpus_one_is_as_far_above_the_median_as_the_other_is_below() -> None:
    """The median of two is the geometric mean, and so of both what JSON says of a time."""
    outcome = json.loads(result(verdict_of(2, gpu1=Special(slow=0.2))).text("json"))
    for metric in outcome["metrics"]:
        figures = [one for one in outcome["figures"] if one["metric"] == metric["metric"]]
        factors = [1 + one["deviation"] for one in figures]
        assert factors == pytest.approx([one["elapsed_ms"] / metric["median_ms"] for one in figures])
        assert factors[0] * factors[1] == pytest.approx(1)


def test_a_line_of_json_per_gpu_names_those_to_drain(fleet: Verdict) -> None:
    lines = [json.loads(line) for line in json_lines(fleet).splitlines()]
    assert [line["device"] for line in lines if line["slow"]] == ["cuda:3", "cuda:5"]
    assert lines[3]["reasons"][0]["distance"] == pytest.approx(0.3, abs=0.01)
    assert lines[6]["failed"]
    assert lines[0]["reasons"] == []


def test_metrics_are_valid_and_say_which_gpu_is_slow(fleet: Verdict) -> None:
    parser = pytest.importorskip("prometheus_client.openmetrics.parser")
    families = {family.name: family for family in parser.text_string_to_metric_families(open_metrics(fleet))}
    slow = [sample.value for sample in families["smembench_fleet_device_slow"].samples]
    assert slow == [float(place in (3, 5)) for place in range(16)]
    (count,) = families["smembench_fleet_slow_devices"].samples
    assert (count.labels, count.value) == ({}, 2.0)
    assert len(families["smembench_fleet_distance_ratio"].samples) == 16 * len(TIMES) - 1


def test_processes_that_measure_the_same_cpu_are_metrics_of_their_own(fleet: Verdict) -> None:
    numbered = [
        replace(one, host="a", device="cpu", info=None, number=n + 1) for n, one in enumerate(fleet.fleet.members)
    ]
    outcome = replace(fleet, fleet=replace(fleet.fleet, members=numbered))
    assert [json.loads(line)["device"] for line in json_lines(outcome).splitlines()][:2] == ["cpu #1", "cpu #2"]
    series = [line for line in open_metrics(outcome).splitlines() if line.startswith("smembench_fleet_device_ok{")]
    assert len({line.rpartition(" ")[0] for line in series}) == 16


def test_a_fleet_without_figures_is_shown(fleet: Verdict) -> None:
    silent = [replace(one, run=None, reason="no answer") for one in fleet.fleet.members]
    outcome = judge(replace(fleet.fleet, members=silent))
    assert fleet_sections(outcome, fine=True) == []
    assert headline(outcome) == "16 GPUs on 2 hosts: nothing to compare with, 16 failed"
    assert fleet_lines(outcome) == ["failed: 16 devices (node0 cuda:0, …): no answer"]
    assert records(result(outcome).text("csv")) == []
