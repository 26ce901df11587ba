from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

Program = Callable[..., CompletedProcess[str]]
NIGHTLY = next(Path("results/reference").glob("*-nightly"))


def test_times_need_a_gpu_and_the_code_does_not(program: Program) -> None:
    done = program("compilers")
    assert (done.returncode, done.stdout) == (4, "")
    assert "--static compares the machine code without a GPU" in done.stderr


@pytest.mark.parametrize(("problem", "kernel"), [("transpose", "transposeSmem"), ("constant", "constantUniform")])
def test_both_codes_without_a_gpu(program: Program, problem: str, kernel: str) -> None:
    done = program("compilers", problem, "--static", "--kernel", kernel, "--block", "16x16")
    if done.returncode == 2:
        assert 'pip install "smembench[cu13]"' in done.stderr
        pytest.skip("needs NVIDIA's compiler libraries")
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith(kernel))
    assert line.split()[-1].isdecimal()


def test_a_port_that_does_not_take_the_size_has_no_figures(program: Program) -> None:
    done = program("compilers", "transpose", "--static", "--kernel", "transposeHalfWarp", "--n", "65")
    if done.returncode == 2:
        pytest.skip("needs NVIDIA's compiler libraries")
    assert done.returncode == 0, done.stderr
    assert all(line.endswith(" / -") for line in done.stdout.splitlines() if line.startswith("transposeHalfWarp  "))
    told = "Not by CUDA C: transposeHalfWarp: the CUDA C port of transposeHalfWarp takes whole vectors only"
    assert told in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("compilers", "transpose", "--static", "--kernel", "transposeHalfWarp", "--block", "8x7"), "not 8x7"),
        (("compilers", "sort"), "PROBLEM 'sort': no such problem with ports"),
        (("compilers", "--kernel", "transposeSmemDyn"), "no such kernel with a port"),
        (("compilers", "--block", "2048x1", "--static"), "block 2048x1"),
        (("show", NIGHTLY, "--compilers"), "has nothing that --compilers shows"),
        (("show", NIGHTLY, "--limits", "--ladder"), "--ladder and --limits: give one of them"),
    ],
)
def test_wrong_use_is_refused_in_one_line(program: Program, arguments: tuple[object, ...], words: str) -> None:
    done = program(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_the_best_of_a_stored_run_beside_memcpy(program: Program) -> None:
    done = program("show", NIGHTLY, "--limits", "--markdown")
    assert done.returncode == 0, done.stderr
    assert "| over memcpy |" in done.stdout
