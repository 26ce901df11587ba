"""Runs that are cut off: nothing finished is lost, and what is left can be resumed."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from campaign import CAMPAIGN, chance
from conftest import ROOT, Begin, Program, records
from smembench.model.measurement import Trial
from smembench.store import journal
from smembench.store.journal import Journal
from smembench.store.run_folder import JOURNAL
from smembench.store.run_json import Description
from warm import Forked

FAULTS = Path(__file__).parent / "kernels" / "cpu_faults.py"
CONFIG = """
samples = 4
rounds = 2
precision = 99.0
seed = 7
[[sweep]]
problem = "transpose"
kernel = "sleepy"
n = [16, 17]
device = "cpu"
"""
CASES = 4
"""memcpy and sleepy at two sizes."""
Resume = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., Forked]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "cut.toml"
    path.write_text(CONFIG)
    return path


@pytest.fixture(scope="module")
def killed(start: Start, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run whose process was killed; its worker ended with it."""
    folder = tmp_path_factory.mktemp("killed")
    config = folder / "cut.toml"
    config.write_text(CONFIG)
    process = start(config, "--output", folder / "results")
    path = wait_for_trials(folder / "results", 2)
    workers = [Path(f"/proc/{pid}/cmdline") for pid in children(process.pid)]
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 10
    while any(worker.exists() and worker.read_bytes() for worker in workers):
        assert time.monotonic() < deadline, "the worker outlived its parent"
        time.sleep(0.05)
    return path.parent


@pytest.fixture
def folder(killed: Path, tmp_path: Path) -> Path:
    """A copy of the killed run's folder."""
    return Path(shutil.copytree(killed, tmp_path / "run"))


@pytest.fixture
def resume(program: Program) -> Resume:
    """Resume a run whose kernels include the faulty ones."""
    return lambda folder, *others: program("run", *others, "--resume", folder, SMEMBENCH_KERNELS=FAULTS)


@pytest.fixture(scope="module")
def start(begin: Begin) -> Start:
    """Start a run whose kernels include the faulty ones; one that ignores Ctrl-C if it is to be ``deaf``."""
    return partial(begin, "run", SMEMBENCH_KERNELS=FAULTS)


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


def children(pid: int) -> list[int]:
    with suppress(FileNotFoundError, ProcessLookupError):  # it has ended
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def described(folder: Path) -> Description:
    return Description.model_validate_json((folder / "run.json").read_bytes())


def table(folder: Path, name: str) -> list[dict[str, str]]:
    return records((folder / name).read_text())


def test_ctrl_c_keeps_everything_and_can_be_resumed(config: Path, tmp_path: Path, start: Start, resume: Resume) -> None:
    root = tmp_path / "my results"
    process = start(config, "--output", root)
    wait_for_trials(root, 3)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the whole group
    out, err = process.communicate(timeout=30)
    folder = run_folder(root)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "interrupted" in err
    assert f"smembench run --resume '{folder}'" in err
    assert "sleepy" in out  # the table of what is there
    assert "ok" in {row["status"] for row in table(folder, "cases.csv")}
    assert not described(folder).complete

    resumed = resume(folder)
    assert resumed.returncode == 0, resumed.stderr
    assert described(folder).complete
    assert not (folder / JOURNAL).exists()
    # The sample in flight at the interruption is kept on top.
    assert [int(row["samples"]) >= 4 for row in table(folder, "cases.csv")] == [True] * CASES


def test_a_second_ctrl_c_leaves_the_way_to_continue(config: Path, tmp_path: Path, start: Start) -> None:
    root = tmp_path / "results"
    process = start(config, "--output", root)
    journal = wait_for_trials(root, 3)
    process.send_signal(signal.SIGINT)
    deadline = time.monotonic() + 30
    while not (journal.parent / "cases.csv").exists() and time.monotonic() < deadline:
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)  # before the tables are shown
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert err.splitlines()[-1].endswith(f"continue with: smembench run --resume {journal.parent}")
    assert "sleepy" in out


@pytest.mark.parametrize("deaf", [False, True], ids=["on a terminal", "in the background"])
def test_sigterm_keeps_everything_as_ctrl_c_does(config: Path, tmp_path: Path, start: Start, deaf: bool) -> None:
    root = tmp_path / "results"
    process = start(config, "--output", root, deaf=deaf)
    wait_for_trials(root, 3)
    for pid in (*children(process.pid), process.pid):  # as systemd does: every process of the service
        os.kill(pid, signal.SIGTERM)
    out, err = process.communicate(timeout=30)
    folder = run_folder(root)
    assert process.returncode == 143
    assert "Traceback" not in err
    assert err.splitlines()[-1].startswith("smembench: interrupted: what was measured is kept")
    assert "sleepy" in out
    rows = table(folder, "cases.csv")
    assert "ok" in {row["status"] for row in rows}
    assert not [row["reason"] for row in rows if "killed" in row["reason"]]
    assert not described(folder).complete


