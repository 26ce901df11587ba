"""``--json``: every command that prints a table has it, and it is one object of tables and facts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from conftest import DOCUMENTS, ROOT
from conftest import QUICK as NUMBERS
from smembench.cli.app import app
from smembench.run.config import from_flags

QUICK = tuple(map(str, NUMBERS))
SLOWDOWN = ROOT / "results/reference/slowdown"
NEWEST = SLOWDOWN / "20261122T220754Z-slowdown"

TABLES = {
    ("list",): ("kernels", "kernel"),
    ("list", "devices"): ("devices", "device"),
    ("doctor",): ("checks", "what"),
    ("transpose", "8", "--device", "cpu", "--kernel", "naiveGmem", *QUICK): ("cases", "elapsed_ms"),
    ("transpose", "8", "--dry-run"): ("cases", "case_id"),
    ("run", "quick", "--dry-run"): ("cases", "case_id"),
    ("tune", "matmul", "--n", "8", "--device", "cpu", "--kernel", "cpu", *QUICK): ("cases", "elapsed_ms"),
    ("tune", "transpose", "--n", "8", "--device", "cpu", "--dry-run"): ("cases", "case_id"),
    ("ladder", "transpose", "--diff", "transposeSmemPad", "--run", str(DOCUMENTS)): ("steps", "occupancy"),
    ("compilers", "--static", "--kernel", "naiveGmem", "--n", "64"): ("cases", "registers"),
    ("explain", "transposeSmem"): ("shared", "wavefronts_per_request"),
    ("explain", "transposeSmemPad", "--best-pad"): ("pads", "load_conflict"),
    ("explain", "transposeSmem", "--best-swizzle"): ("layouts", "element"),
    ("explain", "--layout", "lane * 32"): ("accesses", "wavefronts"),
    ("lesson",): ("lessons", "what"),
    ("lesson", "reuse"): ("rows", "as_expected"),
    ("lesson", "solve"): ("exercises", "state"),
    ("show", str(DOCUMENTS)): ("cases", "elapsed_ms"),
    ("show", str(DOCUMENTS), "--documents"): ("claims", "holds"),
    ("history", str(SLOWDOWN)): ("series", "case_id"),
    ("compare", "last:7", str(NEWEST)): ("compared", "cases"),
    ("compare", str(NEWEST), str(NEWEST)): ("cases", "verdict"),
}
"""A table of each command's object, and a name that each of its records has."""


@pytest.mark.parametrize("command", TABLES, ids=lambda command: " ".join(command[:2]))
def test_json_is_one_object_of_tables(command: tuple[str, ...]) -> None:
    table, name = TABLES[command]
    done = CliRunner().invoke(app, [*command, "--json"])
    result = json.loads(done.stdout)
    assert result[table]
    assert all(name in record for record in result[table])


def test_reproduce_has_the_claims_on_the_cpu_and_on_the_stored_runs_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    sweep = [{"problem": "transpose", "kernel": "naiveGmem", "n": 8, "device": "cpu"}]
    small = from_flags({"sweep": sweep, "samples": 3, "rounds": 1, "precision": 90.0, "max_seconds": 0.2, "warmup": 0})
    monkeypatch.setattr("smembench.run.config.from_toml", lambda *given: small)
    done = CliRunner().invoke(app, ["reproduce", "--json"])
    result = json.loads(done.stdout)
    assert {case["status"] for case in result["cases"]} == {"ok"}
    claims = [claim for claim in result["claims"] if claim["where"] == "Bank conflicts"]
    assert [claim["found"] for claim in claims] == [
        "needs a GPU",
        "needs a GPU",
        *(claim["found"] for claim in claims[2:]),
    ]
    assert [(claim["device"], claim["holds"]) for claim in claims[2:]] == [("NVIDIA H200", "yes")] * 2


def test_what_is_accepted_and_what_is_pinned(tmp_path: Path) -> None:
    for command, table in {("accept",): "accepted", ("baseline", "show"): "pinned"}.items():
        done = CliRunner().invoke(app, [*command, str(tmp_path), "--json"])
        assert json.loads(done.stdout) == {table: []}


def test_every_command_has_it_but_the_page() -> None:
    commands = get_command(app).commands  # type: ignore[attr-defined]
    without = {name for name, command in commands.items() if "json" not in {item.name for item in command.params}}
    assert without == {"report", "baseline", "fleet"}  # HTML; groups, whose show has it
