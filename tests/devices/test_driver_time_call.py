"""`smembench.time` and the pytest plugin on the fake driver: what this process has is timed here, and stays."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from fake_driver.process import FakeDriver, ended

pytestmark = pytest.mark.slow

MINE = """
import os

import numpy as np
import pytest
from cuda.bindings import driver

FEW = {"rounds": 1, "samples": 3, "max_seconds": 1, "warmup": 0}

def of(array):
    return array.__cuda_array_interface__["data"][0], array.shape[0] * 4

def copy(out, given, stream):
    (to, size), (source, _) = of(out), of(given)
    for _ in range(int(os.environ.get("TIMES", "1"))):
        driver.cuMemcpyAsync(to, source, size, stream)
"""
CALLS = f"""{MINE}
import smembench

given = np.arange(100_000, dtype=np.float32)
out = np.zeros_like(given)
(error,) = driver.cuInit(0)
result = smembench.time(copy, out, given, check=lambda out, given: given, **FEW)
assert result["verified"].all() and result["kernel"].tolist() == ["copy"]
assert (out == 0).all() and (given == np.arange(100_000)).all()
assert int(driver.cuCtxGetCurrent()[1]) == 0
same = smembench.time(copy, given.copy(), given, check=lambda out, given: given, **FEW)
assert same["verified"].all(), same["reason"].tolist()
wrong = smembench.time(copy, out, given, check=[given + 1], **FEW)
print(wrong["reason"].tolist())
found = smembench.time(copy, "float32[64]", "float32[64]", name="by text", check=lambda out, given: given, **FEW)
print(found["kernel"].tolist(), found["notes"].tolist())
for kernel, keys in (
    (7, {{}}),
    (copy, {{"grid": 1, "block": 32}}),
    (copy, {{"chekc": copy}}),
    (copy, {{"check": 5}}),
    (copy, {{"reset": [0]}}),
    (__file__.replace("calls.py", "k.cu:k"), {{"grid": lambda named: (named["BLOCK"], 70000), "block": 1, "BLOCK": 4}}),
):
    try:
        print(smembench.time(kernel, out, given, **FEW, **keys)["reason"].tolist())
    except smembench.UsageError as error:
        print(error)
"""
TESTS = f"""{MINE}
def test_copy(gpu_benchmark):
    given = np.arange(100_000, dtype=np.float32)
    gpu_benchmark(copy, np.zeros_like(given), given, check=lambda out, given: given, **FEW | {{"rounds": 3}})

def test_wrong(gpu_benchmark):
    given = np.arange(1000, dtype=np.float32)
    gpu_benchmark(copy, np.zeros_like(given), given, check=[given + 1], **FEW)

@pytest.mark.parametrize("kind", ["a b", "a/b"])
def test_named(gpu_benchmark, kind):
    given = np.arange(int(os.environ.get("COUNT", "1000")), dtype=np.float32)
    for _ in range(2):
        gpu_benchmark(copy, np.zeros_like(given), given, check=lambda out, given: given, **FEW)

def test_mistaken(gpu_benchmark):
    gpu_benchmark("nofile.cu:k", grid=1, block=1)
