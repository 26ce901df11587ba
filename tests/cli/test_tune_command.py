from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

Program = Callable[..., CompletedProcess[str]]


def test_the_best_case_can_be_run(program: Program, tmp_path: Path) -> None:
    best = tmp_path / "best.toml"
    quick = ("--samples", 3, "--rounds", 1, "--max-seconds", 0.05, "--warmup", 0)
    done = program("tune", "matmul", "--n", 40, "--device", "cpu", "--kernel", "cpu", "-o", best, *quick)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("matrix multiplication 40x40x40 float32 on cpu: the finalists\n")
    assert "candidates" in done.stderr
    assert program("run", best, "--dry-run").stdout.startswith("matmul/cpu/cpu/numba/float32/40x40x40/")


def test_a_dry_run_for_a_gpu_needs_none(program: Program) -> None:
    done = program("tune", "transpose", "--device", "cuda", "--kernel", "transposeSmemPad", "--n", 64, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert all(line.startswith("transpose/transposeSmemPad/cuda:0/") for line in done.stdout.splitlines())
    assert "nothing was measured" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("sort",), "tune 'sort': no such problem with kernels to choose from"),
        (("transpose", "--dtype", "int8"), "--dtype 'int8': no such element type"),
        (("matmul", "--kernel", "tild", "--device", "cpu"), "did you mean tiled?"),
        (("transpose", "--kernel", "copyGmem", "--device", "cpu"), "none of them is a candidate"),
        (("transpose", "-o", "/no/such/best.toml"), "--output /no/such/best.toml: there is no folder /no/such"),
    ],
)
def test_wrong_use_is_refused_in_one_line(program: Program, arguments: tuple[str, ...], words: str) -> None:
    done = program("tune", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert "Traceback" not in done.stderr
