"""Kernels that fail on purpose, through the command line: each becomes a row, and the run goes on."""

from __future__ import annotations

import csv
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

KERNELS = Path(__file__).parent / "kernels"
QUICK = [
    *("--n", "64", "--device", "cpu", "--block", "16x16"),
    *("--samples", "3", "--rounds", "2", "--precision", "90", "--max-seconds", "1"),
]


def smembench(*arguments: str, kernels: tuple[str, ...] = (), **options: float) -> subprocess.CompletedProcess[str]:
    files = os.pathsep.join(str(KERNELS / f"{name}.py") for name in kernels)
    return subprocess.run(
        [sys.executable, "-m", "smembench", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "SMEMBENCH_KERNELS": files},
        check=False,
    )


def rows_by_kernel(output: str) -> dict[str, dict[str, str]]:
    return {row["kernel"]: row for row in csv.DictReader(io.StringIO(output))}


@pytest.mark.slow
def test_every_fault_is_a_row_and_the_others_are_measured() -> None:
    expected = {
        "hangs": ("timeout", "no answer within"),
        "dies": ("failed", "the worker process was killed by SIGKILL"),
        "raises": ("failed", "MemoryError: out of memory on purpose"),
        "wrong": ("wrong_result", "elements differ"),
        "outside": ("wrong_result", "the kernel wrote outside its output"),
        "tires": ("wrong_result", "right once, wrong after the timed launches: "),
        "signals": ("failed", "the worker process was killed by signal 40"),
        "babbles": ("failed", "ValueError: \\x1b[31mred\\udc80"),
        "mumbles": ("failed", "Unspeakable"),
    }
    run = smembench(
        # Long enough for the others to be compiled on a busy machine.
        *("transpose", *QUICK, "--kernel", ",".join(("naiveGmem", *expected)), "--timeout", "8", "--csv", "-"),
        kernels=tuple(path.stem for path in KERNELS.glob("cpu_*.py")),
    )
    rows = rows_by_kernel(run.stdout)
    assert run.returncode == 1
    for fault, (status, reason) in expected.items():
        assert rows[fault]["status"] == status
        assert reason in rows[fault]["reason"]
        assert rows[fault]["elapsed_ms"] == rows[fault]["effective_gb_s"] == ""
        assert f"{fault}: {status}" in " ".join(run.stderr.split())
    assert {name for name, row in rows.items() if row["status"] == "ok"} == {"memcpy", "naiveGmem"}
    assert int(rows["naiveGmem"]["rounds"]) >= 2
    assert "Traceback" not in run.stderr


def test_a_kernel_file_that_is_not_there_is_refused() -> None:
    run = smembench("transpose", *QUICK, kernels=("no_such_file",))
    assert run.returncode == 2
    assert "no_such_file" in run.stderr
    assert len(run.stderr.splitlines()) == 1
