from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from campaign import CAMPAIGN
from conftest import QUICK, Program, heed_ctrl_c

at_length = pytest.mark.skipif(
    CAMPAIGN == 1, reason="tests/faults/test_cut_off.py has SIGTERM; this needs CAMPAIGN > 1"
)
SLOW = """
import time
from pathlib import Path
from smembench.kernels.kernel import Kernel
from smembench.kernels.program import HostFunction

def kernel(name):
    def launch(out, inp, nx, ny):
        out[:] = inp.reshape(int(ny), int(nx)).T.ravel()
        time.sleep(0.05)
        with Path(__file__).with_name(name).open("a") as launched:
            launched.write(".")

    return Kernel("transpose", name, "cpu", "slow", lambda case: HostFunction(launch), "transpose", blocks=False)

KERNELS = [kernel("first"), kernel("second")]
"""


def test_the_best_case_can_be_run(program: Program, tmp_path: Path) -> None:
    best = tmp_path / "best.toml"
    done = program("tune", "matmul", "--n", 40, "--device", "cpu", "--kernel", "cpu", "-o", best, *QUICK)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("matrix product 40×40×40 float32 on cpu: the finalists\n")
    assert "1 candidate; ruled out" in done.stderr
    assert program("run", best, "--dry-run").stdout.startswith("matmul/cpu/cpu/numba/float32/40x40x40/")


def test_a_dry_run_for_a_gpu_needs_none(program: Program) -> None:
    done = program("tune", "transpose", "--device", "cuda", "--kernel", "naiveGmem", "--n", 64, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert all(line.startswith("transpose/naiveGmem/cuda:0/") for line in done.stdout.splitlines())
    assert "nothing was measured" in done.stderr


def test_a_missing_gpu_is_reported_before_the_search(program: Program) -> None:
    done = program("tune", "transpose", "--device", "cuda")
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr.startswith("smembench: device cuda:0: no CUDA d")
    assert done.stderr.count("\n") == 1  # no search before it


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=at_length)])
def test_an_interrupt_shows_what_was_measured_and_says_what_was_not_written(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    kernels, best = tmp_path / "slow.py", tmp_path / "best.toml"
    kernels.write_text(SLOW)
    options = ("--device", "cpu", "--n", "8", "--kernel", "first,second", "--samples", "1000", "-o", str(best))
    process = subprocess.Popen(
        [sys.executable, "-m", "smembench", "tune", "transpose", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "SMEMBENCH_KERNELS": str(kernels), "CUDA_VISIBLE_DEVICES": "", "COLUMNS": "100"},
        preexec_fn=heed_ctrl_c,
    )
    launched = (tmp_path / "first", tmp_path / "second")
    deadline = time.monotonic() + 60
    while not all(path.exists() and path.stat().st_size > 4 for path in launched):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    assert out.startswith("matrix transpose 8×8 float32 on cpu: 2 of 2 candidates, measured quickly\n")
    assert set(out.split()) >= {"candidate", "first", "second"}
    assert "the fastest" not in out
    message = err.splitlines()[-1]
    assert message.startswith("smembench: interrupted: transpose/")
    assert message.endswith(f"is the best so far among 2 of 2 candidates, measured quickly; {best} was not written")
    assert not best.exists()


@pytest.mark.parametrize(
    ("problem", "sizes", "shape"),
    [
        (
            "matmul",
            ("--m", 16, "--n", 512, "--k", 256, "--dtype", "bfloat16", "--kernel", "fewRows,heuristic"),
            "16x256x512",
        ),
        ("transpose", ("--nx", 64, "--ny", 32, "--kernel", "naiveGmem"), "32x64"),
    ],
)
def test_sides_differ(program: Program, problem: str, sizes: tuple[object, ...], shape: str) -> None:
    done = program("tune", problem, "--device", "cuda", *sizes, "--dry-run")
    assert {line.split("/")[5] for line in done.stdout.splitlines()} == {shape}


def test_a_side_that_a_problem_does_not_have(program: Program) -> None:
    done = program("tune", "transpose", "--m", 16, "--device", "cpu", "--dry-run")
    assert (done.returncode, done.stderr) == (
        2,
        "smembench: --m: transpose has no such size, only --n and --nx and --ny\n",
    )
