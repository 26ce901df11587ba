from __future__ import annotations

from pathlib import Path

from conftest import QUICK, Program


def test_the_best_case_can_be_run(program: Program, tmp_path: Path) -> None:
    best = tmp_path / "best.toml"
    done = program("tune", "matmul", "--n", 40, "--device", "cpu", "--kernel", "cpu", "-o", best, *QUICK)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("matrix multiplication 40x40x40 float32 on cpu: the finalists\n")
    assert "candidates" in done.stderr
    assert program("run", best, "--dry-run").stdout.startswith("matmul/cpu/cpu/numba/float32/40x40x40/")


def test_a_dry_run_for_a_gpu_needs_none(program: Program) -> None:
    done = program("tune", "transpose", "--device", "cuda", "--kernel", "transposeSmemPad", "--n", 64, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert all(line.startswith("transpose/transposeSmemPad/cuda:0/") for line in done.stdout.splitlines())
    assert "nothing was measured" in done.stderr
