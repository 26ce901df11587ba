"""What is asked of Nsight Compute, by a program that takes its place."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

from smembench.explain.counters import counted_in
from smembench.explain.ncu import profile
from smembench.explain.ncu_child import Work
from smembench.model.errors import UsageError
from traces import case

NCU = """#!%s
import sys
metrics = sys.argv[sys.argv.index("--metrics") + 1].split(",")
for metric in metrics:
    if "unknown" in metric:
        sys.exit(f"==ERROR== Failed to find metric {metric if 'named' in metric else ''}")
print('"ID","Metric Name","Metric Value"')
for launch in range(2):
    for metric in metrics:
        print(f'"{launch}","{metric}","{"n/a" if metric == "absent" else f"{1000 + launch:,}"}"')
"""
"""Counts 1,000 of every metric in a first launch and 1,001 in a second; a metric that it does not know ends it."""


@pytest.fixture
def ncu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ncu").write_text(NCU % sys.executable)
    (tmp_path / "ncu").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")


@pytest.mark.parametrize(
    ("optional", "kept"),
    [
        ([], []),
        (["one"], ["one"]),
        (["one", "unknown_named"], ["one"]),
        (["one", "unknown"], []),
        (["one", "absent"], ["one"]),
    ],
)
@pytest.mark.usefixtures("ncu")
def test_metrics_that_ncu_does_not_know_are_left_out_if_optional(optional: list[str], kept: list[str]) -> None:
    (result,) = measured(["cycles"], optional)
    assert result == dict.fromkeys(["cycles", *kept], 1001)


@pytest.mark.usefixtures("ncu")
def test_a_metric_that_is_needed_is_asked_for() -> None:
    with pytest.raises(UsageError, match=r"^ncu gave 0 of 2 figures of cycles: .*unknown_named"):
        measured(["cycles", "unknown_named"], ["one"])


def measured(metrics: list[str], optional: list[str]) -> list[dict[str, float]]:
    """Of the second of two launches."""
    work = Work([case("copyGmem")], launches=2)
    return profile(work, metrics, optional=optional, cache_control="all", uncounted=1)


class Metric(NamedTuple):
    number: float | None

    def value(self) -> float | None:
        return self.number


class Action(dict[str, Metric]):
    """A launch in a report, as ncu-report has it."""

    def name(self) -> str:
        return "scale"

    def metric_names(self) -> list[str]:
        return [*self]


def reported(monkeypatch: pytest.MonkeyPatch, *launches: dict[str, float]) -> None:
    actions = [Action({name: Metric(value) for name, value in item.items()}) for item in launches]
    module = ModuleType("ncu_report")
    module.__spec__ = ModuleSpec("ncu_report", None)
    setattr(module, "load_report", lambda path: [actions])  # noqa: B010 - mypy knows no such attribute
    monkeypatch.setitem(sys.modules, "ncu_report", module)


def test_a_reports_counters_are_those_of_its_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load, global_ = "_op_ld.sum", "l1tex__t_{}_pipe_lsu_mem_global_op_ld.sum"
    launch = {
        f"smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared{load}": 320.0,
        "smsp__inst_executed_op_shared_ld.sum": 10.0,
        global_.format("sectors"): 40.0,
        global_.format("requests"): 10.0,
        "dram__bytes_read.sum": 64.0,
        "dram__bytes_write.sum": 32.0,
        "launch__grid_size": 4.0,
        "launch__block_size": 128.0,
        "gpu__time_duration.sum": 2000.0,
    }
    reported(monkeypatch, launch, {**launch, "gpu__time_duration.sum": 4000.0}, {**launch, "launch__grid_size": 8.0})
    path = tmp_path / "a.ncu-rep"
    path.touch()
    result = counted_in(path)
    assert {(kernel.kernel, kernel.grid, kernel.block, kernel.launches) for kernel, *_ in result} == {
        ("scale", 4, 128, 2),
        ("scale", 8, 128, 1),
    }
    assert {figure: value for kernel, figure, value in result if kernel.grid == 4} == {
        "wavefronts per shared load": 32.0,
        "sectors per global load": 4.0,
        "global load requests": 10.0,
        "DRAM bytes": 96.0,
        "time µs": 3.0,
    }


def test_a_report_without_the_extra_names_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("smembench.explain.ncu.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"needs NVIDIA's package ncu-report: pip install 'smembench\[ncu\]'"):
        counted_in(tmp_path / "a.ncu-rep")


@pytest.mark.parametrize(("launches", "why"), [([], "holds no kernel"), ([{"other": 1.0}], "has none of the counters")])
def test_a_report_without_figures_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, launches: list[dict[str, float]], why: str
) -> None:
    reported(monkeypatch, *launches)
    (tmp_path / "a.ncu-rep").touch()
    with pytest.raises(UsageError, match=why):
        counted_in(tmp_path / "a.ncu-rep")
