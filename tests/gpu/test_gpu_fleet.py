"""A fleet of real GPUs: they do not disturb each other, one that idles is named, and a killed process is a row."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from campaign import CAMPAIGN
from conftest import records
from smembench.devices.cuda_description import gpu_count

pytest.importorskip("distributed", reason="the extra fleet is not installed")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(gpu_count() < 2, reason="there are not two GPUs")]

KERNELS = Path(__file__).parent / "kernels" / "idling.py"
CONFIG = Path(__file__).parent / "idling.toml"
GPUS = tuple(f"cuda:{index}" for index in range(gpu_count()))
PAIR = GPUS[:2]
BEFORE = 7
"""Fleets that a GPU's level is made of."""
DISTURBED = 0.005
"""The most by which a median may differ alone and together."""


def fleet(root: Path, *options: object, code: int = 0, idling: str = "=0") -> Path:
    """The folder of a fleet of all GPUs, or of those that the options name."""
    ran = subprocess.run(
        [sys.executable, "-m", "smembench", "fleet", "run", *map(str, options), "--output", root],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "SMEMBENCH_KERNELS": str(KERNELS), "SMEMBENCH_IDLING": idling},
        check=False,
    )
    assert ran.returncode == code, ran.stdout + ran.stderr
    return max(root.iterdir())


def shown(folder: Path) -> dict[str, Any]:
    """``fleet show --json``."""
    command = [sys.executable, "-m", "smembench", "fleet", "show", str(folder), "--json"]
    content: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, check=False).stdout)
    return content


def medians(folder: Path) -> dict[str, float]:
    """The median of each case in ms; its id names the GPU."""
    rows = [row for path in folder.glob("*/*/cases.csv") for row in records(path.read_text())]
    assert {row["status"] for row in rows} == {"ok"}
    return {row["case_id"]: float(row["elapsed_ms"]) for row in rows}


def test_gpus_do_not_disturb_each_other(tmp_path: Path) -> None:
    """The profile, all GPUs together, then each alone."""
    begin = time.monotonic()
    together = medians(fleet(tmp_path / "together", "fleet", code=0))
    assert time.monotonic() - begin < 60
    alone: dict[str, float] = {}
    for gpu in GPUS:
        alone |= medians(fleet(tmp_path / gpu, "fleet", "--device", gpu))
    assert alone.keys() == together.keys()
    assert {gpu for gpu in GPUS if any(f"/{gpu}/" in case for case in alone)} == set(GPUS)
    apart = {case: together[case] / alone[case] - 1 for case in alone}
    assert max(map(abs, apart.values())) < DISTURBED, apart


def test_a_gpu_that_idles_is_named_each_time_and_no_other(tmp_path: Path) -> None:
    """By its own earlier runs, as two GPUs do not tell which of them is the slow one."""
    root, of_pair = tmp_path / "results", (CONFIG, "--device", ",".join(PAIR))
    for _ in range(BEFORE):
        fleet(root, *of_pair)
    for turn in range(CAMPAIGN):
        for number, percent in enumerate((2, 3, 5), turn):
            gpu = PAIR[number % 2]
            folder = fleet(root, *of_pair, code=3, idling=f"{gpu}={percent}")
            (slow,) = shown(folder)["slow"]
            assert slow["device"] == gpu
            assert all("/idling" in reason["metric"] for reason in slow["reasons"]), slow
            shutil.move(folder, tmp_path)  # the next one is held against those before
        fleet(root, *of_pair)


def test_a_killed_process_is_a_row_and_a_resume_measures_what_is_left(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "smembench", "fleet", "run", "fleet", "--output", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        pid = 0
        while not pid and process.poll() is None:
            time.sleep(0.1)
            pid = next(filter(None, map(measures_the_second, Path("/proc").glob("[0-9]*"))), 0)
        assert pid, "cuda:1 stored no trial"
        os.kill(pid, signal.SIGKILL)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 1, out + err
    assert "its process was killed by SIGKILL" in out
    (folder,) = tmp_path.iterdir()
    complete = {path.parents[1].name[-5:] for path in folder.glob("*/*/cases.csv")}
    assert complete == {gpu.replace(":", "") for gpu in GPUS if gpu != "cuda:1"}

    resumed = subprocess.run([*command[:5], "--resume", str(folder)], capture_output=True, text=True, check=False)
    assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    cases = medians(folder)
    first, *others = ({case.replace(f"/{gpu}/", "/") for case in cases if f"/{gpu}/" in case} for gpu in GPUS)
    assert first
    assert all(result == first for result in others)


def measures_the_second(path: Path) -> int:
    """The process, if it measures cuda:1 for a fleet and has stored a trial; otherwise 0."""
    with suppress(OSError):
        words = (path / "cmdline").read_bytes().split(b"\0")
        if b"smembench.studies.fleet.child" in words and words[3].endswith(b"cuda1"):
            return int(path.name) if list(Path(words[3].decode()).glob("*/journal.jsonl")) else 0
    return 0
