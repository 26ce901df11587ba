"""``smembench history`` as users run it, over a tree of nights made from a committed run."""

from __future__ import annotations

import csv
import io
import json
import re
import resource
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from conftest import NIGHTLY, Program

NIGHTS, CASES = 120, 200
SLOWER = "transpose/naiveGmem/cuda:0/numba/float32/4096x4096/b32x32/warm"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nights with 0.5 % noise; from the last but five on one case is slower by 6 %, with another driver."""
    root = tmp_path_factory.mktemp("results")
    run = json.loads((NIGHTLY / "run.json").read_text()) | {"checksums": {}}
    for device in run["devices"]:
        device["uuid"] = f"anonymous-{device['name']}"
    with (NIGHTLY / "cases.csv").open(newline="") as stream:
        header, *rows = csv.reader(stream)
    place = {name: header.index(name) for name in ("case_id", "elapsed_ms", "run_id")}
    while len(rows) < CASES:
        rows += [[f"{field}/again" if n == place["case_id"] else field for n, field in enumerate(row)] for row in rows]
    rng = np.random.default_rng(1)
    for night in range(NIGHTS):
        began = datetime(2026, 1, 1, 2, tzinfo=UTC) + timedelta(days=night)
        run_id = f"{began:%Y%m%dT%H%M%SZ}-nightly"
        late = night >= NIGHTS - 5
        if late:
            run["devices"][0]["driver"] = "590.10"
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(header)
        for row in rows[:CASES]:
            field = row[place["elapsed_ms"]]
            factor = rng.normal(1, 0.005) * (1.06 if late and row[place["case_id"]] == SLOWER else 1)
            changed = {place["run_id"]: run_id, place["elapsed_ms"]: field and repr(float(field) * factor)}
            writer.writerow([changed.get(n, field) for n, field in enumerate(row)])
        folder = root / run_id
        folder.mkdir()
        (folder / "cases.csv").write_text(text.getvalue())
        described = run | {"run_id": run_id, "started_at_utc": began.isoformat(), "seed": night}
        (folder / "run.json").write_text(json.dumps(described))
    torn = root / "20261231T020000Z-nightly"
    torn.mkdir()
    (torn / "cases.csv").write_text("schema_version\n1\n")
    return root


def test_many_nights_are_read_quickly_and_the_slower_case_comes_first(program: Program, tree: Path) -> None:
    begun = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = program("history", tree, COLUMNS="140")
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert ended.ru_utime + ended.ru_stime - begun.ru_utime - begun.ru_stime < 2.5
    assert ran.returncode == 0
    gpu, cpu = ran.stdout.split("\n\n", 1)
    lines = [line.rstrip() for line in gpu.splitlines()]
    assert lines[0] == "NVIDIA H200 · 120 runs, 2026-01-01 to 2026-04-30"
    assert lines[3].startswith("naiveGmem float32 4096x4096 b32x32")
    assert lines[3].endswith("2026-04-26")
    assert "Unaccepted slowdowns: 1 of 199 cases." in lines
    (change,) = (line for line in lines if line.startswith("20260426T020000Z-nightly: "))
    assert "1 slower, naiveGmem float32 4096x4096 b32x32 by +" in change
    assert "cuda:0 driver was 580.159.04, is 590.10" in change
    assert cpu.startswith("cpu · 120 runs")
    assert ran.stderr == f"skipped {tree}/20261231T020000Z-nightly: cases.csv: the column run_id is missing\n"


def test_a_slower_newest_stretch_exits_with_3_only_when_asked(program: Program, tree: Path) -> None:
    watched = ("history", tree, "--case", "naiveGmem", "--fail-on-change")
    assert program(*watched).returncode == 3
    assert program(*watched, "--case", "transposeSmem").returncode == 0
    assert program(*watched, "--since", "2026-04-26").returncode == 0
    assert program(*watched, "--threshold", "20").returncode == 0
    unknown = program("history", tree, "--case", "nothing")
    assert (unknown.returncode, "--case 'nothing': none of the " in unknown.stderr) == (2, True)


def test_json_has_every_series_and_nothing_else_on_stdout(program: Program, tree: Path) -> None:
    ran = program("history", tree, "--json", "--case", "*/naiveGmem/*/4096x4096/b32x32/warm", "--since", "2026-04-01")
    data = json.loads(ran.stdout)
    assert len(data["runs"]) == 30
    assert {one["case_id"].split("/")[4] for one in data["series"]} == {"float16", "float32", "float64", "int32"}
    (change,) = data["series"][0]["changes"]
    assert (data["series"][0]["newest"], change["run_id"]) == ("slower", "20260426T020000Z-nightly")
    assert data["skipped"][0]["reason"] == "cases.csv: the column run_id is missing"


def test_without_a_terminal_in_unicode_it_is_ascii(program: Program, tree: Path) -> None:
    ran = program("history", tree, "--case", "copyGmem", "--since", "2026-04-17", PYTHONIOENCODING="ascii")
    assert ran.returncode == 0
    assert re.search(r"^copyGmem.* [_.-=+*%@]{14} ", ran.stdout, flags=re.MULTILINE)
    assert "?" not in ran.stdout


def test_a_point_may_be_a_revision(program: Program) -> None:
    shown = program("history", "results/reference/slowdown", "--by", "revision", "--export", "-.csv")
    assert shown.returncode == 0, shown.stderr
    assert "revision" in shown.stdout.splitlines()[0].split(",")
    assert len(shown.stdout.splitlines()) > 1
