"""``smembench ladder`` as users run it."""

from __future__ import annotations

import csv
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Program = Callable[..., subprocess.CompletedProcess[str]]

FAST = ("--samples", 3, "--rounds", 1, "--max-seconds", 0.2, "--warmup", 0)


@pytest.mark.slow
def test_the_climb_on_a_cpu(program: Program, tmp_path: Path) -> None:
    path = tmp_path / "ladder.csv"
    ran = program("ladder", "transpose", "--n", 64, *FAST, "--csv", path)
    assert ran.returncode == 0, ran.stderr
    assert "no GPU is usable" in ran.stderr
    for words in ("what changes", "naiveGmem", "transposeSmemPad", "memcpy", "the ceiling", "The fastest is"):
        assert words in ran.stdout
    assert "\x1b" not in ran.stdout
    assert max(map(len, ran.stdout.splitlines())) <= 80
    with path.open(newline="") as file:
        kernels = {record["kernel"] for record in csv.DictReader(file)}
    assert kernels == {"memcpy", "naiveGmem", "transposeSmem", "transposeSmemPad"}
    shown = program("show", path, "--ladder", PYTHONIOENCODING="ascii")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "what changes" in shown.stdout
    assert shown.stdout.isascii()


def test_what_would_run(program: Program) -> None:
    ran = program("ladder", "transpose", "--device", "cpu", "--dry-run", "--dtype", "float16,float64", "--n", "8,16")
    assert ran.returncode == 0
    assert len(ran.stdout.splitlines()) == 2 * 2 * (1 + 3 * 2)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ("ladder sort", 2, "ladder 'sort' transpose, matmul"),
        ("ladder matmull", 2, "'matmull' did you mean matmul?"),
        ("ladder transpose --device tpu", 2, "--device 'tpu' cuda:1"),
        ("ladder transpose --n 0", 2, "--n '0'"),
        ("ladder matmul --dtype float16", 2, "--dtype 'float16' float64"),
        ("ladder transpose --device cuda", 4, "device cuda doctor"),
        ("show results/reference --ladder --documents", 2, "--documents and --ladder: give one of them"),
    ],
)
def test_what_cannot_be_climbed_is_refused_in_one_line(program: Program, arguments: str, code: int, words: str) -> None:
    ran = program(*arguments.split())
    assert (ran.returncode, ran.stdout) == (code, "")
    (line,) = ran.stderr.splitlines()
    assert line.startswith("smembench: ")
    assert [word for word in words.split() if word not in line] == []
