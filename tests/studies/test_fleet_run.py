"""A fleet's parts: devices new and again, what runs in turns, its file, its lines, and what is read of all that."""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import ROOT, Program
from fake_driver.process import FakeDriver, ended
from smembench.model.errors import UsageError
from smembench.run.config import Config, from_data, from_stored
from smembench.store.csv_files import CASES
from smembench.store.fleet_json import FLEET, Entry, FleetFile, read_fleet_file, write_fleet_file
from smembench.store.run_folder import RUN, RunFolder, read_description
from smembench.studies.fleet.ask import add_host
from smembench.studies.fleet.hosts import Host, ask_host
from smembench.studies.fleet.plan import again, entries_of
from smembench.studies.fleet.read import read_fleet
from smembench.studies.fleet.turns import at_once, in_turns, on_device
from smembench.views.fleet_progress import Lines

SWEEPS = [{"problem": "transpose"}, {"problem": "transfer"}, {"problem": "roundtrip"}, {"problem": "matmul"}]
SLOWDOWN = ROOT / "results/reference/slowdown"
TINY = """
samples = 3
rounds = 1
precision = 90.0
max_seconds = 0.3
warmup = 0.0
[[sweep]]
problem = "transpose"
kernel = "memcpy"
n = [16, 17]
"""
IN_TURNS = """
[[sweep]]
problem = "transfer"
kernel = "hostCopy"
bytes = 1024
"""


def config(*sweeps: dict[str, Any], name: str = "night") -> Config:
    return from_data({"name": name, "sweep": list(sweeps)})


def host(name: str, *devices: Entry) -> Host:
    return Host(name, devices)


@given(st.lists(st.sampled_from(SWEEPS), min_size=1, max_size=6))
def test_each_sweep_is_in_one_part_and_copies_through_the_host_run_in_turns(sweeps: list[dict[str, Any]]) -> None:
    parts = at_once(config(*sweeps)), in_turns(config(*sweeps))
    problems = [[sweep.problem for sweep in part.sweep] if part else [] for part in parts]
    assert problems[0] == [sweep["problem"] for sweep in sweeps if sweep["problem"] in ("transpose", "matmul")]
    assert problems[1] == [sweep["problem"] for sweep in sweeps if sweep["problem"] in ("transfer", "roundtrip")]


def test_the_parts_have_names_of_their_own_however_long() -> None:
    whole = config(*SWEEPS, name="n" * 64)
    once, turns = at_once(whole), in_turns(whole)
    assert once
    assert turns
    assert (once.name, turns.name) == ("n" * 64, "n" * 58 + "-turns")
    assert from_stored(on_device(turns, "cuda:3")).sweep[0].device == ("cuda:3",)


def test_several_processes_on_the_cpu_are_devices_of_their_own() -> None:
    entries = entries_of(host("a b", Entry(host="a b", device="cpu")), 2)
    assert [(entry.label, entry.folder) for entry in entries] == [
        ("a b cpu #1", "a_b-cpu-1"),
        ("a b cpu #2", "a_b-cpu-2"),
    ]
    (alone,) = entries_of(host("a", Entry(host="a", device="cuda:3", uuid="GPU-3", model="H200")))
    assert (alone.label, alone.folder, alone.uuid, alone.state) == ("a cuda:3", "a-cuda3", "GPU-3", "waiting")


def test_a_fleet_that_goes_on_keeps_what_is_complete_and_says_what_is_missing() -> None:
    before = [
        Entry(host="a", device="cuda:0", uuid="GPU-0", folder="a-cuda0", state="complete"),
        Entry(host="a", device="cuda:1", uuid="GPU-1", folder="a-cuda1", state="failed", reason="killed"),
        Entry(host="a", device="cuda:2", uuid="GPU-2", folder="a-cuda2", state="waiting"),
        Entry(host="b", device="cuda:0", uuid="GPU-3", folder="b-cuda0", state="waiting"),
        Entry(host="c", folder="c", state="failed", reason="did not answer"),
    ]
    now = [
        *entries_of(
            host(
                "a",
                Entry(host="a", device="cuda:0", uuid="GPU-0"),
                Entry(host="a", device="cuda:1", uuid="GPU-1"),
                Entry(host="a", device="cuda:2", uuid="GPU-9"),
            )
        ),
        *entries_of(host("c", Entry(host="c", device="cuda:0", uuid="GPU-5"))),
    ]
    result = {entry.label: (entry.state, entry.reason) for entry in again(before, now)}
    assert result == {
        "a cuda:0": ("complete", ""),
        "a cuda:1": ("waiting", ""),
        "a cuda:2": ("failed", "it is another GPU now: GPU-9, not GPU-2"),
        "b cuda:0": ("failed", "its host did not answer, or does not list it any more"),
        "c cuda:0": ("waiting", ""),
    }


