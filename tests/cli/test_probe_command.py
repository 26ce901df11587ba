"""``smembench probe``: without a GPU, on the fake driver, and of a stored sheet."""

from __future__ import annotations

import json
from pathlib import Path

from campaign import CAMPAIGN
from conftest import ROOT, Program, records
from fake_driver.process import FakeDriver, ended
from smembench.studies.probe import FAMILIES

SHEET = {
    "measured_at_utc": "2026-11-23T04:00:00+00:00",
    "device": {"name": "cuda:0", "model": "NVIDIA H200", "compute_capability": "9.0", "sm_count": 132},
    "versions": {"nvrtc": "13.0"},
    "figures": [
        {
            "family": "latency",
            "name": "shared memory",
            "unit": "cycles",
            "value": 29.0,
            "low": 28.9,
            "high": 29.1,
            "method": "dependent loads",
            "published": "29.9 (mt4g, H100)",
        },
        {"family": "clusters", "name": "clusters", "status": "skipped", "reason": "not on this device"},
    ],
}


def test_a_stored_sheet_is_shown_without_a_gpu(program: Program, tmp_path: Path) -> None:
    stored = tmp_path / "sheet.json"
    stored.write_text(json.dumps(SHEET))
    shown = program("probe", "--run", stored, "--full")
    assert shown.returncode == 0
    for text in ("NVIDIA H200", "shared memory", "29", "±0.3 %", "29.9 (mt4g, H100)", "not on this device"):
        assert text in shown.stdout
    assert "| shared memory | 29 | cycles | ±0.3 % |" in program("probe", "--run", stored, "--markdown").stdout
    row, skipped = records(program("probe", "--run", stored, "--csv", "-").stdout)
    assert (row["family"], row["value"], row["low"], row["high"]) == ("latency", "29.0", "28.9", "29.1")
    assert (skipped["value"], skipped["status"]) == ("", "skipped")


def test_a_data_sheet_fits_a_screen_and_its_methods_are_shown_on_demand(program: Program) -> None:
    stored = ROOT / "results/reference/h200-probe.json"
    sheet, family, full = (program("probe", *more, "--run", stored).stdout for more in ((), ("latency",), ("--full",)))
    assert len(sheet.splitlines()) <= 40
    for text in ("global memory", "32-way conflict", "clusters of 2: latency"):
        assert text.split()[0] in sheet
    assert "one thread per SM" not in sheet + family
    assert "shared memory, clock to" in family
    assert full.count("ne thread per SM") > 3


def test_a_sheet_that_is_exported_is_read_again(program: Program, tmp_path: Path) -> None:
    stored, again = tmp_path / "sheet.json", tmp_path / "again.json"
    stored.write_text(json.dumps(SHEET))
    shown = program("probe", "--run", stored, "--export", again)
    assert program("probe", "--run", again).stdout == shown.stdout
    assert again.read_text() == program("probe", "--run", again, "--json").stdout


def test_what_cannot_be_probed_is_one_line(program: Program, tmp_path: Path) -> None:
    damaged = tmp_path / "sheet.json"
    damaged.write_text(json.dumps(SHEET | {"figures": 3}))
    for code, message, arguments in (
        (2, "figures", ["--run", damaged]),
        (2, "there is no such file", ["--run", tmp_path / "none.json"]),
        (2, "cpu", ["--device", "cpu"]),
        (2, "'colour'", ["colour"]),
        (4, "cuda:0", []),
    ):
        failed = program("probe", *arguments)
        assert failed.returncode == code
        assert message in failed.stderr
        assert failed.stdout == ""
        assert len(failed.stderr.splitlines()) == 1


def test_each_family_that_fails_is_a_line_and_the_others_go_on(fake_driver: FakeDriver) -> None:
    """The fake driver runs no kernel of the probes, so every output stays poisoned. test_probe.py asks all families."""
    families = sorted(FAMILIES)[:2] if CAMPAIGN == 1 else sorted(FAMILIES)
    out, _ = ended(fake_driver("smembench", "probe", ",".join(families), "--processes", "2", "--csv", "-"), 1)
    result = {row["family"]: row for row in records(out)}
    assert sorted(result) == families
    for row in result.values():
        assert row["status"] == "wrong_result"
        assert row["value"] == ""
        assert row["reason"]
