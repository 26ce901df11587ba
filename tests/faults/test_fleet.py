"""Fleets with what goes wrong: each device has a row with the reason, the others finish, and a resume ends complete."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from campaign import CAMPAIGN, chance
from conftest import Begin, Program, records
from smembench.model.errors import REGRESSION
from smembench.store import journal
from smembench.store.fleet_json import read_fleet_file
from smembench.store.run_folder import JOURNAL
from warm import Forked

FAULTS = Path(__file__).parent / "kernels" / "cpu_faults.py"
CONFIG = """
samples = 12
rounds = 2
precision = 99.0
warmup = 0.0
[[sweep]]
problem = "transpose"
kernel = "sleepy"
n = [16, 17]
"""
CASES = 4
FEW = CONFIG.replace("samples = 12", "samples = 3")
"""Of a fleet that nothing cuts off."""
Start = Callable[..., Forked]
CHILD = b"smembench.studies.fleet.child"
ENV = {**os.environ, "SMEMBENCH_KERNELS": str(FAULTS), "CUDA_VISIBLE_DEVICES": ""}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.toml"
    path.write_text(CONFIG)
    return path


@pytest.fixture(scope="module")
def start(begin: Begin) -> Start:
    """Start a fleet."""
    return partial(begin, "fleet", "run", SMEMBENCH_KERNELS=FAULTS)


@pytest.fixture
def resume(program: Program) -> Callable[[Path], None]:
    """Go on with a fleet on this host until it is complete."""

    def run(folder: Path) -> None:
        ran = program("fleet", "run", "--resume", folder, SMEMBENCH_KERNELS=FAULTS)
        assert as_expected(ran.returncode, 0, ran.stdout), ran.stdout + ran.stderr
        assert "Traceback" not in ran.stderr

    return run


def as_expected(returned: int | None, code: int, out: str) -> bool:
    """True for the expected exit code, and for that of a slow device if one is named.

    Three CPUs are enough to name one, and may differ: they share their cores with other tests.
    """
    return returned == code or (returned == REGRESSION and "\nslow: " in out)


def ended(process: Forked, code: int, seconds: float = 120) -> tuple[str, str]:
    out, err = process.communicate(timeout=seconds)
    assert as_expected(process.returncode, code, out), out + err
    assert "Traceback" not in err
    return out, err


def until(true: Callable[[], Any], seconds: float = 60) -> Any:
    """Wait until something holds, and return it."""
    deadline = time.monotonic() + seconds
    while not (result := true()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return result


def words(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def below(pid: int) -> list[int]:
    """A process's children, their children and so on, those of its threads, too."""
    result: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, path.read_text().split()):
                result += [child, *below(child)]
    return result


def measuring(pid: int) -> dict[str, int]:
    """The processes below one that measure a device each, by its folder's name."""
    result = {one: words(one).split(b"\0") for one in below(pid)}
    return {Path(line[line.index(CHILD) + 1].decode()).name: one for one, line in result.items() if CHILD in line}


def reached(process: Forked, root: Path, ends: str) -> int:
    """The process that measures the device whose folder ends so, once a trial of it is stored."""
    until(lambda: any(name.endswith(ends) for name in trials(root)))
    (result,) = (pid for name, pid in measuring(process.pid).items() if name.endswith(ends))
    return result


def fleet_folder(root: Path) -> Path:
    (folder,) = until(lambda: list(root.glob("*-fleet")))
    return Path(folder)


def trials(root: Path) -> dict[str, int]:
    """How many trials each device has in its journal."""
    result = {path.parents[1].name: path.read_bytes().count(b"\n") - 1 for path in root.glob(f"*/*/*/{JOURNAL}")}
    return {name: count for name, count in result.items() if count > 0}


def stored(folder: Path) -> dict[str, set[tuple[str, int, float]]]:
    """The samples in the journals of a fleet's devices."""
    return {
        path.parents[1].name: {
            (trial.case.id, trial.round, value) for trial in journal.read(path).trials for value in trial.samples
        }
        for path in folder.glob(f"*/*/{JOURNAL}")
    }


def kept(folder: Path, device: str) -> set[tuple[str, int, float]]:
    (path,) = folder.glob(f"{device}/*/samples.csv")
    rows = records(path.read_text())
    return {(row["case_id"], int(row["round"]), float(row["elapsed_ms"])) for row in rows}


