"""Stored files of others, changed in any way: each command reads them or ends in one line, and reads the other runs."""

from __future__ import annotations

import csv
import io
import json
import os
import random
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from campaign import CAMPAIGN, chance
from conftest import ROOT, Program
from smembench.cli.app import app
from smembench.model.errors import SmembenchError
from smembench.store.csv_files import CASES, SAMPLES
from smembench.store.run_folder import JOURNAL, RUN

NIGHTS = sorted((ROOT / "results/reference/slowdown").iterdir())
VALUES: list[Any] = [
    *(None, True, -1, 0, 2, 10**30, 10**400, 1e-320, 1e308, -0.5, float("nan"), float("inf"), 1.5),
    *("", "text", "\x1b[31m", "\ud800", "×" * 300, "9" * 5000, "1e-320", "nan", "-1", "cuda:99999", "2099-99-99", "/"),
    *("0001-01-01T00:00:00+14:00", [], {}, [1], {"a": 1}, [[[[[]]]]], ["transpose"], {"name": {}}),
]
COMMANDS: tuple[tuple[str, ...], ...] = (
    *(("show", "A", f"--{view}") for view in ("markdown", "latex", "limits", "ladder", "documents", "compilers")),
    *(("show", "A"), ("compare", "A", "B", "--all"), ("compare", "B,C", "A", "--json"), ("compare", "--aa", "A,B")),
    *(("history", "R"), ("history", "R", "--json"), ("baseline", "set", "A"), ("baseline", "show", "R")),
    ("report", "A", "B", "-o", "-"),
    ("run", "--resume", "A", "--dry-run"),
)


def leaves(data: Any) -> list[tuple[Any, Any]]:
    """Every place in JSON data, as what holds it and its key."""
    result = [(data, key) for key in (data if isinstance(data, dict) else range(len(data)))]
    return result + [
        leaf for holder, key in result if isinstance(holder[key], (dict, list)) for leaf in leaves(holder[key])
    ]


def changed_json(text: str, rng: random.Random) -> str:
    data = json.loads(text)
    for _ in range(rng.choice([1, 1, 3])):
        holder, key = rng.choice(leaves(data) or [({0: 0}, 0)])
        if rng.random() < 0.1:
            del holder[key]
        else:
            holder[key] = rng.choice(VALUES)
    return json.dumps(data)


def changed_table(text: str, rng: random.Random) -> str:
    rows = list(csv.reader(io.StringIO(text)))
    for _ in range(rng.choice([1, 1, 3])):
        row = rng.choice([rows[0], *rng.choices(rows[1:], k=9)])
        row[rng.randrange(len(row))] = str(rng.choice(VALUES))
        if rng.random() < 0.1:
            row.pop()
    stream = io.StringIO()
    csv.writer(stream, lineterminator=rng.choice(["\n", "\r\n"])).writerows(rows)
    return stream.getvalue()


def changed_journal(text: str, rng: random.Random) -> str:
    lines = text.splitlines()
    number = rng.randrange(len(lines))
    lines[number] = changed_json(lines[number], rng)
    return "\n".join(lines) + "\n"


def changed_bytes(text: str, rng: random.Random) -> bytes:
    data = text.encode()
    at = rng.randrange(len(data))
    return rng.choice(
        [data[:at], data[:at] + b"\0" * 9 + data[at:], b"\xff" + data, b"\xef\xbb\xbf" + data, b"[" * 5000]
    )


def replaced(path: Path, rng: random.Random) -> None:
    """Put something other than a file at a path."""
    path.unlink()
    kinds: list[Callable[[], object]] = [
        path.mkdir,
        lambda: os.mkfifo(path),
        lambda: path.symlink_to(path),
        lambda: path.symlink_to("/dev/zero"),
        lambda: path.symlink_to("x" * 300),
        lambda: subprocess.run(["truncate", "-s", "1T", path], check=True),
    ]
    rng.choice(kinds)()


