"""`smembench time` on the fake driver: what launches find, what they write, what is checked and what is said."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from fake_driver.host_code import HostKernel, compile_for_host
from fake_driver.process import FEW, FakeDriver, ended
from smembench.launches.cuda_file import compiled_kernel

pytestmark = pytest.mark.slow

N = 1000
SOURCES = {
    "scale": """
static void scale(T *out, const T *in, unsigned n)
{
    unsigned i = blockIdx.x * 128 + threadIdx.x;
    if (i < n)
        out[i] = 2 * in[i];
}
""",
    "add": """
static void add(T *total, const T *more, unsigned n)
{
    unsigned i = blockIdx.x * 128 + threadIdx.x;
    if (i < n)
        total[i] += more[i];
}
""",
    "once": """
static void once(T *out, T *done, unsigned n)
{
    unsigned i = blockIdx.x * 128 + threadIdx.x;
    if (i < n && done[i] == 0) {
        out[i] = i;
        done[i] = 1;
    }
}
""",
    "beyond": """
static void beyond(T *out, const T *in, unsigned n)
{
    unsigned i = blockIdx.x * 128 + threadIdx.x;
    if (i <= n)
        out[i] = 1;
}
""",
    "input": """
static void input(T *out, T *in, unsigned n)
{
    unsigned i = blockIdx.x * 128 + threadIdx.x;
    if (i < n)
        out[i] = 2 * in[i], in[i] = 0;
}
""",
}
PYTHON = """
from cuda.bindings import driver

def doubled(out, given, n):
    return 2 * given

def doubled_in_place(out, given, n):
    out[:] = 2 * given

def tripled(out, given, n):
    return 3 * given

def added(total, more, n):
    return total + more

def counted(out, done, n):
    out[:], done[:] = range(n), 1

def copied(out, given):
    return given

def of(array):
    return array.__cuda_array_interface__["data"][0], array.shape[0] * 4

def copy(out, given, stream):
    (to, size), (source, _) = of(out), of(given)
    driver.cuMemcpyAsync(to, source, size, stream)

def copy_and_wait(out, given, stream):
    copy(out, given, stream)
    (error,) = driver.cuStreamSynchronize(stream)
    if error:
        raise RuntimeError(error)
"""
ARRAYS = ("--arg", f"float32[{N}]", "--arg", f"float32[{N}]")
LAUNCH = ("--grid", "8", "--block", "128", *ARRAYS, "--arg", N)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of kernels and of references."""
    folder = tmp_path_factory.mktemp("launches")
    for name, source in SOURCES.items():
        text = source.replace("static", 'typedef float T;\nextern "C" __global__')
        (folder / f"{name}.cu").write_text(text)
    (folder / "mine.py").write_text(PYTHON)
    return folder


@pytest.fixture(scope="module")
def kernels(folder: Path) -> Path:
    """Host forms of the kernels."""
    forms = [
        HostKernel(name, f"{len(name)}{name}", f"typedef float T;{source}", (128, 1), 2, 1)
        for name, source in SOURCES.items()
    ]
    return compile_for_host(forms, folder)


def timed(
    fake_driver: FakeDriver, kernels: Path, *arguments: object, code: int = 0, **settings: object
) -> tuple[list[dict[str, str]], str]:
    """The rows of a command, and what it says."""
    out, err = ended(
        fake_driver("smembench", "time", *arguments, *FEW, "--csv", "-", kernels=kernels, **settings), code
    )
    return [*csv.DictReader(io.StringIO(out))], err


@pytest.mark.parametrize("check", ["doubled", "doubled_in_place"])
def test_an_output_is_found_and_checked(fake_driver: FakeDriver, kernels: Path, folder: Path, check: str) -> None:
    (row,), err = timed(
        fake_driver, kernels, folder / "scale.cu:scale", *LAUNCH, "--check", f"{folder}/mine.py:{check}"
    )
    assert (row["status"], row["verified"], row["notes"]) == ("ok", "true", "")
    assert (row["kernel"], row["compiler"], row["dtype"]) == ("scale.cu:scale", "cuda", "float32")
    assert int(row["bytes"]) == 8 * N
    assert row["predicted_load_sectors"] == "3.90625"
    assert len(row["code_hash"]) == 16
    assert float(row["elapsed_ms"]) > 0
    assert "✓" in err