def assert_whole(folder: Path, count: int, before: dict[str, set[tuple[str, int, float]]]) -> None:
    """Each device of a fleet has all cases, and every sample that it had before."""
    entries = read_fleet_file(folder).devices
    assert [(entry.state, entry.reason) for entry in entries] == [("complete", "")] * count
    assert not list(folder.glob(f"*/*/{JOURNAL}"))
    rows = [records(path.read_text()) for path in folder.glob("*/*/cases.csv")]
    assert [[row["status"] for row in one] for one in rows] == [["ok"] * CASES] * count
    for device, samples in before.items():
        assert kept(folder, device) >= samples


def reasons(folder: Path) -> list[str]:
    return sorted(entry.reason for entry in read_fleet_file(folder).devices if entry.reason)


def test_a_killed_process_and_one_that_hangs_are_rows_and_the_others_finish(
    config: Path, tmp_path: Path, start: Start, resume: Callable[[Path], None]
) -> None:
    root = tmp_path / "results"
    process = start(config, "--device", "cpu", "--workers", 3, "--output", root, "--stall-timeout", "12s")
    os.kill(reached(process, root, "-2"), signal.SIGKILL)
    os.kill(reached(process, root, "-3"), signal.SIGSTOP)
    assert listening(process.pid) == {"127.0.0.1"}
    out, err = ended(process, 1)
    folder = fleet_folder(root)
    assert reasons(folder) == ["its process was killed by SIGKILL", "no progress for 12 s; its process was killed"]
    for reason in reasons(folder):
        assert reason in out
    assert f"--resume {folder}" in err
    before = stored(folder)
    assert len(before) == 2

    resume(folder)
    assert_whole(folder, 3, before)


def listening(pid: int) -> set[str]:
    """The addresses on which a process and those below it listen."""
    sockets = set()
    for one in (pid, *below(pid)):
        for path in Path(f"/proc/{one}/fd").glob("*"):
            with suppress(OSError):  # closed since the folder was listed
                sockets.add(str(path.readlink()))
    result = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *_, inode = line.split()[:10]
            if state == "0A" and f"socket:[{inode}]" in sockets:
                address = bytes.fromhex(local.partition(":")[0])
                result.add(".".join(map(str, reversed(address))) if table == "tcp" else address.hex())
    return result


def test_ctrl_c_keeps_what_was_measured_and_a_resume_goes_on(
    config: Path, tmp_path: Path, start: Start, resume: Callable[[Path], None]
) -> None:
    root = tmp_path / "my results"
    process = start(config, "--device", "cpu", "--output", root)
    until(lambda: trials(root))
    os.killpg(process.pid, signal.SIGINT)
    _, err = ended(process, 130, 30)
    folder = fleet_folder(root)
    assert reasons(folder) == ["interrupted"]
    assert err.splitlines()[-1].endswith(f"continue with: smembench fleet run --resume '{folder}'")
    before = stored(folder)
    assert before

    resume(folder)
    assert_whole(folder, 1, before)


def test_a_device_that_cannot_be_opened_is_a_row(program: Program, config: Path, tmp_path: Path) -> None:
    ran = program("fleet", "run", config, "--device", "cuda:5", "--output", tmp_path, SMEMBENCH_KERNELS=FAULTS)
    assert ran.returncode == 1
    assert "Traceback" not in ran.stderr
    folder = fleet_folder(tmp_path)
    (reason,) = reasons(folder)
    assert "cuda" in reason
    assert f"{read_fleet_file(folder).devices[0].label}: failed" in ran.stderr


def test_without_a_gpu_nothing_is_left_behind(program: Program, config: Path, tmp_path: Path) -> None:
    ran = program("fleet", "run", config, "--output", tmp_path / "results", SMEMBENCH_KERNELS=FAULTS)
    assert (ran.returncode, len(ran.stderr.splitlines())) == (4, 1)
    assert "--device cpu" in ran.stderr
    assert not list((tmp_path / "results").iterdir())


@contextmanager
def dask(*arguments: object) -> Generator[subprocess.Popen[bytes]]:
    """A process of Dask's command line."""
    command = [sys.executable, "-m", "distributed.cli.dask_" + str(arguments[0]), *map(str, arguments[1:])]
    with (Path(os.devnull)).open("wb") as nothing:
        process = subprocess.Popen(command, env=ENV, stdout=nothing, stderr=nothing, start_new_session=True)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextmanager
def cluster(
    folder: Path, workers: int, *options: object, protocol: Sequence[object] = ()
) -> Generator[tuple[Path, Sequence[subprocess.Popen[bytes]]]]:
    """A scheduler and workers, all on the loopback interface; yields the scheduler's file and the processes."""
    loopback = ("--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0")
    file = folder / "scheduler.json"
    with dask("scheduler", *loopback, "--port", 0, "--no-show", "--scheduler-file", file, *protocol) as scheduler:
        address = until(lambda: file.exists() and file.read_text() and json.loads(file.read_text())["address"])
        with ExitStack() as stack:
            started = [dask("worker", address, *loopback, "--nthreads", 2, *options) for _ in range(workers)]
            yield file, [scheduler, *map(stack.enter_context, started)]