def test_kill_9_of_the_parent_loses_no_trial(folder: Path, program: Program, resume: Resume) -> None:
    before = journal.read(folder / JOURNAL).trials
    assert len(before) >= 2
    shown = program("show", folder, SMEMBENCH_KERNELS=FAULTS)
    assert shown.returncode == 0, shown.stderr
    assert "sleepy" in shown.stdout

    with (folder / JOURNAL).open("ab") as stream:
        stream.write(b'{"visit": {"case"')  # torn
    resumed = resume(folder)
    assert resumed.returncode == 0, resumed.stderr
    kept = {(row["case_id"], int(row["round"]), float(row["elapsed_ms"])) for row in table(folder, "samples.csv")}
    assert kept >= {(trial.case.id, trial.round, value) for trial in before for value in trial.samples}


def test_kill_9_of_the_worker_is_a_failed_case(config: Path, tmp_path: Path, start: Start) -> None:
    root = tmp_path / "results"
    process = start(config, "--output", root)
    wait_for_trials(root, 1)
    for pid in children(process.pid):
        os.kill(pid, signal.SIGKILL)
    process.communicate(timeout=60)
    rows = table(run_folder(root), "cases.csv")
    assert process.returncode == 1
    assert len(rows) == CASES
    assert [row["reason"] for row in rows if row["status"] != "ok"] == ["the worker process was killed by SIGKILL"]


def test_time_in_which_the_program_was_stopped_is_no_timeout(config: Path, tmp_path: Path, start: Start) -> None:
    """As by Slurm's suspend, a frozen container or a machine that is moved."""
    config.write_text(f"timeout = 2\nmax_seconds = 1\n{CONFIG.replace('samples = 4', 'samples = 20')}")
    root = tmp_path / "results"
    process = start(config, "--output", root)
    wait_for_trials(root, 1)
    time.sleep(0.1)  # within a trial
    stopped = [process.pid, *children(process.pid)]
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(4)
    for pid in stopped:
        os.kill(pid, signal.SIGCONT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert {row["status"] for row in table(run_folder(root), "cases.csv")} == {"ok"}


def test_a_folder_that_is_removed_under_way_cannot_be_resumed(config: Path, tmp_path: Path, start: Start) -> None:
    root = tmp_path / "results"
    process = start(config, "--output", root)
    folder = wait_for_trials(root, 1).parent
    shutil.rmtree(folder)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert f"{folder} was removed meanwhile, with what was measured" in err.splitlines()[-1]
    assert "resume" not in err


@pytest.mark.parametrize(
    "command",
    ["matmul --n 16 --kernel cpu --quick", "run quick --dry-run", "explain transposeSmem", "list", "show last"],
)
def test_without_a_working_directory_nothing_is_done_and_one_line_says_so(tmp_path: Path, command: str) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    command = f"cd {gone}; rmdir {gone}; {sys.executable} -m smembench {command}"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=env, timeout=60)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == "smembench: the working directory was removed; change to one that is there\n"


def test_without_its_kernel_file_a_run_says_which_it_had(folder: Path, program: Program) -> None:
    ran = program("run", "--resume", folder)
    assert ran.returncode == 2
    assert ran.stderr.endswith(f"; the run was begun with SMEMBENCH_KERNELS={FAULTS.name}\n")


def test_another_environment_is_refused_unless_it_is_forced(folder: Path, config: Path, resume: Resume) -> None:
    config.write_text(CONFIG.replace("samples = 4", "samples = 5"))
    first, *trials = (folder / JOURNAL).read_text().splitlines(keepends=True)
    head = json.loads(first)
    head["run"]["devices"][0]["model"] = "another"
    head["run"]["versions"]["numba"] = "0.1"
    head["run"]["git"], head["run"]["code"] = {"revision": "1" * 40}, "2" * 64
    head["run"]["kernels"][FAULTS.name] = "3" * 64
    head["run"]["environment"] |= {"NUMBA_OPT": "2"}
    del head["crc32"]
    lines = [head, *({"visit": json.loads(line)["visit"]} for line in trials)]  # as older versions wrote them
    (folder / JOURNAL).write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    before = (folder / JOURNAL).read_bytes()
    for dry in ([], ["--dry-run"]):
        refused = resume(folder, config, *dry)
        assert (refused.returncode, refused.stdout) == (2, "")
    assert resume(folder, config, "--dry-run", "--force").returncode == 0
    assert (folder / JOURNAL).read_bytes() == before
    (line,) = refused.stderr.splitlines()
    in_git = (ROOT / ".git").exists()
    assert not in_git or "git revision was 111111111111, is " in line
    changes = ("numba was 0.1", "cpu model was another", "code was 222222222222", "kernel file cpu_faults.py was 3333")
    for words in ("the configuration differs", *changes, "NUMBA_OPT was 2, is absent", "--force"):
        assert words in line

    forced = resume(folder, config, "--force")
    assert forced.returncode == 0, forced.stderr
    (differences,) = described(folder).resumed_with_differences
    assert len(differences) == 6 + in_git


def test_resume_refuses_a_config_without_the_cases_measured(folder: Path, config: Path, resume: Resume) -> None:
    config.write_text(CONFIG.replace("16, 17", "20"))
    for dry in ([], ["--dry-run"]):
        refused = resume(folder, config, "--force", *dry)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert "does not plan" in refused.stderr


