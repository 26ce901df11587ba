"""What is asked of Nsight Compute, by a program that takes its place."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

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
    (found,) = measured(["cycles"], optional)
    assert found == dict.fromkeys(["cycles", *kept], 1001)


@pytest.mark.usefixtures("ncu")
def test_a_metric_that_is_needed_is_asked_for() -> None:
    with pytest.raises(UsageError, match=r"^ncu gave 0 of 2 figures of cycles: .*unknown_named"):
        measured(["cycles", "unknown_named"], ["one"])


def measured(metrics: list[str], optional: list[str]) -> list[dict[str, float]]:
    """Of the second of two launches."""
    work = Work([case("copyGmem")], launches=2)
    return profile(work, metrics, optional=optional, cache_control="all", uncounted=1)
