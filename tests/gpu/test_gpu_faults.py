"""Kernels that hang, read where they may not, do not compile or exhaust a real GPU: rows, and the run goes on."""

from __future__ import annotations

import csv
import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from smembench.devices.cuda_description import why_unusable

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(bool(why_unusable()), reason=str(why_unusable()))]

ROOT = Path(__file__).parents[2]
KERNELS = ROOT / "tests/faults/kernels"
COMMAND = [sys.executable, "-m", "smembench", "transpose", "--device", "cuda", "--block", "16x16", "--quick"]


@pytest.mark.parametrize(
    ("fault", "status", "reason"),
    [
        ("hangs", "timeout", "no answer within"),  # alone: until it is killed it takes the GPU's time
        pytest.param("illegal", "failed", "ILLEGAL_ADDRESS", marks=pytest.mark.untimed),
        pytest.param("wrong", "wrong_result", "elements differ", marks=pytest.mark.untimed),
        pytest.param("outside", "wrong_result", "the kernel wrote outside its output", marks=pytest.mark.untimed),
        pytest.param("meddles", "wrong_result", "the kernel wrote to its input in", marks=pytest.mark.untimed),
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


@pytest.mark.skipif(shutil.which("ncu") is None, reason="Nsight Compute is not on the PATH")
def test_random_requests_are_counted_as_predicted(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "warp_requests", "--requests", "60", str(tmp_path / "requests.csv")]
    paths = os.pathsep.join([str(ROOT / ".ci"), *sys.path])
    environment = os.environ | {"PYTHONPATH": paths}
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "requests are counted as explain predicts" in run.stdout
