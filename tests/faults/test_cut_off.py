"""Runs that are cut off: nothing finished is lost, and what is left can be resumed."""

from __future__ import annotations

import csv
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from smembench.model.case import Case
from smembench.model.errors import UsageError
from smembench.model.measurement import Status, Trial
from smembench.store import journal
from smembench.store.journal import Journal
from smembench.store.run_folder import JOURNAL
from smembench.store.run_json import Description, StoredConfig

KERNELS = Path(__file__).parent / "kernels"
CONFIG = """
samples = 4
rounds = 2
precision = 99.0
seed = 7
[[sweep]]
problem = "transpose"
kernel = "sleepy"
n = [16, 17, 18, 19]
device = "cpu"
"""
CASES = 8
"""memcpy and sleepy at four sizes."""
EMPTY = Description(run_id="x", seed=1, config=StoredConfig(), devices=[])
TRIAL = Trial(
    Case("transpose", "copyGmem", "cpu", "float32", 8, 8), 0, Status.OK, "2026-01-01T00:00:00+00:00", samples=(1.5, 2.5)
)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "cut.toml"
    path.write_text(CONFIG)
    return path


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that was killed, to be copied."""
    folder = tmp_path_factory.mktemp("killed")
    config = folder / "cut.toml"
    config.write_text(CONFIG)
    process = start("run", str(config), "--output", str(folder / "results"))
    path = wait_for_trials(folder / "results", 1)
    process.kill()
    process.communicate()
    return path.parent


def start(*arguments: str, limit: Callable[[], None] | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "smembench", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "SMEMBENCH_KERNELS": str(KERNELS / "cpu_sleepy.py")},
        preexec_fn=limit,
    )


def run_folder(root: Path) -> Path:
    (folder,) = root.iterdir()
    return folder


def wait_for_trials(root: Path, count: int) -> Path:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for path in root.glob(f"*/{JOURNAL}"):
            if path.read_bytes().count(b"\n") > count:
                return path
        time.sleep(0.02)
    raise AssertionError("the run did not come far enough")


def samples_per_case(folder: Path) -> dict[str, int]:
    with (folder / "cases.csv").open() as stream:
        return {row["case_id"]: int(row["samples"]) for row in csv.DictReader(stream)}


def children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in tasks]


def test_ctrl_c_keeps_everything_and_can_be_resumed(config: Path, tmp_path: Path) -> None:
    root = tmp_path / "results"
    process = start("run", str(config), "--output", str(root))
    wait_for_trials(root, 3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    folder = run_folder(root)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert f"--resume {folder}" in err
    assert "sleepy" in out  # the table of what is there
    assert not json.loads((folder / "run.json").read_text())["complete"]

    resumed = start("run", "--resume", str(folder))
    out, err = resumed.communicate(timeout=60)
    assert resumed.returncode == 0, err
    assert json.loads((folder / "run.json").read_text())["complete"]
    assert not (folder / JOURNAL).exists()

    counts = samples_per_case(folder)
    assert len(counts) == CASES
    # The sample in flight at the interruption is kept on top.
    assert all(count >= 4 for count in counts.values())


def test_kill_9_of_the_parent_loses_no_trial_and_takes_the_worker_along(config: Path, tmp_path: Path) -> None:
    root = tmp_path / "results"
    process = start("run", str(config), "--output", str(root))
    path = wait_for_trials(root, 2)
    workers = children(process.pid)
    process.kill()
    process.communicate()
    before = journal.read(path).trials
    assert len(before) >= 2
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes() for pid in workers):
        assert time.monotonic() < deadline, "the worker outlived its parent"
        time.sleep(0.05)

    shown = start("show", str(path.parent))
    out, err = shown.communicate(timeout=60)
    assert shown.returncode == 0, err
    assert "sleepy" in out

    with path.open("ab") as stream:
        stream.write(b'{"visit": {"case"')  # torn
    resumed = start("run", "--resume", str(path.parent))
    _, err = resumed.communicate(timeout=60)
    assert resumed.returncode == 0, err
    with (path.parent / "samples.csv").open() as stream:
        kept = [(row["case_id"], int(row["round"]), float(row["elapsed_ms"])) for row in csv.DictReader(stream)]
    for trial in before:
        for value in trial.samples:
            assert (trial.case.id, trial.round, value) in kept


def test_kill_9_of_the_worker_is_a_failed_case(config: Path, tmp_path: Path) -> None:
    root = tmp_path / "results"
    process = start("run", str(config), "--output", str(root))
    wait_for_trials(root, 1)
    for pid in children(process.pid):
        os.kill(pid, signal.SIGKILL)
    process.communicate(timeout=60)
    with (run_folder(root) / "cases.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    failed = [row for row in rows if row["status"] != "ok"]
    assert process.returncode == 1
    assert len(rows) == CASES
    assert [row["reason"] for row in failed] == ["the worker process was killed by SIGKILL"]


@pytest.mark.parametrize("change", ["versions", "config", "devices"])
def test_resume_refuses_another_environment(change: str, killed: Path, config: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(killed, tmp_path / "run"))
    if change == "config":
        config.write_text(CONFIG.replace("samples = 4", "samples = 5"))
    else:
        alter(folder / JOURNAL, change)
    refused = start("run", str(config), "--resume", str(folder))
    _, err = refused.communicate(timeout=60)
    assert refused.returncode == 2
    assert "--force" in err
    assert len(err.strip().splitlines()) == 1


def test_resume_can_be_forced_and_the_run_says_so(killed: Path, config: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(killed, tmp_path / "run"))
    config.write_text(CONFIG.replace("samples = 4", "samples = 5"))
    for change in ("versions", "devices"):
        alter(folder / JOURNAL, change)
    forced = start("run", str(config), "--resume", str(folder), "--force")
    _, err = forced.communicate(timeout=60)
    assert forced.returncode == 0, err
    (differences,) = json.loads((folder / "run.json").read_text())["resumed_with_differences"]
    assert len(differences) == 3


def alter(path: Path, what: str) -> None:
    """Make a journal that of another GPU or another version of Numba."""
    head, *trials = path.read_text().splitlines(keepends=True)
    changed = json.loads(head)
    if what == "devices":
        changed["run"]["devices"][0]["model"] = "another"
    else:
        changed["run"]["versions"]["numba"] = "0.1"
    path.write_text("".join([json.dumps(changed) + "\n", *trials]))


def test_resume_refuses_a_config_without_the_cases_measured(killed: Path, config: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(killed, tmp_path / "run")
    config.write_text(CONFIG.replace("16, 17, 18, 19", "20"))
    refused = start("run", str(config), "--resume", str(folder), "--force")
    _, err = refused.communicate(timeout=60)
    assert refused.returncode == 2
    assert "does not plan" in err


def test_a_complete_run_cannot_be_resumed(config: Path, tmp_path: Path) -> None:
    start("run", str(config), "--output", str(tmp_path / "r"), "--quick").communicate(timeout=60)
    again = start("run", "--resume", str(run_folder(tmp_path / "r")))
    _, err = again.communicate(timeout=60)
    assert again.returncode == 2
    assert "the run is complete" in err


def test_a_full_disk_ends_in_one_line(config: Path, tmp_path: Path) -> None:
    root = tmp_path / "results"

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))

    process = start("run", str(config), "--output", str(root), limit=limit)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "Traceback" not in err
    assert "cannot be written (File too large)" in err
    assert journal.read(run_folder(root) / JOURNAL).trials


def test_a_removed_folder_ends_in_one_line(config: Path, tmp_path: Path) -> None:
    root = tmp_path / "results"
    process = start("run", str(config), "--output", str(root))
    path = wait_for_trials(root, 1)
    shutil.rmtree(path.parent)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "Traceback" not in err
    assert "cannot be written (" in err


def test_a_journal_cut_at_every_byte_gives_back_every_whole_trial(tmp_path: Path) -> None:
    path = tmp_path / JOURNAL
    writer = Journal.create(path, EMPTY)
    ends = [path.stat().st_size]
    for round_ in range(3):
        writer.append(replace(TRIAL, round=round_))
        ends.append(path.stat().st_size)
    writer.close()
    data = path.read_bytes()
    for length in range(len(data) + 1):
        path.write_bytes(data[:length])
        whole = sum(end <= length for end in ends)
        if not whole:
            with pytest.raises(UsageError, match="nothing to resume"):
                journal.read(path)
            continue
        contents = journal.read(path)
        assert [trial.round for trial in contents.trials] == list(range(whole - 1))
        again = Journal.reopen(path, contents)
        again.append(TRIAL)
        again.close()
        assert journal.read(path).trials == [*contents.trials, TRIAL]


def test_a_journal_damaged_in_the_middle_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / JOURNAL
    writer = Journal.create(path, EMPTY)
    for _ in range(3):
        writer.append(TRIAL)
    writer.close()
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], b"{]\n", *lines[3:]]))
    with pytest.raises(UsageError, match="line 3: damaged"):
        journal.read(path)


WRITER = """
import sys
from dataclasses import replace
from pathlib import Path
from pydantic import TypeAdapter
from smembench.model.measurement import Trial
from smembench.store.journal import Journal
from smembench.store.run_json import Description, StoredConfig
trial = TypeAdapter(Trial).validate_json(sys.argv[2])
empty = Description(run_id="x", seed=1, config=StoredConfig(), devices=[])
writer = Journal.create(Path(sys.argv[1]), empty)
for round_ in range(100000):
    writer.append(replace(trial, round=round_))
    print(round_, flush=True)
