"""Exercises: given files are graded for their reason, solutions are solved, and wrong answers get a fair verdict."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from smembench.model.errors import SmembenchError
from smembench.studies.solve import grade as grading
from smembench.studies.solve.exercise import Exercise
from smembench.studies.solve.exercises import EXERCISES
from smembench.studies.solve.grade import Grade, graded, graded_apart

pytest.importorskip("cuda.bindings.nvjitlink")

NAMED = [pytest.param(item, id=item.name) for item in EXERCISES.values()]
Edits = Sequence[tuple[str, str]]


def edited(text: str, edits: Edits) -> str:
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return text


def grade_of(name: str, folder: Path, text: str) -> Grade:
    path = folder / f"{name}.py"
    path.write_text(text)
    return graded(EXERCISES[name], path)


def sentences(grade: Grade) -> list[str]:
    return [f"line {fault.line}: {fault.text}" if fault.line else fault.text for fault, _ in grade.faults]


def line_of(text: str, part: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if part in line)


REASONS = {
    "coalescing": ["a warp's load moves 32 sectors", "a warp's store moves 32 sectors"],
    "bounds": ["wrong result: out[0]", "out of bounds: thread 103 loads inp[1000], and inp has 1000 elements"],
    "race": ["race: thread 0 (lane 0 of warp 0) stores an element of row, which thread 127 "],
    "barrier": ["divergent barrier: 12 of the block's 128 threads"],
    "tiling": ["warps load 16384 times from global memory; wanted at most 1024"],
    "padding": ["32-way bank conflict: threads 0 and 1 load different words of bank 0; wanted none"],
    "swizzle": ["32-way bank conflict: threads 0 and 1 load different words of bank 0; wanted none"],
    "reduction": [
        "8-way bank conflict: threads 0 and 4 load",
        "8-way bank conflict: threads 0 and 4 store",
        "shared memory takes 600 wavefronts; wanted at most 200",
    ],
}


@pytest.mark.parametrize("exercise", NAMED)
def test_what_is_given_is_not_solved_for_its_reason(exercise: Exercise) -> None:
    grade = graded(exercise, exercise.file)
    assert not grade.solved
    assert grade.right == (exercise.name != "bounds")
    faults = [fault.text for fault, _ in grade.faults]
    assert [text[: len(words)] for text, words in zip(faults, REASONS[exercise.name], strict=True)] == REASONS[
        exercise.name
    ]


@pytest.mark.parametrize("exercise", NAMED)
def test_a_solution_is_solved_and_costs_what_is_demanded(exercise: Exercise) -> None:
    grade = graded(exercise, exercise.solution)
    assert sentences(grade) == []
    assert all(grade.figures[demand.name] <= most for demand, most in exercise.demands.items())
    assert grade.figures["mistakes"] == 0


@pytest.mark.parametrize("exercise", NAMED)
def test_files_fit_a_screen_and_a_solution_is_the_given_file_with_another_kernel(exercise: Exercise) -> None:
    given, solution = exercise.file.read_text(), exercise.solution.read_text()
    assert max(map(len, [*given.splitlines(), *solution.splitlines()])) <= 80
    assert f"smembench lesson solve {exercise.name}\n" in given
    for text in (given, solution):
        assert f"def {exercise.kernel}(" in text


RIGHT = [
    (
        "coalescing",
        [
            ("blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y", "blockIdx.x * 32 + cuda.threadIdx.y"),
            ("blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x", "blockIdx.y * 32 + cuda.threadIdx.x"),
        ],
    ),
    ("padding", [("(32, 33)", "(32, 32 + 1)")]),
    ("padding", [("(32, 33)", "(32, 35)")]),
    ("swizzle", [("tx ^ ty", "(tx + ty) % 32"), ("ty ^ tx", "(ty + tx) % 32")]),
]
"""Other answers: by name, edits of the solution."""

RACE = "race: thread "
BEYOND = "out of bounds: thread "
WRONG: list[tuple[str, Edits, list[str | tuple[str, str]]]] = [
    (
        "coalescing",
        [("inp[row, column]", "inp[column, row]")],
        [
            "wrong result: out[0, 1]",
            ("inp[column, row]", BEYOND),
            ("inp[column, row]", "a warp's load moves 32 sectors of 32 bytes; wanted 4"),
        ],
    ),
    ("bounds", [("        if i > 0:\n    ", "")], ["wrong result: out[0]: expected"]),
    (
        "bounds",
        [("        if i < inp.size - 1:\n    ", "")],
        ["wrong result: out[999]: expected", ("i + 1", BEYOND + "103 loads inp[1000]")],
    ),
    ("bounds", [("if i < inp.size:", "if 0 < i < inp.size:")], ["wrong result: out[0]: expected"]),
    ("bounds", [("i < inp.size:", "i <= inp.size:")], [("= inp[i]", BEYOND), ("out[i] =", BEYOND)]),
    ("race", [("= inp[y, t]\n        cuda.syncthreads()", "= inp[y, t]")], [("= inp", RACE)]),
    ("race", [("127 - t]\n        cuda.syncthreads()", "127 - t]")], [("= inp", RACE)]),
    ("race", [("syncthreads", "syncwarp")], [("= inp", RACE)]),
    (
        "race",
        [("out[y, t] =", "inp[y, t] = out[y, t] =")],
        ["wrong result: inp is changed, which the kernel should only"],
    ),
    ("barrier", [("        cuda.syncthreads()\n        if t", "        if t")], [("= inp", RACE)]),
    (
        "barrier",
        [
            (
                "        cuda.syncthreads()\n        if t",
                "            cuda.syncthreads()\n        else:\n            cuda.syncthreads()  # too\n        if t",
            )
        ],
        [("# too", "divergent barrier: 12 of the block's 128 threads")],
    ),
    ("barrier", [("if t < count:", "if t < 128:")], [("= inp", BEYOND + "116 loads inp[500]"), ("out[begin", BEYOND)]),
    (
        "tiling",
        [("[k, tx]\n        cuda.syncthreads()\n", "[k, tx]\n")],
        [("a_tile[ty, tx] =", RACE), ("b_tile[ty, tx] =", RACE)],
    ),
    (
        "tiling",
        [("else 0\n        cuda.syncthreads()", "else 0")],
        [("a_tile[ty, tx] =", RACE), ("b_tile[ty, tx] =", RACE)],
    ),
    ("tiling", [(" if inside else 0", "")], ["wrong result: c[", ("= a[", BEYOND), ("= b[", BEYOND)]),
    (
        "tiling",
        [("b_tile[ty, tx]", "b_tile[tx, ty]"), ("b_tile[k, tx]", "b_tile[tx, k]")],
        [("b_tile[tx, ty] =", "8-way bank conflict: threads 0 and 2 store"), ("b_tile[tx, k]", "8-way")],
    ),
    (
        "padding",
        [("(32, 33)", "(32, 34)")],
        [("out[y, x]", "2-way bank conflict: threads 0 and 16 load different words of bank 0; wanted none")],
    ),
    ("padding", [("(32, 33)", "(33, 32)")], [("out[y, x]", "32-way bank conflict: threads 0 and 1 load")]),
    ("padding", [("[tx, ty]", "[ty, tx]")], ["wrong result: out[0, 1]", ("out[y, x]", "nothing to load: thread ")]),
    (
        "padding",
        [("(32, 33)", "(32, 32)"), ("[tx, ty]", "[ty, tx]"), ("tile[ty, tx] =", "tile[tx, ty] =")],
        [("= inp", "32-way bank conflict: threads 0 and 1 store")],
    ),
    (
        "swizzle",
        [("ty ^ tx", "ty")],
        ["wrong result: out[0, 1]", ("out[y, x]", "nothing to load"), ("out[y, x]", "32-way")],
    ),
    (
        "swizzle",
        [("tx ^ ty", "tx | ty"), ("ty ^ tx", "ty | tx")],
        ["wrong result: out[", ("out[y, x]", "32-way bank conflict")],
    ),
    (
        "swizzle",
        [("(32, 32)", "(32, 33)"), ("tx ^ ty", "tx"), ("ty ^ tx", "ty")],
        ["a block takes 4224 bytes of shared memory; wanted at most 4096"],
    ),
    (
        "swizzle",
        [("tx ^ ty", "tx ^ (ty & 15)"), ("ty ^ tx", "ty ^ (tx & 15)")],
        [("out[y, x]", "2-way bank conflict: threads 0 and 16")],
    ),
    ("reduction", [("        cuda.syncthreads()\n", "")], [("+=", RACE)]),
    (
        "reduction",
        [
            ("while apart > 0:", "while apart == 128:"),
            ("t < apart", "t == 0"),
            ("part[t] += part[t + apart]", "for k in range(1, 256):\n                part[0] += part[k]"),
            ("apart //= 2", "apart = 0"),
        ],
        [("part[k]", "shared memory takes ")],
    ),
    (
        "reduction",
        [
            ("while apart > 0:", "while apart == 128:"),
            ("t < apart", "t > 0"),
            ("part[t] += part[t + apart]", "cuda.atomic.add(part, 0, part[t])"),
            ("apart //= 2", "apart = 0"),
        ],
        ["atomics on part: their wavefronts are not known"],
    ),
    (
        "reduction",
        [
            ("    while apart > 0:", "    total = float32(0)\n    while apart == 128:"),
            ("t < apart", "t == 0"),
            (
                "part[t] += part[t + apart]",
                "for k in range(i, min(i + 256, inp.size)):\n                total += inp[k]",
            ),
            ("apart //= 2", "apart = 0"),
            ("= part[0]", "= total"),
        ],
        [("inp[k]", "warps load 1024 times from global memory; wanted at most 32")],
    ),
    ("reduction", [("apart > 0", "apart > 1")], ["wrong result: out[0]"]),
    (
        "reduction",
        [(" if i < inp.size else float32(0)", "")],
        ["wrong result: out[3]: expected", ("inp[i]", BEYOND + "232")],
    ),
]
"""By name: edits of the solution, and how each fault begins, with a part of the line that it names."""


@pytest.mark.parametrize(("name", "edits", "verdict"), WRONG)
def test_a_wrong_answer_gets_a_teachers_verdict(
    name: str, edits: Edits, verdict: list[str | tuple[str, str]], tmp_path: Path
) -> None:
    text = edited(EXERCISES[name].solution.read_text(), edits)
    result = sentences(grade_of(name, tmp_path, text))
    expected = [item if isinstance(item, str) else f"line {line_of(text, item[0])}: {item[1]}" for item in verdict]
    assert [sentence[: len(words)] for sentence, words in zip(result, expected, strict=False)] == expected, result
    assert len(result) == len(expected), result


@pytest.mark.parametrize(("name", "edits"), RIGHT)
def test_another_answer_is_solved(name: str, edits: Edits, tmp_path: Path) -> None:
    text = edited(EXERCISES[name].solution.read_text(), edits)
    assert sentences(grade_of(name, tmp_path, text)) == []


BROKEN = [
    # edits of the solution of reduction, or all of it, and words of the one line that says what is wrong
    ("def f(:\n", "cannot be imported: SyntaxError: invalid syntax (reduction.py, line 1)"),
    ("x = 1\n1 / 0\n", "reduction.py, line 2: cannot be imported: ZeroDivisionError"),
    ("raise SystemExit(3)\n", "reduction.py, line 1: cannot be imported: SystemExit: 3"),
    ("", "has no function 'sum_blocks'; it has none"),
    ([("def sum_blocks", "def sum_up")], "has no function 'sum_blocks'; it has sum_up"),
    ([("(out, inp)", "(out, inp, n)")], "takes (out, inp, n); it is launched with 2 arrays"),
    ([("        apart //= 2\n", "")], "line {16}: a block runs more than 20000 instructions; end the loop"),
    ([("part[0]", "port[0]")], "line {port[0]}: Numba does not compile it: NameError: name 'port'"),
    ([("syncthreads", "syncthread")], "line {syncthread}: Numba does not compile it: module 'numba.cuda' has no"),
    ([("array(256,", "array(inp.size,")], "the shape of a shared or local array has to be constant"),
    ([("float32(0)", "'zero'")], "Numba does not compile it: "),
]


@pytest.mark.parametrize(("content", "words"), BROKEN)
def test_a_broken_file_gets_one_line(content: str | Edits, words: str, tmp_path: Path) -> None:
    text = content if isinstance(content, str) else edited(EXERCISES["reduction"].solution.read_text(), content)
    with pytest.raises(SmembenchError) as raised:
        grade_of("reduction", tmp_path, text)
    assert raised.value.exit_code == 1
    (line,) = str(raised.value).splitlines()
    before, _, rest = words.partition("{")
    part, _, after = rest.partition("}")
    expected = f"{before}{part if part.isdecimal() else line_of(text, part)}{after}" if part else words
    assert expected in line
    assert line.startswith(str(tmp_path / "reduction.py"))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("import os\nos._exit(0)\n", "the process that graded it exited with 0"),
        ("import os\nos.kill(os.getpid(), 11)\n", "the process that graded it was killed by SIGSEGV"),
        ("while True:\n    try: import time; time.sleep(9)\n    except BaseException: 0\n", "did not end within 2 s"),
        ("1 / 0\n", "line 1: cannot be imported: ZeroDivisionError: division by zero"),
    ],
)
def test_a_file_that_ends_its_process_or_never_ends_gets_one_line(
    content: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "within" in words:
        monkeypatch.setattr(grading, "_SECONDS", 2)
    path = tmp_path / "reduction.py"
    path.write_text(content)
    with pytest.raises(SmembenchError, match=words):
        graded_apart(EXERCISES["reduction"], path)


def test_a_grade_from_a_process_of_its_own_is_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "padding.py"
    path.write_text(f"print('mine')\n{EXERCISES['padding'].file.read_text()}")
    apart = graded_apart(EXERCISES["padding"], path)
    assert capsys.readouterr().err == "mine\n"
    assert apart == graded(EXERCISES["padding"], path)
