"""Lessons: on a machine without a GPU they say that they need one."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

Program = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["barrier"], 4, "device cuda"),
        (["barier"], 2, "did you mean barrier?"),
        (["barrier", "--runs", "0"], 2, "--runs"),
        (["barrier", "--device", "tpu"], 2, "tpu"),
        (["barrier", "--device", "cpu"], 2, "--device cpu: lessons need a GPU"),
        (["barrier", "--device", "auto"], 2, "--device auto: lessons need a GPU"),
        (["barrier", "--block", "32"], 2, "--block '32'"),
    ],
)
def test_what_cannot_be_taught_is_refused_in_one_line(
    program: Program, arguments: list[str], code: int, said: str
) -> None:
    ran = program("lesson", *arguments)
    (line,) = ran.stderr.splitlines()
    assert (ran.returncode, ran.stdout) == (code, "")
    assert said in line
