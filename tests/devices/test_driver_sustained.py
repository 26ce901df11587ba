"""Loads of seconds on the fake driver: launches back to back, what NVML tells meanwhile, what is stored and shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import records
from fake_driver.host_code import compile_for_host, port
from fake_driver.process import FEW, FakeDriver, ended
from smembench.model.case import Block, Case

pytestmark = pytest.mark.slow

SIDE = ("--n", "64", "--block", "16x16", "--device", "cuda")
CONFIG = """
samples = 3
rounds = 1
max_seconds = 1
warmup = 0
precision = 90
[[sweep]]
problem = "transpose"
kernel = "naiveGmem"
n = 64
block = "16x16"
device = "cuda"
cache = "warm,cold"
"""


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = Case("transpose", "copyGmem", "cuda:0", "float32", 40, 40, None, Block(16, 16))
    naive = Case("transpose", "naiveGmem", "cuda:0", "float32", 40, 40, None, Block(16, 16))
    return compile_for_host([port(copy), port(naive)], tmp_path_factory.mktemp("kernels"))


def test_a_load_is_stored_shown_and_compared(fake_driver: FakeDriver, kernels: Path, tmp_path: Path) -> None:
    config, root = tmp_path / "load.toml", tmp_path / "out"
    config.write_text(CONFIG)
    for seconds in ("6s", "0.5s"):
        ended(fake_driver("smembench", "run", config, "--output", root, "--sustained", seconds, kernels=kernels))
    path, again = sorted(root.iterdir())
    rows = records((path / "cases.csv").read_text())
    warm = [row for row in rows if row["cache"] == "warm"]
    loads = records((path / "sustained.csv").read_text())
    for row in warm:
        assert float(row["burst_ms"]) > 0
        batches = [batch for batch in loads if batch["case_id"] == row["case_id"]]
        whole = 1000 * float(batches[-1]["energy_j"]) / sum(int(batch["launches"]) for batch in batches)
        assert float(row["energy_mj"]) == pytest.approx(whole, rel=0.5)  # by the host's clock, which others share
        assert float(row["energy_uncertainty"]) > 0
    assert {row["steady_ms"] for row in rows if row["cache"] == "cold"} == {""}
    assert all("no sustained load" in row["notes"] for row in rows if row["cache"] == "cold")
    assert {row["case_id"] for row in loads} == {row["case_id"] for row in warm}
    assert max(float(row["seconds"]) for row in loads) > 6
    assert {row["power_w"] for row in loads} == {"300.0"}
    assert "sustained.csv" in json.loads((path / "run.json").read_text())["checksums"]
    out, _ = ended(fake_driver("smembench", "show", str(path), kernels=kernels))
    assert "sustained load of 6 s" in out
    out, _ = ended(fake_driver("smembench", "compare", str(path), str(again), "--csv", "-", kernels=kernels))
    assert {row["case_id"] for row in records(out) if row["new_energy_mj"]} == {row["case_id"] for row in warm}


def test_where_nothing_counts_energy_it_is_blank_and_the_run_says_so(fake_driver: FakeDriver, kernels: Path) -> None:
    command = ("smembench", "transpose", *SIDE, "--kernel", "naiveGmem", *FEW, "--sustained", "0.5s", "--csv", "-")
    out, err = ended(fake_driver(*command, kernels=kernels, watts=0))
    (row,) = (row for row in records(out) if row["kernel"] == "naiveGmem")
    assert float(row["steady_ms"]) > 0
    assert row["energy_mj"] == ""
    assert "NVML counts none here" in err


def test_the_least_energy_is_searched_where_it_is_counted(fake_driver: FakeDriver, kernels: Path) -> None:
    command = ("smembench", "tune", "transpose", "--n", "64", "--kernel", "naiveGmem", "--device", "cuda")
    few = ("--samples", "3", "--precision", "90", "--max-seconds", "0.5", "--rounds", "1", "--sustained", "0.2s")
    out, _ = ended(fake_driver(*command, *few, "--objective", "energy", kernels=kernels))
    assert "mJ per launch" in out
    assert "takes the least energy per launch" in out
    _, err = ended(fake_driver(*command, *few, "--objective", "energy", kernels=kernels, watts=0), 2)
    assert "--objective energy: NVML counts none here" in err
