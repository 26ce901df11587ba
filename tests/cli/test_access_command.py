"""``smembench access`` where there is no GPU: it cannot measure, and says what can be done all the same."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Program = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize("flags", [(), ("--stride", "1:32"), ("--kernel", "serialAccess"), ("--dry-run",)])
def test_without_a_gpu_one_line_names_the_way_out(program: Program, flags: tuple[str, ...]) -> None:
    ran = program("access", *flags)
    assert (ran.returncode, ran.stdout) == (4, "")
    (line,) = ran.stderr.splitlines()
    assert "only on a GPU" in line
    assert "smembench explain needs none" in line


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--device", "cpu"), "not on cpu"),
        (("--kernel", "setRowReadColumn"), "did you mean setRowReadCol"),
        (("--passes", "0"), "below the least allowed value 1"),
        (("--dtype", "float16"), "there are: int32, float32, int64, float64"),
        (("--stride", "x"), "'x' is not a positive integer"),
    ],
)
def test_bad_input_is_one_line(program: Program, flags: tuple[str, ...], words: str) -> None:
    ran = program("access", *flags)
    assert (ran.returncode, ran.stdout) == (2, "")
    (line,) = ran.stderr.splitlines()
    assert words in line


def test_a_file_with_a_size_of_another_problem_is_refused(program: Program, tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text('[[sweep]]\nproblem = "access"\nnx = 4\n')
    ran = program("run", file, "--output", tmp_path)
    assert ran.returncode == 2
    assert "access has no size nx; it has passes, n" in ran.stderr


def test_explain_predicts_what_access_would_measure(program: Program) -> None:
    explained = json.loads(program("explain", "setRowReadColDyn", "--json", "--cc", "9.0").stdout)
    assert explained["case_id"] == "access/setRowReadColDyn/cuda:0/numba/int32/256x24576/b32x32/pad0/warm"
    shared = explained["shared"]
    assert [(access["kind"], access["conflict_degree"]) for access in shared] == [("store", 1.0), ("load", 32.0)]
