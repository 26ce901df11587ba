"""Kernels that fail on purpose, through the command line: each becomes a row, and the run goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import Program, assert_failed, records

FAULTS = Path(__file__).parent / "kernels" / "cpu_faults.py"
QUICK = ("--n", 64, "--device", "cpu", "--samples", 3, "--rounds", 2, "--precision", 90, "--max-seconds", 1)
EXPECTED = {
    "hangs": ("timeout", "no answer within"),
    "dies": ("failed", "the worker process was killed by SIGKILL"),
    "raises": ("failed", "MemoryError: out of memory on purpose"),
    "wrong": ("wrong_result", "elements differ"),
    "outside": ("wrong_result", "the kernel wrote outside its output"),
    "tires": ("wrong_result", "right once, wrong after the timed launches: "),
    "erases": ("wrong_result", "the kernel wrote to its input in"),
    "meddles": ("wrong_result", "the kernel wrote to its input in"),
    "mumbles": ("failed", "Unspeakable"),
    "babbles": ("failed", "ValueError: \\x1b[31mred\\udc80"),
    "signals": ("failed", "the worker process was killed by signal 40"),
}


@pytest.mark.slow
def test_every_fault_is_a_row_and_the_others_are_measured(program: Program) -> None:
    kernels = ",".join(("naiveGmem", "declares", *EXPECTED))
    # The timeout is long enough for the others to be compiled on a busy machine.
    flags = ("--block", "16x16", "--kernel", kernels, "--timeout", 8, "--csv", "-")
    run = program("transpose", *QUICK, *flags, SMEMBENCH_KERNELS=FAULTS)
    rows = {row["kernel"]: row for row in records(run.stdout)}
    said = " ".join(run.stderr.split())
    assert run.returncode == 1
    assert_failed(rows, EXPECTED)
    assert [fault for fault, (status, _) in EXPECTED.items() if f"{fault}: {status}" not in said] == []
    assert {name for name, row in rows.items() if row["status"] == "ok"} == {"memcpy", "naiveGmem", "declares"}
    assert int(rows["naiveGmem"]["rounds"]) >= 2
    assert "Traceback" not in run.stderr


def test_a_line_on_stderr_says_why_the_exit_code_is_1(program: Program) -> None:
    """Also where nothing else is told there."""
    run = program("transpose", *QUICK, "--kernel", "wrong", "--quiet", "--json", SMEMBENCH_KERNELS=FAULTS)
    assert run.returncode == 1
    start = "failed: 1 of 2 cases, the first of them transpose/wrong/cpu/numba/float32/64x64/warm: "
    assert [line[: len(start)] for line in run.stderr.splitlines()] == [start]


def test_a_kernel_file_that_is_not_there_is_refused(program: Program) -> None:
    run = program("transpose", *QUICK, SMEMBENCH_KERNELS="no_such_file.py")
    assert run.returncode == 2
    assert "no_such_file" in run.stderr
    assert len(run.stderr.splitlines()) == 1


@pytest.mark.parametrize(("code", "how"), [("os._exit(3)", "exited with 3"), ("os.abort()", "was killed by SIGABRT")])
def test_a_kernel_file_that_ends_its_process_is_refused_and_says_how(
    program: Program, tmp_path: Path, code: str, how: str
) -> None:
    path = tmp_path / "mine.py"
    path.write_text(f"import os\n{code}\n")
    run = program("transpose", *QUICK, SMEMBENCH_KERNELS=path)
    assert (run.returncode, len(run.stderr.splitlines())) == (2, 1)
    assert f"mine.py: the process that imported it {how}" in run.stderr