def test_a_host_with_two_addresses_is_one_and_another_of_its_name_is_not() -> None:
    hosts: dict[str, Host] = {}
    for boot, place in (("1", "10.0.0.1"), ("1", "10.1.0.1"), ("2", "10.0.0.2")):
        add_host(hosts, Host("node", boot=boot), place, [f"tcp://{place}:1"])
    assert {name: result.workers for name, result in hosts.items()} == {
        "node": ("tcp://10.0.0.1:1", "tcp://10.1.0.1:1"),
        "node@10.0.0.2": ("tcp://10.0.0.2:1",),
    }


def test_a_host_without_the_fleets_folder_says_so(tmp_path: Path) -> None:
    (result,) = ask_host(str(tmp_path), ["cpu"], anonymous=False, limit=1.0).devices
    assert (result.device, result.reason.partition(":")[0]) == ("", "the fleet's folder is not there on this host")


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(
    st.lists(st.builds(Entry, host=TEXT, device=TEXT, number=st.none() | st.integers(1, 99), reason=TEXT), max_size=3)
)
def test_a_fleet_file_is_read_as_it_was_written(tmp_path_factory: pytest.TempPathFactory, entries: list[Entry]) -> None:
    folder = tmp_path_factory.mktemp("fleet")
    content = FleetFile(fleet_id="f", anonymous=True, chosen=("cpu",), workers=2, devices=tuple(entries))
    write_fleet_file(folder, content)
    assert read_fleet_file(folder) == content


def test_a_damaged_fleet_file_is_one_line_that_names_the_field(tmp_path: Path) -> None:
    (tmp_path / FLEET).write_text('{"devices": [{"host": 7}]}')
    with pytest.raises(UsageError, match=r"devices\[0\].host"):
        read_fleet_file(tmp_path)


def test_lines_of_progress_come_now_and_then() -> None:
    output: list[str] = []
    now = 0.0
    lines = Lines(output.append, lambda: now)
    entry = Entry(host="a", device="cuda:0", model="H200", state="running")
    lines.state(entry)
    for done in range(31):
        now += 1.0
        lines.progress(entry, done, 36, "naive")
    lines.state(entry.model_copy(update={"state": "failed", "reason": "it fell off the bus"}))
    assert output == [
        "a cuda:0: begun (H200)",
        "a cuda:0: 9 of 36 trials",
        "a cuda:0: 19 of 36 trials",
        "a cuda:0: 29 of 36 trials",
        "a cuda:0: failed after 31 s: it fell off the bus",
    ]


@pytest.fixture
def stored(tmp_path: Path) -> Callable[..., Path]:
    """Make a fleet's folder with a run for each device that has one."""

    def make(*entries: Entry, runs: int = 1) -> Path:
        for entry in entries:
            for run in sorted(SLOWDOWN.iterdir())[: runs if entry.state == "complete" else 0]:
                shutil.copytree(run, tmp_path / entry.folder / run.name)
        content = FleetFile(fleet_id="f", started_at_utc="2026-11-23T02:00:00+00:00", devices=entries)
        write_fleet_file(tmp_path, content)
        return tmp_path

    return make


def test_devices_on_which_nothing_was_measured_are_members_with_the_reason(stored: Callable[..., Path]) -> None:
    whole = Entry(host="a", device="cuda:0", folder="a-cuda0", state="complete")
    lost = Entry(host="a", device="cuda:1", uuid="GPU-1", model="H200", folder="a-cuda1", state="failed", reason="gone")
    silent = Entry(host="b", folder="b", state="failed", reason="did not answer")
    members = read_fleet(stored(whole, lost, silent)).members
    assert [(member.label, member.reason, member.run is None) for member in members] == [
        ("a cuda:0", "", False),
        ("a cuda:1", "gone", True),
        ("b", "did not answer", True),
    ]
    assert (members[1].model, members[1].identity) == ("H200", "GPU-1")