@pytest.mark.slow
def test_a_dask_worker_that_is_killed_comes_back_and_its_devices_go_on(
    config: Path, tmp_path: Path, start: Start
) -> None:
    root, count = tmp_path / "results", min(CAMPAIGN, 2)
    with cluster(tmp_path, 1) as (file, (_, nanny)):
        process = start(config, "--device", "cpu", "--workers", count, "--output", root, "--scheduler", file)
        until(lambda: len(trials(root)) == count)
        before = stored(fleet_folder(root))
        (worker,) = {parent(child) for child in measuring(nanny.pid).values()}
        os.kill(worker, signal.SIGKILL)
        _, err = ended(process, 0)
    assert "its Dask worker was lost, and is back" in err
    assert_whole(fleet_folder(root), count, before)


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.mark.slow
@pytest.mark.skipif(CAMPAIGN == 1, reason="half a minute: SMEMBENCH_CAMPAIGN=2 runs it")
def test_ctrl_c_reaches_the_workers_of_a_cluster_and_they_take_the_fleet_again(
    config: Path, tmp_path: Path, start: Start
) -> None:
    root = tmp_path / "results"
    with cluster(tmp_path, 1) as (file, _):
        process = start(config, "--device", "cpu", "--output", root, "--scheduler", file)
        until(lambda: trials(root))
        process.send_signal(signal.SIGINT)
        ended(process, 130)
        folder = fleet_folder(root)
        assert reasons(folder) == ["interrupted"]
        before = stored(folder)
        assert before

        ended(start("--resume", folder, "--scheduler", file), 0)
    assert_whole(folder, 1, before)


@pytest.mark.slow
def test_a_scheduler_that_is_lost_is_one_line_and_a_resume_goes_on(
    config: Path, tmp_path: Path, start: Start, resume: Callable[[Path], None]
) -> None:
    root = tmp_path / "results"
    with cluster(tmp_path, 1, "--no-nanny") as (file, (scheduler, *_)):
        process = start(config, "--device", "cpu", "--output", root, "--scheduler", file)
        until(lambda: trials(root))
        before = stored(fleet_folder(root))
        scheduler.kill()
        _, err = ended(process, 1)
    folder = fleet_folder(root)
    assert "the scheduler of Dask was lost; what was measured is kept" in err.splitlines()[-1]

    resume(folder)
    assert_whole(folder, 1, before)


def test_a_host_that_does_not_answer_is_a_row(config: Path, tmp_path: Path, start: Start) -> None:
    with cluster(tmp_path, 1, "--no-nanny") as (file, (_, worker)):
        until(lambda: listening(worker.pid) == {"127.0.0.1"})
        time.sleep(1.0)  # it registers
        worker.send_signal(signal.SIGSTOP)
        options = ("--scheduler", file, "--host-timeout", "3s", "--output", tmp_path / "results")
        ended(start(config, "--device", "cpu", *options), 1)
    assert reasons(fleet_folder(tmp_path / "results")) == ["did not answer within 3 s"]


@pytest.mark.slow
@pytest.mark.skipif(CAMPAIGN == 1, reason="half a minute: SMEMBENCH_CAMPAIGN=2 runs it")
def test_a_scheduler_that_is_not_there_is_one_line_and_leaves_nothing(
    config: Path, tmp_path: Path, start: Start
) -> None:
    _, err = ended(start(config, "--scheduler", "tcp://127.0.0.1:1", "--output", tmp_path / "results"), 2)
    (line,) = err.splitlines()
    assert "--scheduler tcp://127.0.0.1:1: no scheduler answers" in line
    assert not list((tmp_path / "results").iterdir())


@pytest.mark.slow
@pytest.mark.skipif(CAMPAIGN == 1, reason="half a minute: SMEMBENCH_CAMPAIGN=2 runs it")
def test_a_cluster_with_tls_is_joined_with_its_certificates_alone(config: Path, tmp_path: Path, start: Start) -> None:
    openssl = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=fleet -keyout key.pem -out cert.pem"
    subprocess.run(openssl.split(), cwd=tmp_path, check=True, capture_output=True)
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    theirs = ("--tls-ca-file", cert, "--tls-cert", cert, "--tls-key", key)
    with cluster(tmp_path, 1, *theirs, protocol=("--protocol", "tls", *theirs)) as (file, _):
        options = (config, "--device", "cpu", "--scheduler", file, "--output", tmp_path / "results")
        _, err = ended(start(*options), 2)
        assert "no scheduler answers" in err
        ended(start(*options, "--tls-ca", cert, "--tls-cert", cert, "--tls-key", key), 0)
    assert_whole(fleet_folder(tmp_path / "results"), 1, {})