def test_a_wrong_result_is_named_with_argument_and_element(
    fake_driver: FakeDriver, kernels: Path, folder: Path
) -> None:
    check = ["--check", f"{folder}/mine.py:tripled"]
    (row,), _ = timed(fake_driver, kernels, folder / "scale.cu:scale", *LAUNCH, *check, code=1)
    assert (row["status"], row["verified"], row["elapsed_ms"]) == ("wrong_result", "false", "")
    assert row["reason"].startswith("argument 0: ")
    assert f"of {N} elements differ, the first at [" in row["reason"]
    loose = ["--rtol", "0.5", "--check", f"{folder}/mine.py:tripled"]
    (row,), _ = timed(fake_driver, kernels, folder / "scale.cu:scale", *LAUNCH, *loose)
    assert row["status"] == "ok"


def test_without_a_check_every_table_says_so(fake_driver: FakeDriver, kernels: Path, folder: Path) -> None:
    for none in ([], ["--check", "none"]):
        (row,), err = timed(fake_driver, kernels, folder / "scale.cu:scale", *LAUNCH, *none)
        assert (row["status"], row["verified"]) == ("ok", "false")
        assert row["notes"].startswith("not checked")
        assert "not checked" in err


def test_a_kernel_that_accumulates_finds_the_same_in_each_launch(
    fake_driver: FakeDriver, kernels: Path, folder: Path
) -> None:
    add = (folder / "add.cu:add", *LAUNCH, "--check", f"{folder}/mine.py:added")
    (row,), _ = timed(fake_driver, kernels, *add, code=1)
    assert row["status"] == "failed"
    assert "argument 0 (total) is written, and what is written depends on what it held" in row["reason"]
    (row,), _ = timed(fake_driver, kernels, *add, "--inout", "total")
    assert (row["status"], row["verified"]) == ("ok", "true")
    (row,), _ = timed(fake_driver, kernels, *add, "--out", "0", code=1)  # it reads the poison
    assert row["status"] == "wrong_result"


def test_a_flag_is_reset_before_each_launch(fake_driver: FakeDriver, kernels: Path, folder: Path) -> None:
    once = (folder / "once.cu:once", *LAUNCH, "--check", f"{folder}/mine.py:counted", "--out", "0")
    (row,), _ = timed(fake_driver, kernels, *once, "--reset", "done=0")
    assert (row["status"], row["verified"]) == ("ok", "true")
    (row,), _ = timed(fake_driver, kernels, *once, "--reset", "1=1", code=1)
    assert row["status"] == "wrong_result"


def test_what_lies_beyond_an_array_and_what_is_only_read_stays(
    fake_driver: FakeDriver, kernels: Path, folder: Path
) -> None:
    out = ("--out", "0")
    (row,), _ = timed(fake_driver, kernels, folder / "beyond.cu:beyond", *LAUNCH, *out, code=1)
    assert row["reason"] == "the kernel wrote outside its output, after it"
    check = ("--check", f"{folder}/mine.py:doubled")
    (row,), _ = timed(fake_driver, kernels, folder / "input.cu:input", *LAUNCH, *out, *check, code=1)
    assert row["reason"] == "the kernel wrote to its input argument 1"


def test_kernels_of_one_command_are_measured_in_turns_and_checked_against_one_of_them(
    fake_driver: FakeDriver, kernels: Path, folder: Path
) -> None:
    first, second = folder / "scale.cu:scale", folder / "beyond.cu:beyond"
    rows, err = timed(fake_driver, kernels, first, second, *LAUNCH, "--out", "0", "--check", first, code=1)
    assert [row["status"] for row in rows] == ["ok", "wrong_result"]
    assert rows[0]["notes"] == "the kernel that the others are checked against"
    assert "scale.cu:scale" in err