def test_the_runs_of_a_device_are_one_and_one_that_is_damaged_hides_no_other(stored: Callable[..., Path]) -> None:
    first, second = (Entry(host="a", device="cuda:0", number=n, folder=f"a-{n}", state="complete") for n in (1, 2))
    folder = stored(first, second, runs=2)
    alone = len(read_fleet(folder / "a-1").members[0].run.rows)  # type: ignore[union-attr]
    assert [len(member.run.rows) for member in read_fleet(folder).members if member.run] == [2 * alone] * 2
    damaged = next((folder / "a-2").glob(f"*/{CASES}"))
    damaged.write_text("nonsense\n")
    ok, bad = read_fleet(folder).members
    assert (ok.reason, bad.run) == ("", None)
    assert str(damaged) in bad.reason


def test_runs_that_begin_in_the_same_second_have_folders_of_their_own(tmp_path: Path) -> None:
    """As srun starts them, one per host, with one --output."""
    described = read_description(next(SLOWDOWN.iterdir()))
    ids = []
    for _ in range(3):
        with closing(RunFolder.create(tmp_path / "shared", described)) as folder:
            ids.append(folder.description.run_id)
            assert read_description(folder.path).run_id == folder.path.name
    assert ids == [described.run_id, f"{described.run_id}-2", f"{described.run_id}-3"]


@pytest.mark.slow
def test_what_uses_the_host_is_measured_in_turns_and_an_anonymous_fleet_names_nobody(
    tmp_path: Path, program: Program
) -> None:
    path = tmp_path / "tiny.toml"
    path.write_text(TINY + IN_TURNS)
    root = tmp_path / "results"
    options = ("--device", "cpu", "--workers", 2, "--output", root, "--anonymous", "--quiet")
    ran = program("fleet", "run", path, *options)
    assert ran.returncode == 0, ran.stderr
    assert "trials" not in ran.stderr
    (folder,) = root.iterdir()
    turns = sorted(folder.glob(f"*/*-turns/{RUN}"))
    begun, finished = zip(*map(_begin_and_end, turns), strict=True)
    assert len(turns) == 2
    assert max(begun) >= min(finished)
    members = read_fleet(folder).members
    assert [len(member.run.rows) if member.run else 0 for member in members] == [3, 3]
    for file in folder.rglob("*.json"):
        assert f'"{platform.node()}"' not in file.read_text()
    hosts = {member.host for member in members} | {path.parents[1].name for path in turns}
    assert {host.partition("-")[0] for host in hosts} == {"anonymous"}


def _begin_and_end(path: Path) -> tuple[datetime, datetime]:
    described = read_description(path.parent)
    return datetime.fromisoformat(described.started_at_utc), datetime.fromisoformat(described.ended_at_utc or "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["quick", "--workers", 2], "--device cpu"),
        (["quick", "--device", "auto"], "all GPUs are the default"),
        (["quick", "--hosts", 3], "goes with --scheduler"),
        (["quick", "--script", "--hosts", 3], "sbatch takes --nodes"),
        (["nothing", "--script"], "nothing"),
        (["quick", "--tls-ca", "ca.pem"], "go with --scheduler"),
        (["quick", "--script", "--tls-ca", __file__], "TLS needs --tls-ca and --tls-cert, or distributed"),
        (["quick", "--script", "--tls-ca", __file__, "--tls-key", __file__], "goes with --tls-cert"),
        (["quick", "--script", "--tls-ca", "ca.pem", "--tls-cert", "cert.pem"], "ca.pem: there is no such file"),
        (["quick", "--device", "cpu", "--stall-timeout", 0], "give a time above 0"),
        (["quick", "--script", "--scheduler", "tcp://127.0.0.1:1"], "give one of them"),
        (["quick", "--resume", "results/x"], "not both"),
        ([], "give a CONFIG"),
        (["--resume", "results/x", "--device", "cpu"], "fleet's config and devices"),
        (["--resume", "results/x"], FLEET),
        (["--resume", "results/x", "--script"], FLEET),
    ],
)
def test_wrong_options_are_one_line(program: Program, arguments: list[object], words: str) -> None:
    ran = program("fleet", "run", *arguments)
    assert (ran.returncode, len(ran.stderr.splitlines())) == (2, 1), ran.stderr
    assert words in ran.stderr


