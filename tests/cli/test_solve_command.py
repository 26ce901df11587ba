from __future__ import annotations

import json
import re
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from conftest import ROOT, Program
from smembench.studies.solve.exercises import EXERCISES

pytest.importorskip("cuda.bindings.nvjitlink")


@pytest.fixture
def solve(program: Program, tmp_path: Path) -> Program:
    def run(*words: object) -> CompletedProcess[str]:
        done = program("lesson", "solve", *words, cwd=tmp_path)
        assert "--json" in words or all(len(line) <= 80 for line in (done.stdout + done.stderr).splitlines())
        return done

    return run


def states(text: str) -> dict[str, str]:
    return {item["exercise"]: item["state"] for item in json.loads(text)["exercises"]}


def test_an_exercise_is_written_graded_and_solved(solve: Program, tmp_path: Path) -> None:
    file = tmp_path / "padding.py"
    assert solve("padding").stdout.startswith("padding.py: written.")
    assert file.read_text() == EXERCISES["padding"].file.read_text()

    untouched = solve("padding")
    assert untouched.returncode == 1
    assert (
        untouched.stdout
        == (ROOT / "smembench/studies/solve/README.md").read_text().split("```")[3].partition("smembench:")[0].lstrip()
    )
    assert untouched.stderr == "smembench: padding.py: not solved; --hint prints a hint\n"

    file.write_text(file.read_text().replace("(32, 32)", "(32, 33)"))
    edited = file.read_bytes()
    solved = solve("padding.py")
    assert (solved.returncode, solved.stderr) == (0, "")
    heading, *figures, following = solved.stdout.splitlines()
    assert heading == "padding.py: solved"
    assert [line.split() for line in figures] == [
        ["before", "now"],
        ["n-way", "bank", "conflict", "32", "1"],
        ["sectors", "per", "request", "4", "4"],
    ]
    assert following == "next: smembench lesson solve coalescing"
    assert file.read_bytes() == edited
    assert [*tmp_path.iterdir()] == [file]


def test_progress_is_that_of_the_files(solve: Program, tmp_path: Path) -> None:
    assert set(states(solve("--json").stdout).values()) == {""}
    for name in ("coalescing", "bounds", "race"):
        solve(name)
    bounds = tmp_path / "bounds.py"
    bounds.write_text(f"{EXERCISES['bounds'].solution.read_text()}# {tmp_path}, so that no other test has solved it\n")
    with (tmp_path / "race.py").open("a") as race:
        race.write("# a thought\n")
    assert states(solve("--json").stdout)["bounds"] == "begun"
    assert solve("bounds").returncode == 0
    result = states(solve("--json").stdout)
    assert (result["coalescing"], result["bounds"], result["race"], result["tiling"]) == (
        "written",
        "solved",
        "begun",
        "",
    )
    bounds.write_text(bounds.read_text() + "# another\n")
    assert states(solve("--json").stdout)["bounds"] == "begun"
    _, *lines, following = solve().stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(EXERCISES)
    assert following.endswith(" coalescing")


def test_the_last_one_says_that_all_are_solved(solve: Program, tmp_path: Path) -> None:
    (tmp_path / "course").mkdir()
    for name, exercise in EXERCISES.items():
        (tmp_path / f"course/{name}.py").write_text(exercise.solution.read_text())
        done = solve(f"course/{name}.py")
        assert done.returncode == 0, done.stdout
        assert name != "tiling" or re.search(r"loads from global memory +16384 +1024\n", done.stdout)
    assert done.stdout.splitlines()[-1] == "all exercises are solved"


def test_hints_and_solutions_are_printed_when_asked_for(solve: Program, tmp_path: Path) -> None:
    for name, exercise in EXERCISES.items():
        assert " ".join(solve(name, "--hint").stdout.split()) == exercise.hint
        assert solve(name, "--solution").stdout == exercise.solution.read_text()
    assert [*tmp_path.iterdir()] == []


def test_nothing_is_overwritten(solve: Program, tmp_path: Path) -> None:
    (tmp_path / "race.py").symlink_to(tmp_path / "nowhere")
    (tmp_path / "bounds.py").mkdir()
    for name in ("race", "bounds"):
        done = solve(name)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == f"smembench: {name}.py: File exists\n"
    assert not (tmp_path / "nowhere").exists()


def test_a_grade_as_json(solve: Program) -> None:
    assert json.loads(solve("bounds", "--json").stdout)["written"]
    grade = json.loads(solve("bounds", "--json").stdout)
    assert (grade["exercise"], grade["solved"], grade["right"]) == ("bounds", False, False)
    assert [item["line"] for item in grade["faults"]] == [None, 20]
    assert grade["figures"] == {"mistakes": 2}
