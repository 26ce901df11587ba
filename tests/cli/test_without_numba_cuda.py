"""What works where numba-cuda is not installed, as on a Python without its wheel, and what says how to get it."""

from __future__ import annotations

import os
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from conftest import DOCUMENTS, QUICK, ROOT, Program, records
from fake_driver.host_code import compile_for_host, port
from fake_driver.process import FEW, FakeDriver, ended
from smembench.model.case import Block, Case

needs_mlir = pytest.mark.skipif(
    find_spec("numba_cuda_mlir") is None, reason="needs numba-cuda-mlir: pip install 'smembench[mlir]'"
)
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
ADD = {
    "add.cu": """extern "C" __global__ void add(const float* a, float* b) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    b[i] = a[i] + 1.0f;
}
""",
    "add.ptx": """.version 8.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 a, .param .u64 b) {
    .reg .b64 %rd<5>;
    .reg .b32 %r<5>;
    .reg .f32 %f<3>;
    ld.param.u64 %rd1, [a];
    ld.param.u64 %rd2, [b];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    mad.wide.s32 %rd3, %r4, 4, %rd1;
    mad.wide.s32 %rd4, %r4, 4, %rd2;
    ld.global.f32 %f1, [%rd3];
    add.f32 %f2, %f1, 0f3F800000;
    st.global.f32 [%rd4], %f2;
    ret;
}
""",
}
LAUNCH = ["--grid", "4", "--block", "256", "--arg", "float32[1024]", "--arg", "float32[1024]"]
HOW = "pip install 'smembench[cu13]'"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    for name, text in {"sitecustomize.py": HIDING, **ADD}.items():
        (folder / name).write_text(text)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["list"], "transposeSmemPad"),
        (["doctor"], "compiler numba: not installed"),
        (["show", DOCUMENTS], "transposeSmem"),
        (["compare", *sorted((ROOT / "results/reference/slowdown").iterdir())[:2]], "the same"),
        (["report", DOCUMENTS, "-o", "/dev/stdout"], "<html"),
        (["explain", "add.cu:add", *LAUNCH], "fully coalesced"),
        (["explain", "add.ptx:add", *LAUNCH], "fully coalesced"),
        (["matmul", "--n", "16", "--device", "cpu", "--kernel", "naive", "--csv", "-", *QUICK], ",ok,"),
    ],
    ids=["list", "doctor", "show", "compare", "report", "cu", "ptx", "cpu"],
)
def test_a_command_that_needs_no_numba_cuda_works_without_it(
    program: Program, site: Path, command: list[object], expected: str
) -> None:
    run = program(*command, cwd=site, PYTHONPATH=f"{site}{os.pathsep}{ROOT}")
    assert run.returncode == 0, run.stdout + run.stderr
    assert expected in run.stdout
    assert not re.search("Traceback|Warning", run.stderr)


OF_USERS = (
    *(ROOT / "tests/foreign_kernels.py:tile", "--grid", 1, "--block", "32x32"),
    *("--arg", "float32[1024,1024]", "--arg", "float32[1024,1024]"),
)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [("transposeSmem", "--n", "64"), OF_USERS], ids=["package", "user"])
def test_a_kernel_that_needs_it_is_refused_with_the_way_to_install_it(
    program: Program, site: Path, tmp_path: Path, kernel: tuple[object, ...]
) -> None:
    """A kernel of the package that was compiled before, and kept, is explained."""
    run = program("explain", *kernel, PYTHONPATH=f"{site}{os.pathsep}{ROOT}", XDG_CACHE_HOME=tmp_path)
    assert run.returncode == 2
    assert HOW in run.stderr
    assert run.stderr.count("\n") == 1


@pytest.mark.slow
def test_an_exercise_is_written_and_not_graded(program: Program, site: Path, tmp_path: Path) -> None:
    path = f"{site}{os.pathsep}{ROOT}"
    assert program("lesson", "solve", "race", cwd=tmp_path, PYTHONPATH=path).returncode == 0
    run = program("lesson", "solve", "race", cwd=tmp_path, PYTHONPATH=path)
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr.startswith("smembench: grading needs NVIDIA's compiler libraries: ")
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
    result = {(row["kernel"], row["compiler"]): row for row in records(out)}
    assert {item: row["status"] for item, row in result.items()} == {
        ("copyGmem", "numba"): "skipped",
        ("copyGmem", "nvrtc"): "ok",
        ("memcpy", "numba"): "ok",
    }
    assert HOW in result["copyGmem", "numba"]["reason"]


@needs_mlir
@pytest.mark.slow
def test_numba_cuda_mlir_is_the_default_then_and_is_named(fake_driver: FakeDriver, site: Path, tmp_path: Path) -> None:
    case = Case("transpose", "copyGmem", "cuda:0", "float32", 40, 40, None, Block(16, 16))
    kernels = compile_for_host([port(case)], tmp_path)
    command = ["smembench", "transpose", "--device", "cuda", "--n", "40", "--block", "16x16", *FEW]
    table = tmp_path / "cases.csv"
    stored = ["--kernel", "copyGmem", "--export", table]
    out, _ = ended(fake_driver(*command, *stored, kernels=kernels, site=site))
    assert re.search(r"numba-cuda-mlir \d", out)
    assert re.search("copyGmem +mlir +16x16", out)
    result = {row["kernel"]: row for row in records(table.read_text())}
    assert {name: (row["compiler"], row["status"]) for name, row in result.items()} == {
        "memcpy": ("numba", "ok"),
        "copyGmem": ("mlir", "ok"),
    }
    assert float(result["copyGmem"]["percent_of_copy"]) > 0