def old_journal(folder: Path) -> str:
    """The run as a journal without checksums, so that a change is read and not only noticed."""
    run = json.loads((folder / RUN).read_text().replace('"ownTile"', '"memcpy"'))
    trials: dict[tuple[str, str], Any] = {}
    rows = {row["case_id"]: row for row in csv.DictReader(io.StringIO((folder / CASES).read_text()))}
    for sample in csv.DictReader(io.StringIO((folder / SAMPLES).read_text())):
        row = rows[sample["case_id"]]
        if row["kernel"] == "ownTile":  # of a file from outside
            continue
        block = [int(row["block_x"]), int(row["block_y"])] if row["block_x"] else None
        case = {name: row[name] for name in ("problem", "kernel", "device", "dtype", "cache", "compiler")}
        case |= {"m": int(row["m"]), "n": int(row["n"]), "block": block, "pad": int(row["pad"]) if row["pad"] else None}
        trial = {"case": case, "round": int(sample["round"]), "status": "ok", "verified": True, "samples": []}
        trial |= {"started_at_utc": row["started_at_utc"], "conditions": {"sm_clock_mhz": 1980}}
        result = trials.setdefault((sample["case_id"], sample["round"]), trial)
        result["samples"].append(float(sample["elapsed_ms"]))
    return "".join(f"{json.dumps(line)}\n" for line in [{"run": run}, *({"visit": trial} for trial in trials.values())])


@pytest.fixture
def runs(tmp_path: Path) -> dict[str, Path]:
    """Three runs that may be written, and the folder that holds them."""
    root = tmp_path / "results"
    return {"R": root} | {
        name: Path(shutil.copytree(night, root / night.name)) for name, night in zip("ABC", NIGHTS, strict=False)
    }


def check(arguments: Sequence[object]) -> None:
    """The command works or is refused in one line."""
    refusal = None
    try:
        app(list(map(str, arguments)), standalone_mode=False)
    except SmembenchError as error:
        refusal = error
    # 4 when the journal is fine and there is no GPU to go on with.
    assert refusal is None or (refusal.exit_code in (2, 4) and len(str(refusal).splitlines()) == 1), refusal


@pytest.mark.filterwarnings("ignore::smembench.model.errors.Dropped")
def test_a_changed_file_is_read_or_refused_in_one_line(
    runs: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("vl_convert")
    rng = chance("changed files")
    journal = old_journal(runs["A"])
    changes = {RUN: changed_json, CASES: changed_table, SAMPLES: changed_table, JOURNAL: changed_journal}
    for number in range(24 * CAMPAIGN):
        shutil.rmtree(runs["A"])
        shutil.copytree(NIGHTS[0], runs["A"])
        (runs["R"] / "baseline.json").unlink(missing_ok=True)
        name = rng.choice(list(changes))
        if name == JOURNAL:
            (runs["A"] / JOURNAL).write_text(journal)
        path, way = runs["A"] / name, rng.random()
        if way < 0.1:
            replaced(path, rng)
        elif way < 0.2:
            path.write_bytes(changed_bytes(path.read_text(), rng))
        else:
            path.write_text(changes[name](path.read_text(), rng), errors="replace")
        command = COMMANDS[number % len(COMMANDS)]
        try:
            check([",".join(str(runs.get(part, part)) for part in word.split(",")) for word in command])
        except Exception as error:
            kept = shutil.move(runs["R"], runs["R"].with_name("failing"))
            raise AssertionError(f"{command} after a change of {name}, kept in {kept}") from error
        capsys.readouterr()


def test_a_damaged_run_is_told_and_the_others_are_read(runs: dict[str, Path], program: Program) -> None:
    (runs["A"] / RUN).write_text('{"seed": {"a": 1}}')
    with (runs["B"] / JOURNAL).open("w") as stream:
        lines = old_journal(runs["B"]).splitlines(keepends=True)
        stream.writelines([*lines[:9], "{]\n", *lines[9:12]])
    shown = program("history", runs["R"])
    assert f"skipped {runs['A']}: run.json: damaged: seed: " in shown.stderr
    assert "2 runs" in shown.stdout
    for command in (["show", runs["B"]], ["compare", runs["C"], runs["B"]]):
        result = program(*command)
        assert "journal.jsonl, line 10: damaged: it has no checksum" in result.stderr
        assert "lines dropped: 1, trials used: 11" in result.stderr
        assert len(result.stderr.splitlines()) == 1
        assert result.returncode in (0, 3)


@pytest.mark.parametrize("path", ["x" * 300, "x/" * 2100, "loop"], ids=lambda path: path[:6])
def test_a_path_that_cannot_be_is_one_line(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("loop").symlink_to("loop")
    good, quick = NIGHTS[0], ROOT / "configs/quick.toml"
    for command in (
        *(["show", path], ["compare", good, path], ["compare", "--aa", path], ["history", path], ["report", path]),
        *(["baseline", "set", path], ["baseline", "show", path], ["baseline", "clear", path], ["run", path]),
        *(["run", "--resume", path], ["run", quick, "--compare-to", path]),
        ["run", quick, "--output", path, "--dry-run", "--keep", "3"],
    ):
        check(command)
