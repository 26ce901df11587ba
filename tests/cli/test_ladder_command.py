"""``smembench ladder`` as users run it."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import DOCUMENTS, QUICK, Program, records


@pytest.mark.slow
def test_the_climb_on_a_cpu(program: Program, tmp_path: Path) -> None:
    path = tmp_path / "ladder.csv"
    ran = program("ladder", "transpose", "--n", 64, *QUICK, "--csv", path)
    assert ran.returncode == 0, ran.stderr
    assert "no GPU is usable" in ran.stderr
    for words in ("what changes", "naiveGmem", "transposeSmemPad", "memcpy", "the ceiling", "The fastest step is"):
        assert words in ran.stdout
    assert "\x1b" not in ran.stdout
    assert max(map(len, ran.stdout.splitlines())) <= 80
    kernels = {row["kernel"] for row in records(path.read_text())}
    assert kernels == {"memcpy", "naiveGmem", "transposeSmem", "transposeSmemPad"}
    shown = program("show", path, "--ladder")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "what changes" in shown.stdout


def test_what_would_run(program: Program) -> None:
    ran = program("ladder", "transpose", "--device", "cpu", "--dry-run", "--dtype", "float16,float64", "--n", "8,16")
    assert ran.returncode == 0
    assert len(ran.stdout.splitlines()) == 2 * 2 * (1 + 3 * 2)


def test_what_a_step_changes(program: Program) -> None:
    ran = program("ladder", "transpose", "--diff", "transposesmempad", "--run", DOCUMENTS)
    assert (ran.returncode, ran.stderr) == (0, "")
    for words in ("width: 32 -> 33", "wavefronts per shared load request", "occupancy", "1.", "×"):
        assert words in ran.stdout
    assert "\x1b" not in ran.stdout
    assert max(map(len, ran.stdout.splitlines())) <= 80


def test_without_a_gpu_there_is_no_gain(program: Program) -> None:
    ran = program("ladder", "matmul", "--diff", "tiled", "--n", 128)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "128×128×128 float32 · compute capability 9.0" in ran.stdout
    assert "The gain is not measured" in ran.stdout.splitlines()[-1]


def test_a_kernel_of_a_file_comes_after_the_last_step(program: Program, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from dataclasses import replace\n"
        "from smembench.kernels.transpose.cuda import naive_gmem\n"
        "KERNEL = replace(naive_gmem.KERNEL, name='mine', ladder='a first try')\n"
    )
    ran = program("ladder", "transpose", "--diff", "mine", "--n", 64, SMEMBENCH_KERNELS=str(file))
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.splitlines()[0] == "mine against transposePaired"
