from __future__ import annotations

from conftest import Program
from smembench.studies.lesson import LESSONS


def test_lessons_are_listed(program: Program) -> None:
    done = program("lesson")
    assert (done.returncode, done.stderr) == (0, "")
    heading, *lines, exercises = done.stdout.splitlines()
    assert heading == "lessons:"
    assert [line.split()[0] for line in lines] == list(LESSONS)
    assert exercises.endswith("smembench lesson solve")


def test_rows_that_need_a_gpu_say_so_and_the_others_are_shown(program: Program) -> None:
    done = program("lesson", "fence")
    assert done.returncode == 0, done.stderr
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
    assert done.stdout.count("needs a GPU") == 5
    assert "old in 6 of 24" in done.stdout
    assert done.stderr.splitlines()[-1] == "9 of 9: messages, both fences, read before"