def test_a_dry_run_lists_devices_and_counts_cases(program: Program, tmp_path: Path) -> None:
    path = tmp_path / "tiny.toml"
    path.write_text(TINY + IN_TURNS)
    ran = program(
        "fleet", "run", path, "--device", "cpu", "--workers", 2, "--dry-run", "--output", tmp_path / "results"
    )
    assert [line.partition(" ")[2] for line in ran.stdout.splitlines()] == ["cpu #1", "cpu #2"]
    assert ran.stderr.splitlines() == [
        "2 cases per device, all devices at once: at most 0.6 s of samples",
        "1 case per device, one device of a host at a time: at most 0.3 s of samples",
        "2 devices of 1 host; nothing was measured",
    ]
    assert not (tmp_path / "results").exists()


def test_a_dry_run_of_a_fleet_that_goes_on_counts_what_failed_before(program: Program, tmp_path: Path) -> None:
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    program("fleet", "run", path, "--device", "cpu", "--workers", 2, "--output", tmp_path / "results", "--quiet")
    (folder,) = (tmp_path / "results").iterdir()
    content = read_fleet_file(folder)
    failed = content.devices[0].model_copy(update={"state": "failed", "reason": "interrupted"})
    write_fleet_file(folder, content.model_copy(update={"devices": (failed, *content.devices[1:])}))
    ran = program("fleet", "run", "--resume", folder, "--dry-run")
    assert ran.stdout.split("\t")[1] == "interrupted\n"
    assert ran.stderr.splitlines() == [
        "2 cases per device, all devices at once: at most 0.6 s of samples",
        "1 device of 1 host; nothing was measured",
    ]


def test_a_script_is_a_job_of_slurm_that_measures_the_same_by_its_workers(program: Program, tmp_path: Path) -> None:
    folder, pem = tmp_path / "a b", tmp_path / "c.pem"
    pem.touch()
    tls = ("--tls-ca", pem, "--tls-cert", pem)
    ran = program("fleet", "run", "quick", "--script", "--output", folder, "--samples", 5, *tls)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert subprocess.run(["bash", "-n"], input=ran.stdout, text=True, check=False).returncode == 0
    lines = ran.stdout.splitlines()
    assert lines[0] == "#!/usr/bin/env bash"
    assert "#SBATCH --ntasks-per-node=1" in lines
    (off,) = (place for place, line in enumerate(lines) if line == "export DASK_DISTRIBUTED__DIAGNOSTICS__NVML=False")
    scheduler, worker = (line for line in lines if "distributed.cli" in line)
    assert off < lines.index(scheduler)
    assert worker.startswith("srun ")
    for line in (scheduler, worker):
        assert f"--protocol tls --tls-ca-file {pem} --tls-cert {pem}" in line
    assert lines[-1].endswith(
        f"-m smembench fleet run quick --output '{folder}' --samples 5 {' '.join(map(str, tls))} "
        '--scheduler "$file" --hosts "$SLURM_JOB_NUM_NODES"'
    )
    assert not folder.exists()


@pytest.mark.slow
def test_two_gpus_of_a_host_are_told_apart_by_their_uuids(fake_driver: FakeDriver, tmp_path: Path) -> None:
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    command = ["smembench", "fleet", "run", path, "--output", tmp_path / "results"]
    out, err = ended(fake_driver(*command, devices=2))
    (folder,) = (tmp_path / "results").iterdir()
    members = read_fleet(folder).members
    assert [(member.device, member.reason) for member in members] == [("cuda:0", ""), ("cuda:1", "")]
    uuids = [entry.uuid for entry in read_fleet_file(folder).devices]
    assert [member.identity for member in members] == uuids
    assert len({*uuids}) == 2
    assert "cuda:1: complete" in err
    assert "cuda:1" in out


@pytest.mark.slow
def test_a_gpu_that_is_lost_is_a_row_and_goes_on_when_it_is_back(fake_driver: FakeDriver, tmp_path: Path) -> None:
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    faults = {"faults": "cuGraphLaunch 5 719", "faults_once": tmp_path / "fault", "lost": 1}
    command = ["smembench", "fleet", "run", path, "--device", "cuda:1", "--output", tmp_path / "results"]
    ended(fake_driver(*command, devices=2, **faults), 1)
    (folder,) = (tmp_path / "results").iterdir()
    (entry,) = read_fleet_file(folder).devices
    assert entry.state == "failed"
    assert "cuda" in entry.reason
    ended(fake_driver("smembench", "fleet", "run", "--resume", folder, devices=2))
    (entry,) = read_fleet_file(folder).devices
    assert entry.state == "complete"
