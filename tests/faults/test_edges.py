"""What comes in and goes out at the process's edges: streams, stored texts."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import ROOT, Program, Rows, heed_ctrl_c
from smembench.store import schema
from smembench.store.csv_files import table_text

EVIL = "\x1b[31mred\x9b0m\u202e"
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]")


@pytest.fixture(scope="module")
def evil(tmp_path_factory: pytest.TempPathFactory, rows: Rows) -> Path:
    """A stored run whose texts would control a terminal."""
    folder = tmp_path_factory.mktemp("evil")
    text = table_text(schema.COLUMNS, map(schema.to_fields, rows({"copyGmem": [1.0] * 30, "naiveGmem": []})))
    (folder / "cases.csv").write_text(text.replace("LaunchError", EVIL))
    device = {"name": "cuda:0", "kind": "cuda", "model": f"GPU {EVIL}"}
    run = {"schema_version": 1, "run_id": "run", "devices": [device], "versions": {"numba": EVIL}, "complete": True}
    (folder / "run.json").write_text(json.dumps(run | {"started_at_utc": "2026-01-02T03:04:05+00:00"}))
    return folder


@pytest.mark.parametrize(
    "command",
    ["show", "show --markdown", "show --latex", "compare --all", "compare --all --json", "history", "report -o -"],
)
def test_no_stored_text_controls_a_terminal(program: Program, evil: Path, command: str) -> None:
    name, *options = command.split()
    where = {"compare": [evil, evil], "history": [evil.parent]}.get(name, [evil])
    ran = program(name, *options, *where)
    assert ran.returncode in (0, 2, 5)
    assert RAW.findall(ran.stdout + ran.stderr) == []
    if "history" not in command and "compare" not in command:
        assert "x1b[31mred" in ran.stdout.replace("{[}", "[")


FULL = "stdout cannot be written (No space left on device); what was to be printed is lost\n"
LOST = "smembench: stdout is closed; what was to be printed is lost\n"


@pytest.mark.parametrize(("closed", "code"), [("<&- >&-", 1), ("<&- 2>&-", 0)])
def test_closed_streams_change_nothing_that_is_stored(tmp_path: Path, closed: str, code: int) -> None:
    """Files that are opened while 0, 1 or 2 is free would get what is printed."""
    sweep = "transpose --n 8 --device cpu --kernel memcpy --samples 3 --rounds 1 --max-seconds 0.1 --precision 90"
    ran = subprocess.run(
        ["bash", "-c", f"exec {sys.executable} -m smembench {sweep} --csv {tmp_path}/x.csv {closed}"],
        capture_output=True,
        timeout=60,
        env=os.environ | {"CUDA_VISIBLE_DEVICES": ""},
    )
    assert ran.returncode == code, ran.stderr
    assert b"Traceback" not in ran.stderr
    assert ran.stderr.decode().endswith(LOST) is (code == 1)
    lines = (tmp_path / "x.csv").read_text().splitlines()
    assert (len(lines), lines[0]) == (2, ",".join(schema.COLUMNS))


@pytest.mark.parametrize("closed", ["<&- >&-", "2>&-", "<&- >&- 2>&-"])
def test_a_program_with_closed_streams_measures_and_leaves_them_closed(tmp_path: Path, closed: str) -> None:
    code = f"""
import os
before = [fd for fd in range(3) if os.path.exists(f"/proc/self/fd/{{fd}}")]
import smembench
result = smembench.measure(problem="transpose", n=8, kernel="memcpy", device="cpu", rounds=1, max_seconds=0.01)
after = [fd for fd in range(3) if os.path.exists(f"/proc/self/fd/{{fd}}")]
with open({str(tmp_path / "out")!r}, "w") as file:
    print(*result["verified"], before == after, file=file)
"""
    env = os.environ | {"CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(ROOT)}
    subprocess.run(["bash", "-c", f'exec "$0" -c "$1" {closed}', sys.executable, code], env=env, timeout=60)
    assert (tmp_path / "out").read_text() == "True True\n"


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        ("list >&-", 1, LOST),
        ("--version >&-", 1, LOST),
        ("list >&- 2>&-", 1, ""),
        ("explain transposeSmem --html /dev/null --force >&-", 0, "wrote /dev/null\n"),  # prints nothing
        ("list | true", 0, ""),
    ],
)
def test_what_a_closed_stdout_loses_is_one_line_and_a_closed_pipe_none(command: str, code: int, message: str) -> None:
    arguments, pipe, reader = command.partition(" | ")
    line = f"set -o pipefail; {sys.executable} -m smembench {arguments}{pipe}{reader}"
    ran = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert (ran.returncode, ran.stderr) == (code, message)


BEGINS = "import os, smembench.__main__; os.kill(os.getpid(), 2)"
TEXT = """
import sys
import smembench.__main__
import smembench.cli.app