SRUN = """#!/bin/sh
echo "$@" >> "$(dirname "$0")/srun.log"
shift
exec "$@"
"""


@pytest.mark.slow
def test_a_job_of_slurm_measures_and_says_which_hosts_did_not_start(
    program: Program, config: Path, tmp_path: Path
) -> None:
    """srun as on a job of two hosts of which one never starts."""
    config.write_text(FEW)
    root, srun = tmp_path / "results", tmp_path / "bin" / "srun"
    srun.parent.mkdir()
    srun.write_text(SRUN)
    srun.chmod(0o755)
    options = ("--device", "cpu", "--output", root, "--host-timeout", "5s", "--script")
    script = program("fleet", "run", config, *options, SMEMBENCH_KERNELS=FAULTS).stdout
    path = os.pathsep.join((str(srun.parent), os.environ["PATH"]))
    env = {**ENV, "SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "2", "PATH": path}
    ran = subprocess.run(["bash"], input=script, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 1, ran.stderr
    assert (srun.parent / "srun.log").read_text().startswith("--cpu-bind=none ")
    folder = fleet_folder(root)
    silent, measured = read_fleet_file(folder).devices
    assert (silent.host, silent.reason) == ("1 of 2 hosts", "did not start within 5 s")
    assert (measured.device, measured.state) == ("cpu", "complete")
    assert not list(root.glob("dask-*"))


@pytest.mark.slow
@pytest.mark.skipif("SMEMBENCH_SLURM" not in os.environ, reason="SMEMBENCH_SLURM names no partition to submit jobs to")
def test_a_job_of_slurm_is_measured_by_its_hosts(program: Program, config: Path, tmp_path: Path) -> None:
    script = program("fleet", "run", config, "--device", "cpu", "--output", tmp_path, "--script", **ENV).stdout
    submit = ["sbatch", "--wait", "--nodes", "2", "--partition", os.environ["SMEMBENCH_SLURM"]]
    subprocess.run(submit, input=script, env=ENV, text=True, check=True)
    assert_whole(fleet_folder(tmp_path), 2, {})


@pytest.mark.slow
@pytest.mark.skipif(CAMPAIGN == 1, reason="half a minute: SMEMBENCH_CAMPAIGN=2 runs it")
def test_kills_and_hangs_at_random_moments_lose_nothing(config: Path, tmp_path: Path, start: Start) -> None:
    """Four workers; kill or stop any process, or interrupt or kill the fleet itself, until it is complete."""
    rng, root, faults = chance("fleet"), tmp_path / "results", 0
    for _ in range(CAMPAIGN):
        before: dict[str, set[tuple[str, int, float]]] = {}
        process = start(config, "--device", "cpu", "--workers", 4, "--output", root, "--stall-timeout", "15s")
        while True:
            stored_first = rng.random() < 0.5
            until(lambda: process.poll() is not None or (trials(root) if stored_first else measuring(process.pid)))  # noqa: B023
            time.sleep(rng.uniform(0.0, 5.0))
            victims = list(measuring(process.pid).values())
            for _ in range(rng.randrange(3)):
                with suppress(ProcessLookupError, IndexError):
                    os.kill(rng.choice(victims), rng.choice([signal.SIGKILL, signal.SIGSTOP]))
                    faults += 1
            if rng.random() < 0.3 and process.poll() is None:
                process.send_signal(rng.choice([signal.SIGINT, signal.SIGKILL]))
                faults += 1
            process.communicate(timeout=120)
            assert process.returncode in (0, 1, 3, 130, -signal.SIGKILL)  # 3: one was slow, on a busy host
            folder = fleet_folder(root)
            until(lambda: not orphans(root))
            for device, samples in stored(folder).items():
                assert samples >= before.get(device, set())
                before[device] = samples
            if all(entry.state == "complete" for entry in read_fleet_file(folder).devices):
                break
            process = start("--resume", folder, "--stall-timeout", "15s")
        assert_whole(folder, 4, before)
        for path in sorted(root.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
    assert faults


def orphans(root: Path) -> list[int]:
    """Processes that measure into a folder whose fleet is gone."""
    result = ((int(path.name), words(int(path.name))) for path in Path("/proc").glob("[0-9]*"))
    return [pid for pid, command in result if CHILD in command and bytes(root) in command]
