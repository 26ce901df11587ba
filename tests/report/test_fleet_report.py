"""A fleet's page: who is slow, its strip plot, and the state of its GPUs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conftest import Program
from fleets import CALM, Special, made_fleet, made_gpus
from smembench.report.charts import rendered
from smembench.report.contents import Report
from smembench.report.fleet import fleet_contents
from smembench.report.page import page
from smembench.studies.fleet.judge import judge
from smembench.views.sections import Section

HALF = replace(CALM, pcie_width=8, nvlinks_up=17, ecc_uncorrected=2)


@pytest.fixture(scope="module")
def report() -> Report:
    """Of 40 GPUs, one slow in everything, one in memcpy, and one that failed a case."""
    special = {
        3: Special(slow=0.3, conditions=HALF),
        5: Special(slow={"memcpy": 0.2}),
        6: Special(failed={"tiled": "LaunchError: <out of luck>"}),
    }
    return fleet_contents(judge(made_fleet(40, special)))


def layers(report: Report) -> list[list[dict[str, Any]]]:
    (chart,) = report.charts
    return [layer["data"]["values"] for layer in json.loads(chart.json)["layer"]]


def tables(report: Report) -> list[Section]:
    return [section for chapter in report.chapters for topic in chapter.topics for section in topic.sections]


def test_the_first_screen_names_the_slow_gpus(report: Report) -> None:
    assert report.headline.title == "40 GPUs on 5 hosts: 2 slow, 1 failed"
    assert report.headline.sentences[0].startswith("slow: node0 cuda:3 GPU-")
    assert report.headline.facts == "fleet · 2026-01-01"


def test_every_gpu_is_in_each_strip_and_the_slowest_has_its_name(report: Report) -> None:
    limits, others, slow, named = layers(report)
    assert [point["metric"] for point in limits] == ["memcpy", "transposeSmem", "transposeSmemPad", "tiled"]
    assert all(1 < point["at"] < 20 for point in limits)
    for metric, missing in (("memcpy", 0), ("transposeSmem", 0), ("tiled", 1)):
        there = sum(point["count"] for point in others if point["metric"] == metric)
        assert there + sum(point["metric"] == metric for point in slow) == 40 - missing
    assert {(point["metric"], point["who"]) for point in named if point["metric"] in ("memcpy", "tiled")} == {
        ("memcpy", "node0 cuda:3"),
        ("tiled", "node0 cuda:3"),
    }
    assert any(point["says"].startswith("memcpy: node0 cuda:5 is slow, +") for point in slow)
    (chart,) = report.charts
    assert rendered(chart, "svg").startswith(b"<svg")


def test_the_state_of_each_gpu_stands_beside_what_it_could_be(report: Report) -> None:
    states = tables(report)[-1]
    titles = [column.title for column in states.columns]
    state = dict(zip(titles, states.cells[3], strict=True))
    assert (state["device"], state["lanes"], state["NVLinks"]) == ("node0 cuda:3", "8 of 16", "17 of 18")
    assert state["ECC errors"] == "0 corrected, 2 not"
    assert "throttled" not in titles  # none was


def test_the_page_is_escaped_and_has_all_gpus(report: Report) -> None:
    text = page(report)
    assert "LaunchError: &lt;out of luck&gt;" in text
    assert text.count('<th scope="row">node4 cuda:7</th>') == 2


def test_a_fleet_of_one_gpu_has_a_page(tmp_path: Path) -> None:
    alone = fleet_contents(judge(made_fleet(1)))
    assert alone.headline.title == "1 GPU on 1 host: nothing to compare with"
    assert alone.charts == []
    assert "node0 cuda:0" in page(alone)


def test_report_makes_a_page_of_a_fleets_folder(program: Program, tmp_path: Path) -> None:
    for gpu in made_gpus(4):
        gpu.write(tmp_path / "runs")
    made = program("report", tmp_path / "runs", "--fleet", "-o", tmp_path / "fleet.html")
    assert made.returncode == 0, made.stderr
    assert "<h1>4 GPUs on 1 host: none slow</h1>" in (tmp_path / "fleet.html").read_text()
    several = program("report", tmp_path / "runs", tmp_path / "runs", "--fleet", "-o", tmp_path / "again.html")
    assert several.returncode == 2
    assert "--fleet: is about one folder, not 2" in several.stderr