"""


@pytest.mark.slow
def test_kills_at_random_moments_lose_no_trial_that_was_acknowledged(tmp_path: Path) -> None:
    rng = random.Random(20260101)
    argument = TypeAdapter(Trial).dump_json(TRIAL).decode()
    acknowledged_in_all = 0
    for attempt in range(25):
        path = tmp_path / f"{attempt}.jsonl"
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), argument], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(rng.random() * 0.02)
        process.kill()
        printed = [line for line in process.communicate()[0].splitlines(keepends=True) if line.endswith("\n")]
        acknowledged = len(printed) + 1
        acknowledged_in_all += acknowledged
        rounds = [trial.round for trial in journal.read(path).trials]
        assert rounds == list(range(len(rounds)))
        assert len(rounds) >= acknowledged
    assert acknowledged_in_all > 50


@pytest.mark.slow
def test_kills_at_random_moments_lose_nothing_that_was_finished(config: Path, tmp_path: Path) -> None:
    """Kill the run or its worker again and again; ``SMEMBENCH_KILLS`` says how often at least."""
    rng = random.Random(20260102)
    root = tmp_path / "results"
    kept: list[Trial] = []
    finished = 0
    for kill in range(int(os.environ.get("SMEMBENCH_KILLS", "3"))):
        folders = list(root.glob(f"*/{JOURNAL}"))
        again = ["--resume", str(folders[0].parent)] if folders else [str(config), "--output", str(root)]
        process = start("run", *again)
        time.sleep(rng.uniform(0.0, 4.0))
        victims = children(process.pid) if kill % 3 == 0 and process.poll() is None else [process.pid]
        for pid in victims:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.communicate(timeout=60)
        paths = list(root.glob(f"*/{JOURNAL}"))
        if paths and paths[0].stat().st_size:
            trials = journal.read(paths[0]).trials
            assert trials[: len(kept)] == kept
            kept = trials
        elif root.exists() and (complete := list(root.glob("*/samples.csv"))):
            with complete[0].open() as stream:
                values = [float(row["elapsed_ms"]) for row in csv.DictReader(stream)]
            with (complete[0].parent / "cases.csv").open() as stream:
                ok = {row["case_id"] for row in csv.DictReader(stream) if row["status"] == "ok"}
            # A case whose worker was killed is failed and keeps no figures; every other keeps every sample.
            assert set(values) >= {value for trial in kept if trial.case.id in ok for value in trial.samples}
            finished += 1
            kept = []
            shutil.rmtree(root)
        else:
            shutil.rmtree(root, ignore_errors=True)
    assert finished or kept or not root.exists()
