"""Stored runs with kernels and ports that nobody declares any more are shown, compared and reported as before."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from smembench.cli.app import app
from smembench.kernels import registry
from smembench.store.load import load

REFERENCE = Path(__file__).parents[2] / "results/reference"
LIMITS, TENSOR = REFERENCE / "20261123T200119Z-limits", REFERENCE / "20261126T162541Z-tensor"


@pytest.mark.parametrize("run", [LIMITS, TENSOR], ids=lambda run: run.name)
@pytest.mark.parametrize("view", [(), ("--tables",), ("--limits",), ("--ladder",), ("--compilers",), ("--json",)])
def test_a_run_is_shown(run: Path, view: tuple[str, ...]) -> None:
    former = {
        row.kernel
        for row in load(run).rows
        if registry.find(row.problem, row.kernel, row.case.kind, row.compiler) is None
    }
    assert former
    shown = CliRunner().invoke(app, ["show", str(run), *view])
    assert shown.exit_code == 0, shown.output
    if view == ("--tables",):
        assert all(name in shown.output for name in former)


def test_runs_are_compared(tmp_path: Path) -> None:
    copied = tmp_path / "new"
    copied.mkdir()
    for file in LIMITS.iterdir():
        (copied / file.name).write_bytes(file.read_bytes())
    compared = CliRunner().invoke(app, ["compare", str(LIMITS), str(copied), "--json"])
    assert "transposePersistent" in compared.output, compared.output[-500:]


def test_a_report_is_written(tmp_path: Path) -> None:
    pytest.importorskip("jinja2", reason="needs the extra report")
    pytest.importorskip("vl_convert", reason="needs the extra report")
    page = tmp_path / "report.html"
    written = CliRunner().invoke(app, ["report", str(LIMITS), "--output", str(page)])
    assert written.exit_code == 0, written.output
    assert "transposePersistent" in page.read_text(encoding="utf-8")
