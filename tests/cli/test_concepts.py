"""``smembench constant`` and ``smembench transfer`` as users run them, on a machine without a GPU."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from conftest import QUICK, Program, records


def test_a_transfer_runs_what_needs_no_gpu_and_its_csv_is_nothing_but_csv(program: Program) -> None:
    ran = program("transfer", "--bytes", "400,1024", "--n", "1000", *QUICK, "--csv", "-")
    assert ran.returncode == 0, ran.stderr
    rows = records(ran.stdout)
    assert [(row["problem"], row["kernel"], row["n"], row["bytes"]) for row in rows] == [
        ("transfer", "hostCopy", "100", "400"),
        ("transfer", "hostCopy", "256", "1024"),
        ("roundtrip", "addOne", "1000", "8000"),
    ]
    assert {(row["status"], row["verified"], row["dtype"]) for row in rows} == {("ok", "true", "int32")}
    too_uncertain = float(rows[2]["uncertainty"]) > 0.2  # on a busy machine
    assert rows[2]["speedup_vs_cpu"] == ("" if too_uncertain else "1.0")
    assert {row["within_cache"] for row in rows} == {""}
    assert "host-device copy 400 bytes" in ran.stderr


def test_the_concepts_run_as_far_as_they_can_without_a_gpu_and_say_what_is_left_out(
    program: Program, tmp_path: Path
) -> None:
    sizes = ("constant.n=1000", "transfer.bytes=1024", "roundtrip.n=1000")
    sets = [word for size in sizes for word in ("--set", size)]
    ran = program("run", "configs/concepts.toml", *sets, *QUICK, "--output", tmp_path)
    assert ran.returncode == 0, ran.stderr
    (folder,) = tmp_path.iterdir()
    assert "1D stencil 1000 float32 · warm cache" in program("show", folder, "--tables").stdout
    rows = records((folder / "cases.csv").read_text())
    assert [(row["kernel"], row["status"]) for row in rows] == [
        *[("globalUniform", "ok")] * 2,
        ("hostCopy", "ok"),
        ("addOne", "ok"),
    ]
    (line,) = [line for line in ran.stderr.splitlines() if line.startswith("skipped")]
    assert line.startswith("skipped (GPU only): access; constant globalDiverging, sharedUniform, ")
    assert line.endswith(
        "; transfer h2dPageable, h2dPinned, d2hPageable, d2hPinned"
        "; roundtrip addOnePageable, addOnePinned, addOneDevice"
    )


def test_of_named_kernels_those_that_need_a_gpu_are_left_out(program: Program) -> None:
    ran = program("transfer", "--kernel", "hostCopy,h2dPinned,addOnePinned", "--bytes", "8", "--dry-run")
    assert (ran.returncode, ran.stdout) == (0, "transfer/hostCopy/cpu/numba/int32/1x2/warm\n")
    assert "skipped (GPU only): transfer h2dPinned; roundtrip\n" in ran.stderr


def test_nothing_is_said_of_kernels_that_all_run_on_the_cpu(program: Program) -> None:
    assert "GPU only" not in program("matmul", "--n", "8", "--dry-run").stderr
    assert "GPU only" not in program("constant", "--device", "cpu", "--n", "8", "--dry-run").stderr


@pytest.mark.parametrize(
    ("kernels", "problems"),
    [("hostCopy", {"transfer"}), ("addOne", {"roundtrip"}), ("addOne,hostcopy", {"transfer", "roundtrip"})],
)
def test_kernels_of_a_transfer_go_to_the_problem_that_has_them(
    program: Program, kernels: str, problems: set[str]
) -> None:
    ran = program("transfer", "--kernel", kernels, "--dry-run")
    assert {line.partition("/")[0] for line in ran.stdout.splitlines()} == problems


def test_the_cache_of_constants_is_explained(program: Program) -> None:
    ran = program("explain", "constantDiverging", "--block", "256x1")
    assert ran.returncode == 0, ran.stderr
    text = " ".join(ran.stdout.split())
    assert "Constant memory, one address at a time" in text
    assert re.search(r"Each request to constant memory in line \d+ is split into 9\.", text)
    as_json = json.loads(program("explain", "constantUniform", "--json").stdout)
    assert [access["addresses_per_request"] for access in as_json["constant"]] == [1.0]
