"""What works where numba-cuda is not installed, as on a Python without its wheel, and what says how to get it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from conftest import DOCUMENTS, QUICK, ROOT, Program, records
from fake_driver.host_code import compile_for_host, port
from fake_driver.process import FEW, FakeDriver, ended
from smembench.model.case import Block, Case

HIDING = """
import sys
from importlib.machinery import PathFinder


class Hiding(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] == "numba_cuda" else PathFinder.find_spec(name, path, target)


kept = [finder for finder in sys.meta_path if type(finder).__name__ != "NumbaCudaFinder"]
sys.meta_path[:] = [Hiding if finder is PathFinder else finder for finder in kept]
"""
"""What every process begins with that finds it as ``sitecustomize``."""
HOW = "pip install 'smembench[cu13]'"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    (folder / "sitecustomize.py").write_text(HIDING)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["list"], "transposeSmemPad"),
        (["doctor"], "compiler numba: not installed"),
        (["show", DOCUMENTS], "transposeSmem"),
        (["explain", "transposeSmem", "--n", "64"], "32"),
        (["matmul", "--n", "16", "--device", "cpu", "--kernel", "naive", "--csv", "-", *QUICK], ",ok,"),
    ],
    ids=["list", "doctor", "show", "explain", "cpu"],
)
def test_a_command_that_needs_no_numba_cuda_works_without_it(
    program: Program, site: Path, command: list[object], expected: str
) -> None:
    run = program(*command, PYTHONPATH=f"{site}{os.pathsep}{ROOT}")
    assert run.returncode == 0, run.stdout + run.stderr
    assert expected in run.stdout
    assert "Traceback" not in run.stderr


@pytest.mark.slow
def test_a_kernel_of_the_users_that_needs_it_is_refused_with_the_way_to_install_it(
    program: Program, site: Path
) -> None:
    launch = ["--grid", 1, "--block", "32x32", "--arg", "float32[1024,1024]", "--arg", "float32[1024,1024]"]
    target = ROOT / "tests/foreign_kernels.py:tile"
    run = program("explain", target, *launch, PYTHONPATH=f"{site}{os.pathsep}{ROOT}")
    assert run.returncode == 2
    assert HOW in run.stderr
    assert run.stderr.count("\n") == 1


@pytest.mark.slow
def test_a_gpu_runs_what_nvrtc_and_libraries_made_and_numbas_kernels_are_skipped_with_the_way_to_install_it(
    fake_driver: FakeDriver, site: Path, tmp_path: Path
) -> None:
    case = Case("transpose", "copyGmem", "cuda:0", "float32", 40, 40, None, Block(16, 16))
    kernels = compile_for_host([port(case)], tmp_path)
    command = ["smembench", "transpose", "--device", "cuda", "--n", "40", "--block", "16x16", *FEW, "--csv", "-"]
    both = ["--kernel", "copyGmem,memcpy", "--compiler", "numba,nvrtc"]
    out, _ = ended(fake_driver(*command, *both, kernels=kernels, site=site))
    found = {(row["kernel"], row["compiler"]): row for row in records(out)}
    assert {each: row["status"] for each, row in found.items()} == {
        ("copyGmem", "numba"): "skipped",
        ("copyGmem", "nvrtc"): "ok",
        ("memcpy", "numba"): "ok",
    }
    assert HOW in found["copyGmem", "numba"]["reason"]
