"""Kernels that fail on purpose, through the command line: each becomes a row, and the run goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from conftest import ROOT, Program, assert_failed, records
from smembench.kernels import files
from smembench.model.errors import UsageError

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
    kernels = ",".join(("declares", *EXPECTED))
    # The timeout is long enough for the others on a busy machine.
    flags = ("--kernel", kernels, "--timeout", 5, "--csv", "-")
    run = program("transpose", *QUICK, *flags, SMEMBENCH_KERNELS=FAULTS)
    rows = {row["kernel"]: row for row in records(run.stdout)}
    screen = " ".join(run.stderr.split())
    assert run.returncode == 1
    assert_failed(rows, EXPECTED)
    assert [fault for fault, (status, _) in EXPECTED.items() if f"{fault}: {status}" not in screen] == []
    assert {name for name, row in rows.items() if row["status"] == "ok"} == {"memcpy", "declares"}
    assert int(rows["declares"]["rounds"]) >= 2
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


def test_a_kernel_file_whose_import_does_not_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "mine.py"
    path.write_text("while 1: pass\n")
    monkeypatch.setattr(files, "_SECONDS", 0.2)
    with pytest.raises(UsageError, match=r"mine.py: its import did not end within 0.2 s"):
        files.load(str(path))


def test_what_imports_a_kernel_file_ends_with_its_parent(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        f"import os, pathlib\npathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(os.getpid()))\nwhile 1: pass\n"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT), "SMEMBENCH_KERNELS": str(path)}
    listing = subprocess.Popen([sys.executable, "-m", "smembench", "list"], env=env, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 30
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    child = Path("/proc", (tmp_path / "pid").read_text(), "cmdline")
    listing.kill()
    listing.wait()
    try:
        while child.exists() and child.read_bytes():
            assert time.monotonic() < deadline, "the import outlived its parent"
            time.sleep(0.02)
    finally:
        with suppress(ProcessLookupError):
            os.kill(int(child.parent.name), signal.SIGKILL)


@pytest.mark.parametrize(("code", "how"), [("os._exit(3)", "exited with 3"), ("os.abort()", "was killed by SIGABRT")])
def test_a_kernel_file_that_ends_its_process_is_refused_and_says_how(
    program: Program, tmp_path: Path, code: str, how: str
) -> None:
    path = tmp_path / "mine.py"
    path.write_text(f"import os\n{code}\n")
    run = program("transpose", *QUICK, SMEMBENCH_KERNELS=path)
    assert (run.returncode, len(run.stderr.splitlines())) == (2, 1)
    assert f"mine.py: the process that imported it {how}" in run.stderr