@pytest.mark.parametrize(("space", "code"), [(0, 2), (3500, 1)], ids=["when it begins", "on the way"])
def test_a_full_disk_ends_in_one_line(config: Path, tmp_path: Path, space: int, code: int, resume: Resume) -> None:
    root = tmp_path / "results"

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (space, space))

    # Python would leave half a compiled module behind for later processes.
    process = subprocess.Popen(
        [sys.executable, "-m", "smembench", "run", config, "--output", root],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "SMEMBENCH_KERNELS": str(FAULTS), "PYTHONDONTWRITEBYTECODE": "1"},
        preexec_fn=limit,
        start_new_session=True,
    )
    _, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert "Traceback" not in err
    assert "cannot be written (File too large)" in err.splitlines()[-1]
    if code == 2:
        assert not root.exists()
        return
    stored = journal.read(run_folder(root) / JOURNAL).trials
    assert stored
    resumed = resume(run_folder(root))
    assert resumed.returncode == 0, resumed.stderr
    kept = {(row["case_id"], float(row["elapsed_ms"])) for row in table(run_folder(root), "samples.csv")}
    assert kept >= {(trial.case.id, value) for trial in stored for value in trial.samples}


@pytest.mark.slow
def test_a_disk_that_fills_loses_nothing_and_the_run_is_resumed(
    config: Path, tmp_path: Path, start: Start, resume: Resume
) -> None:
    disk, rng, full = tmp_path / "disk", chance("disk"), set[int]()
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("mounts a small disk, which only root may")
    try:
        for _ in range(2 * CAMPAIGN):
            (disk / "other").write_bytes(bytes(512 * 1024 - 4096 * rng.randrange(1, 7)))
            process = start(config, "--output", disk / "results")
            _, err = process.communicate(timeout=120)
            assert process.returncode in (0, 1, 2)
            assert "Traceback" not in err
            full.add(process.returncode)
            (disk / "other").unlink()
            for path in (disk / "results").glob(f"*/{JOURNAL}"):
                stored = {value for trial in journal.read(path).trials for value in trial.samples}
                assert process.returncode == 1
                assert resume(path.parent).returncode == 0
                assert {float(row["elapsed_ms"]) for row in table(path.parent, "samples.csv")} >= stored
            shutil.rmtree(disk / "results", ignore_errors=True)
    finally:
        subprocess.run(["umount", disk], check=True)
    assert full & {1, 2}


def test_a_run_that_another_process_writes_is_refused_in_one_line(folder: Path, resume: Resume) -> None:
    writer, _ = Journal.reopen(folder / JOURNAL)
    before = (folder / JOURNAL).read_bytes()
    refused = resume(folder)
    writer.close()
    assert (refused.returncode, len(refused.stderr.splitlines())) == (2, 1)
    assert "another process is writing this run" in refused.stderr
    assert (folder / JOURNAL).read_bytes() == before


@pytest.mark.slow
def test_kills_at_random_moments_lose_nothing_that_was_finished(config: Path, tmp_path: Path, start: Start) -> None:
    """Kill the run, its worker, both, or the run while it finishes, again and again."""
    rng, root, kills = chance("runs"), tmp_path / "results", 0
    kept: list[Trial] = []
    while kills < (3 if CAMPAIGN == 1 else 4 * CAMPAIGN):
        begun, before = list(root.glob(f"*/{JOURNAL}")), set(root.glob("*/*cases.csv*"))
        process = start(*(["--resume", begun[0].parent] if begun else [config, "--output", root]))
        whom = rng.choice(["run", "worker", "both", "run that finishes"])
        while process.poll() is None and not children(process.pid):
            time.sleep(0.001)
        until = time.monotonic() + (20 if whom == "run that finishes" else rng.uniform(0.0, 3.0))
        while time.monotonic() < until and process.poll() is None:
            if whom == "run that finishes" and set(root.glob("*/*cases.csv*")) - before:
                break
            time.sleep(0.001)
        if process.poll() is None:
            victims = children(process.pid) if whom in ("worker", "both") else []
            victims += [process.pid] if whom != "worker" else []
            for pid in victims:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            kills += bool(victims)
        process.communicate(timeout=60)
        paths = list(root.glob(f"*/{JOURNAL}"))
        if paths and paths[0].stat().st_size:
            trials = journal.read(paths[0]).trials
            assert trials[: len(kept)] == kept
            kept = trials
        elif root.exists() and (complete := list(root.glob("*/samples.csv"))):
            values = {float(row["elapsed_ms"]) for row in table(complete[0].parent, "samples.csv")}
            ok = {row["case_id"] for row in table(complete[0].parent, "cases.csv") if row["status"] == "ok"}
            # A case whose worker was killed is failed and keeps no figures; every other keeps every sample.
            assert values >= {value for trial in kept if trial.case.id in ok for value in trial.samples}
            assert not list(root.glob("*/.*"))
            kept = []
            shutil.rmtree(root)
        else:
            shutil.rmtree(root, ignore_errors=True)