"""


def test_what_python_holds_is_timed_on_copies_and_leaves_the_process_as_it_was(
    fake_driver: FakeDriver, tmp_path: Path
) -> None:
    (tmp_path / "calls.py").write_text(CALLS)
    (tmp_path / "k.cu").touch()
    out, _ = ended(fake_driver("calls", site=tmp_path))
    wrong, by_text, no_kernel, launched, no_option, no_check, no_reset, no_grid = out.splitlines()
    assert "100000 of 100000 elements differ, the first at [0]: 0.0, not 1.0" in wrong
    assert by_text == "['by text'] ['not explained: a function has no PTX']"
    assert no_kernel.startswith("7: is no kernel; give")
    assert "copy: is a plain function, which launches by itself; leave --grid and --block out" in launched
    assert no_option.startswith("chekc=…: is no option of smembench.time")
    assert no_check == "check=5: give a function, or the expected outputs"
    assert no_reset.startswith("--reset '0': write the argument and what it is filled with")
    assert no_grid == "grid 4x70000: has 70000 along y; a GPU takes at most 65535"


def test_a_wrong_result_and_a_regression_fail_their_tests(
    fake_driver: FakeDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tests = tmp_path / "test_mine.py"
    tests.write_text(TESTS)
    command, copy = ("pytest", "-q", "-p", "no:cacheprovider"), f"{tests}::test_copy"
    out, _ = ended(fake_driver(*command, copy, f"{tests}::test_wrong", "--smembench-output", tmp_path / "runs"), 1)
    assert "test_wrong: wrong_result: argument 0: 1000 of 1000 elements differ" in out
    assert "1 failed, 1 passed" in out
    (stored,) = (tmp_path / "runs").iterdir()
    assert f"wrote {stored}" in out
    with (stored / "cases.csv").open() as file:
        assert [(row["kernel"], row["status"]) for row in csv.DictReader(file)] == [
            ("test_copy", "ok"),
            ("test_wrong", "wrong_result"),
        ]
    monkeypatch.setenv("TIMES", "20")
    out, _ = ended(fake_driver(*command, copy, "--smembench-compare", stored), 1)
    assert "slower" in out
    assert "test_copy" in out


def test_what_is_not_compared_is_told_and_mistakes_fail_without_a_traceback(
    fake_driver: FakeDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tests, runs = tmp_path / "test_mine.py", tmp_path / "runs"
    tests.write_text(TESTS)
    command = ("pytest", "-q", "-p", "no:cacheprovider", tests, "-k", "named or mistaken")
    out, _ = ended(fake_driver(*command, "--smembench-output", runs), 1)
    assert "test_named[a_b]: was measured before; give this one a name of its own, name=" in out
    assert "nofile.cu: no such file; give path.cu:name" in out
    assert "time_call.py" not in out
    assert "During handling" not in out
    assert "2 failed, 1 passed" in out
    monkeypatch.setenv("COUNT", "4000")
    (stored,) = runs.iterdir()
    out, _ = ended(fake_driver(*command[:-1], "named", "--smembench-compare", stored), 1)
    assert "not compared: test_named[a_b]: not the same case: bytes" in out


def test_the_run_to_compare_with_is_found_where_a_test_changes_the_working_directory(
    fake_driver: FakeDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tests = tmp_path / "test_mine.py"
    in_a_folder = "@pytest.fixture(autouse=True)\ndef elsewhere(monkeypatch, tmp_path): monkeypatch.chdir(tmp_path)"
    tests.write_text(f"{TESTS}\n{in_a_folder}\n")
    command = ("pytest", "-q", "-p", "no:cacheprovider", f"{tests}::test_copy")
    ended(fake_driver(*command, "--smembench-output", tmp_path / "runs"))
    (stored,) = (tmp_path / "runs").iterdir()
    monkeypatch.setenv("TIMES", "20")
    out, _ = ended(fake_driver(*command, "--smembench-compare", os.path.relpath(stored)), 1)
    assert "slower" in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("-n", "2", "--smembench-output", "runs"), "--smembench-output: goes without processes of pytest-xdist"),
        (("--smembench-output", __file__), "test_driver_time_call.py: is no folder; give one"),
        (("--smembench-compare", "nowhere"), "--smembench-compare nowhere: there is no such run"),
    ],
)
def test_options_that_cannot_be_met_are_refused_at_once(tmp_path: Path, options: tuple[str, ...], message: str) -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options, str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, cwd=tmp_path)
    assert (ran.returncode, message in ran.stderr) == (4, True), ran.stderr


def test_without_a_gpu_tests_are_skipped_and_the_plugin_imports_nothing_heavy(tmp_path: Path) -> None:
    tests = tmp_path / "test_mine.py"
    tests.write_text("def test_mine(gpu_benchmark):\n    gpu_benchmark(print)\n")
    run = partial(subprocess.run, capture_output=True, text=True, check=True, timeout=60)
    ran = run([sys.executable, "-m", "pytest", "-rs", "-p", "no:cacheprovider", tests])
    assert "1 skipped" in ran.stdout
    assert "no CUDA driver was found" in ran.stdout
    ran = run([sys.executable, "-X", "importtime", "-c", "import smembench.cli.pytest_plugin"])
    imported = {line.rpartition("|")[2].strip() for line in ran.stderr.splitlines()}
    assert "smembench.cli.pytest_plugin" in imported
    assert not imported & {"numpy", "rich", "typer", "pydantic", "cuda.bindings", "pandas"}
