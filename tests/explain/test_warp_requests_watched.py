"""A long count under ncu: progress by launch, and Ctrl-C, with a script in place of ncu."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from warp_requests.watched import watched

from smembench.model.errors import UsageError

# Runs the child, and gives the number of each launch that it said as its count.
NCU = f"""#!{sys.executable}
import subprocess, sys
ran = subprocess.Popen(sys.argv[sys.argv.index("off") + 1 :], stdout=subprocess.PIPE, text=True)
print('==PROF== Connected to process')
said = []
for line in ran.stdout:
    print(line, end="", flush=True)
    said.append(line.split()[1])
print('"Metric Name","Metric Value"')
for number in said:
    print(f'"{{sys.argv[sys.argv.index("--metrics") + 1]}}","{{number}}"')
"""
CHILD = """
import sys, time
from pathlib import Path
from warp_requests.watched import say_launched
for number in range(1, int(sys.argv[1]) + 1):
    if Path(sys.argv[2]).exists():
        break
    say_launched(number)
    time.sleep(float(sys.argv[3]))
"""


@pytest.fixture
def stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that ends the child; ncu is the script above."""
    (tmp_path / "ncu").write_text(NCU)
    (tmp_path / "ncu").chmod(0o755)
    (tmp_path / "launches.py").write_text(CHILD)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    return tmp_path / "stop"


def test_each_launch_is_told_when_it_is_done(stop: Path) -> None:
    reported: list[int] = []
    child = ["launches", "3", str(stop), "0"]
    assert watched(child, ["m"], stop, reported.append, launches=3) == ({"m": [1.0, 2.0, 3.0]}, False)
    assert reported == [1, 2, 3]


def test_a_count_that_lacks_launches_is_an_error(stop: Path) -> None:
    child = ["launches", "3", str(stop), "0"]
    with pytest.raises(UsageError, match=r"^ncu gave 3 of 4 figures of m: ==PROF== Connected"):
        watched(child, ["m"], stop, lambda number: None, launches=4)


def test_ctrl_c_keeps_what_was_counted(stop: Path) -> None:
    def interrupt(number: int) -> None:
        if number == 5:
            raise KeyboardInterrupt

    child = ["launches", "1000", str(stop), "0.02"]
    result, cut = watched(child, ["m"], stop, interrupt, launches=1000)
    assert cut
    assert 5 <= len(result["m"]) < 1000


def test_ctrl_c_again_ends_the_child_at_once(stop: Path) -> None:
    def interrupt(number: int) -> None:
        raise KeyboardInterrupt

    stop.mkdir()  # it was made by the first
    child = ["launches", "1000", str(stop / "another"), "0.02"]
    with pytest.raises(KeyboardInterrupt):
        watched(child, ["m"], stop, interrupt, launches=1000)