def stop():
    raise KeyboardInterrupt

def run():
    try:
        eval("stop()")
    except KeyboardInterrupt:
        print("kept")
        sys.exit(130)

smembench.cli.app.main = run
smembench.__main__.main()
"""


def test_ctrl_c_before_the_command_begins_is_one_line_and_its_exit_code() -> None:
    ran = subprocess.run([sys.executable, "-c", BEGINS], capture_output=True, text=True, preexec_fn=heed_ctrl_c)
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "smembench: interrupted\n")


def test_ctrl_c_in_code_made_of_text_does_not_end_the_process_by_the_signal(tmp_path: Path) -> None:
    (tmp_path / "command.py").write_text(TEXT)
    command = [sys.executable, "-m", "command"]
    env = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"}
    ran = subprocess.run(command, capture_output=True, text=True, env=env, preexec_fn=heed_ctrl_c)
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "kept\n", "")


def test_who_ignores_ctrl_c_goes_on_ignoring_it() -> None:
    def ignore() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    listed = [sys.executable, "-m", "smembench", "list"]
    with subprocess.Popen(listed, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=ignore) as process:
        for _ in range(10):
            time.sleep(0.1)
            process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60)[1] == b""
        assert process.returncode == 0


def test_a_fifo_that_nobody_uses_is_one_line(program: Program, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    measured = ("transpose", "--device", "cpu", "--n", 8, "--kernel", "memcpy", "--samples", 3, "--rounds", 1)
    for command in (("show", fifo), ("run", fifo), (*measured, "--csv", fifo, "--force")):
        ran = program(*command)
        assert (ran.returncode, ran.stdout, len(ran.stderr.splitlines())) == (2, "", 1)
        assert str(fifo) in ran.stderr
    assert fifo.is_fifo()


def test_too_few_open_files_are_one_line() -> None:
    measured = "transpose --device cpu --n 8 --kernel memcpy --samples 3 --rounds 1"
    few = f"ulimit -n 8; exec {sys.executable} -m smembench {measured}"
    ran = subprocess.run(["bash", "-c", few], capture_output=True, text=True, timeout=60, env=os.environ)
    assert (ran.returncode, ran.stdout, len(ran.stderr.splitlines())) == (2, "", 1), ran.stderr
    assert "Too many open files" in ran.stderr


def test_an_output_that_is_full_is_one_line_and_a_full_stderr_none() -> None:
    program = [sys.executable, "-m", "smembench"]
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run([*program, "list"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
        assert (ran.returncode, ran.stderr) == (1, f"smembench: {FULL}")
        assert subprocess.run([*program, "no such command"], stderr=full, timeout=60).returncode == 2


@pytest.mark.parametrize("printed", ["", "--json"])
def test_a_night_whose_stdout_is_full_or_not_read_is_compared(tmp_path: Path, printed: str) -> None:
    measured = "samples=3\nrounds=1\nmax_seconds=0.1\nprecision=90\n[[sweep]]\nproblem='transpose'\nkernel='memcpy'\n"
    (tmp_path / "tiny.toml").write_text(f"{measured}n=8\ndevice='cpu'\n")
    night = f"{sys.executable} -m smembench run tiny.toml --compare-to last --json-lines told {printed}"
    env = os.environ | {"PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""}
    for count, (output, lost) in enumerate([("> /dev/full", 1), ("| true", 0)], 1):
        line = f"set -o pipefail; {night} {output}"
        ran = subprocess.run(
            ["bash", "-c", line], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False
        )
        lines = (tmp_path / "told").read_text().splitlines()
        assert len(lines) == count
        verdict = json.loads(lines[-1])["exit_code"]  # a busy host may make the second night slower
        assert ran.returncode == (verdict or lost), ran.stderr
        assert ran.stderr.endswith(FULL) is (verdict < lost)
        assert len(list(tmp_path.glob("results/*/summary.md"))) == count
