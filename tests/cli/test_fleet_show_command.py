"""``smembench fleet show`` as users run it, on made-up fleets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import Program, records
from fleets import Special, made_gpus


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """16 GPUs on two hosts, of which one is 30 % slow and one lacks a case."""
    folder = tmp_path_factory.mktemp("fleet")
    special = {9: Special(slow=0.3), 1: Special(failed={"tiled": "LaunchError: out of luck"})}
    for gpu in made_gpus(16, special):
        gpu.write(folder)
    return folder


def test_a_slow_gpu_is_named_and_the_exit_code_is_3(program: Program, fleet: Path) -> None:
    shown = program("fleet", "show", fleet)
    assert shown.returncode == 3, shown.stderr
    assert shown.stdout.startswith("16 GPUs on 2 hosts: 1 slow, 1 failed\n")
    (slow,) = (line for line in shown.stdout.splitlines() if line.startswith("slow: "))
    assert slow.startswith("slow: node1 cuda:1 GPU-")
    assert "failed: node0 cuda:1: tiled: failed: LaunchError: out of luck" in shown.stdout
    assert "\x1b" not in shown.stdout


def test_a_failed_case_alone_is_exit_code_1(program: Program, fleet: Path) -> None:
    assert program("fleet", "show", fleet, "--threshold", 40).returncode == 1


@pytest.mark.parametrize("count", [1, 3])
def test_gpus_that_are_compared_with_nothing_are_no_success(program: Program, tmp_path: Path, count: int) -> None:
    """One alone, or each of another model; with one night before them all is well."""
    special = {place: Special(model=f"model {place}") for place in range(count)}
    metrics = tmp_path / "fleet.prom"
    for night in range(2):
        for gpu in made_gpus(count, special, night=night):
            gpu.write(tmp_path / f"night{night}")
    alone = program("fleet", "show", tmp_path / "night0", "--openmetrics", metrics)
    assert alone.returncode == 5
    assert "on 1 host: nothing to compare with\n" in alone.stdout
    assert alone.stderr.startswith("nothing to compare with: node0 cuda:0")
    assert "smembench_fleet_exit_code 5.0" in metrics.read_text()
    assert program("fleet", "show", tmp_path / "night1").returncode == 0


def test_one_gpu_of_another_model_is_not_hidden_by_the_others(program: Program, tmp_path: Path) -> None:
    for gpu in made_gpus(4, {3: Special(model="another")}):
        gpu.write(tmp_path)
    shown = program("fleet", "show", tmp_path)
    assert (shown.returncode, "4 GPUs on 1 host: none slow, 1 with nothing to compare with" in shown.stdout) == (
        5,
        True,
    )


def test_an_ascii_terminal_gets_ascii(program: Program, fleet: Path) -> None:
    shown = program("fleet", "show", fleet, PYTHONIOENCODING="ascii")
    assert shown.stdout.isascii()
    assert "x" in next(line for line in shown.stdout.splitlines() if line.startswith("1  memcpy"))[20:50]


def test_files_are_written_beside_the_tables(program: Program, fleet: Path, tmp_path: Path) -> None:
    csv, page, lines, metrics = (tmp_path / name for name in ("f.csv", "f.md", "f.jsonl", "f.prom"))
    flags = ("--csv", csv, "--export", page, "--json-lines", lines, "--openmetrics", metrics)
    for _ in range(2):
        assert program("fleet", "show", fleet, *flags, "--force").returncode == 3
    assert len(records(csv.read_text())) == 16 * 4 - 1
    assert "| memcpy" in page.read_text()
    assert len(lines.read_text().splitlines()) == 2 * 16  # it is appended to
    assert metrics.read_text().endswith("# EOF\n")
    again = program("fleet", "show", fleet, "--csv", csv)
    assert again.returncode == 2
    assert "already exists" in again.stderr


def test_json_and_csv_go_to_stdout_alone(program: Program, fleet: Path) -> None:
    result = json.loads(program("fleet", "show", fleet, "--json").stdout)
    assert result["fleet"]["exit_code"] == 3
    assert records(program("fleet", "show", fleet, "--csv", "-").stdout)[0]["host"] == "node0"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("nowhere",), "nowhere: holds no run; give the folder of a fleet"),
        ((".", "--openmetrics", "fleet.txt"), "--openmetrics fleet.txt: the textfile collector only reads"),
        ((".", "--json", "--markdown"), "--json and --markdown: give one of them"),
    ],
)
def test_bad_input_gets_one_line(program: Program, tmp_path: Path, flags: tuple[str, ...], message: str) -> None:
    ran = program("fleet", "show", *flags, cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert message in ran.stderr
    assert "Traceback" not in ran.stderr
