"""Kernels that hang, read where they may not, do not compile or exhaust a real GPU: rows, and the run goes on."""

from __future__ import annotations

import csv
import io
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import held_locks
from smembench.devices.cuda import why_unusable

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(bool(why_unusable()), reason=str(why_unusable()))]

KERNELS = Path(__file__).parents[1] / "faults" / "kernels"
COMMAND = [sys.executable, "-m", "smembench", "transpose", "--device", "cuda", "--block", "16x16", "--quick"]


@pytest.mark.parametrize(
    ("fault", "status", "reason"),
    [
        ("hangs", "timeout", "no answer within"),  # alone: until it is killed it takes the GPU's time
        pytest.param("illegal", "failed", "ILLEGAL_ADDRESS", marks=pytest.mark.untimed),
        pytest.param("wrong", "wrong_result", "elements differ", marks=pytest.mark.untimed),
        pytest.param("outside", "wrong_result", "the kernel wrote outside its output", marks=pytest.mark.untimed),
        pytest.param("uncompilable", "failed", "TypingError", marks=pytest.mark.untimed),
        pytest.param("exhausts", "failed", "OUT_OF_MEMORY", marks=pytest.mark.untimed),
    ],
)
def test_a_fault_is_a_row_and_the_others_are_measured(fault: str, status: str, reason: str) -> None:
    run = subprocess.run(
        [*COMMAND, "--n", "64", "--kernel", f"copyGmem,{fault},naiveGmem", "--timeout", "8", "--csv", "-", "--no-lock"],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "SMEMBENCH_KERNELS": str(KERNELS / f"cuda_{fault}.py")},
        check=False,
    )
    rows = {row["kernel"]: row for row in csv.DictReader(io.StringIO(run.stdout))}
    assert run.returncode == 1, run.stderr
    assert rows[fault]["status"] == status, rows[fault]["reason"]
    assert reason.lower() in rows[fault]["reason"].lower()
    assert rows[fault]["elapsed_ms"] == ""
    assert rows["copyGmem"]["status"] == rows["naiveGmem"]["status"] == "ok"


def test_a_second_run_is_refused_with_the_holder_named_and_may_wait() -> None:
    others = held_locks()
    first = subprocess.Popen(
        [*COMMAND, "--n", "8192", "--samples", "100000", "--max-seconds", "6", "--kernel", "naiveGmem"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        deadline = time.monotonic() + 60
        while held_locks() <= others:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        refused, waited = (
            subprocess.run([*COMMAND, "--n", "64", *more], capture_output=True, text=True, timeout=60, check=False)
            for more in ([], ["--wait"])
        )
    finally:
        first.kill()  # ended by itself where the second one was let wait
        first.communicate(timeout=60)
    assert refused.returncode == 4
    assert f"process {first.pid}" in refused.stderr
    assert "--no-lock" in refused.stderr
    assert waited.returncode == 0, waited.stderr


def test_verification_catches_a_missing_barrier() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "smembench", "lesson", "barrier", "--runs", "10"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    counts = re.findall(r"wrong in (\d+) of 10 runs", run.stdout)
    assert counts[0] == "0"
    assert int(counts[1]) > 0


@pytest.mark.skipif(shutil.which("ncu") is None, reason="Nsight Compute is not on the PATH")
def test_predictions_agree_with_the_counters() -> None:
    kernels = "naiveGmem,transposeSmem,transposeSmemPad,transposeSmemUnroll"
    run = subprocess.run(
        [
            *(sys.executable, "-m", "smembench", "explain", kernels, "--measure"),
            *("--block", "32x32,16x16", "--dtype", "float32,float64", "--n", "512"),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "56 of 56 predictions agree" in run.stdout