def test_a_fault_is_a_row_and_the_others_go_on(fake_driver: FakeDriver, kernels: Path, folder: Path) -> None:
    both = (folder / "add.cu:add", folder / "scale.cu:scale", *LAUNCH, "--out", "0")
    rows, _ = timed(fake_driver, kernels, *both, code=1, faults="add 1 700")
    assert [row["status"] for row in rows] == ["failed", "ok"]
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in rows[0]["reason"]


def test_a_compilers_error_has_the_users_line(fake_driver: FakeDriver, kernels: Path, tmp_path: Path) -> None:
    file = tmp_path / "broken.cu"
    file.write_text('extern "C" __global__ void broken(float *out)\n{\n    out[0] = missing;\n}\n')
    launch = ("--grid", "1", "--block", "32", "--arg", "float32[32]")
    (row,), _ = timed(fake_driver, kernels, f"{file}:broken", *launch, code=1)
    assert row["reason"].startswith(f"{file}, line 3: ")
    assert "missing" in row["reason"]


def test_functions_get_the_stream_and_what_no_graph_holds_is_timed_by_events(
    fake_driver: FakeDriver, kernels: Path, folder: Path
) -> None:
    mine = f"{folder}/mine.py"
    check = ("--check", f"{mine}:copied")
    rows, _ = timed(fake_driver, kernels, f"{mine}:copy", f"{mine}:copy_and_wait", *ARRAYS, *check)
    assert [(row["status"], row["verified"]) for row in rows] == [("ok", "true")] * 2
    assert rows[0]["notes"] == "not explained: a function has no PTX"
    assert "timed by events, since no graph can hold it: " in rows[1]["notes"]
    for row in rows:
        assert float(row["elapsed_ms"]) > 0


@pytest.mark.parametrize("suffix", [".ptx", ".cubin"])
def test_compiled_kernels_are_timed(
    fake_driver: FakeDriver, kernels: Path, folder: Path, tmp_path: Path, suffix: str
) -> None:
    compiled, _ = compiled_kernel(f"{folder}/scale.cu:scale", "9.0")
    file = tmp_path / f"scale{suffix}"
    if suffix == ".ptx":
        file.write_text(compiled.ptx)
    else:
        assert compiled.code is not None
        file.write_bytes(compiled.code)
    check = ("--check", f"{folder}/mine.py:doubled")
    (row,), _ = timed(fake_driver, kernels, f"{file}:scale", *LAUNCH, *check)
    assert (row["status"], row["verified"], row["compiler"]) == ("ok", "true", suffix[1:])
    assert ("not explained: a cubin has no PTX" in row["notes"]) == (suffix == ".cubin")


def test_a_config_has_launches_beside_the_packages_kernels(
    fake_driver: FakeDriver, kernels: Path, folder: Path, tmp_path: Path
) -> None:
    config = tmp_path / "mine.toml"
    config.write_text(f"""
samples = 3
rounds = 1
max_seconds = 1
warmup = 0
precision = 90
[[sweep]]
kernel = "{folder}/scale.cu:scale"
sizes = {{n = "500,1000"}}
grid = "cdiv(n, 128)"
block = 128
arg = ["float32[n]", "float32[n]", "n"]
flops = "n"
check = "{folder}/mine.py:doubled"
[[sweep]]
problem = "transpose"
kernel = "memcpy"
n = 40
""")
    root = tmp_path / "results"
    for _ in range(2):
        ended(fake_driver("smembench", "run", config, "--output", root, "--json", kernels=kernels))
    first, second = sorted(root.iterdir())
    with (first / "cases.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["problem"] == "time"]
    assert [(row["n"], row["flops"], row["verified"]) for row in rows] == [
        ("500", "500", "true"),
        ("1000", "1000", "true"),
    ]
    described = json.loads((first / "run.json").read_text())
    assert described["config"]["sweep"][0]["kernel"] == [f"{folder}/scale.cu:scale"]
    out, _ = ended(fake_driver("smembench", "compare", first, second, "--json"), 0)
    compared = {case["case_id"] for case in json.loads(out)["cases"] if "scale" in case["case_id"]}
    assert len(compared) == 2
    out, _ = ended(fake_driver("smembench", "show", first))
    assert "scale.cu:scale" in out
