"""`smembench time` on the fake driver: what launches find, what they write, what is checked and what is said."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
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
    "beyond_by_copies": """
static void beyond_by_copies(T *out, const T *in, unsigned n)
{
    unsigned i = blockIdx.x * 128 + threadIdx.x;
    out[i] = in[i];
}
""",
    "count": """
static void count(T *out, T *counter, unsigned n)
{
    unsigned i = blockIdx.x * 128 + threadIdx.x;
    if (i < n)
        out[i] = 2, counter[0] += 1;
}
""",
    "some": """
static void some(T *out, const T *in, unsigned n)
{
    unsigned i = blockIdx.x * 128 + threadIdx.x;
    if (i < n && i % 2)
        out[i] = in[i];
}
""",
    "second": """
static void second(T *out, T *also, unsigned n)
{
    unsigned i = blockIdx.x * 128 + threadIdx.x;
    if (i < n)
        out[i] = 1, also[i] = 1;
}
""",
    "twentieth": """
static void twentieth(T *out, const T *in, unsigned n)
{
    static unsigned launches;
    unsigned i = blockIdx.x * 128 + threadIdx.x;
    launches += i == 0;
    if (i < n)
        out[i] = launches == 20 ? 0 : 2 * in[i];
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
import sys

import numpy

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

def counts(out, counter, n):
    out[:] = 2
    counter[0] += n

def poison(out, given, n):
    return numpy.where(numpy.arange(n) % 2, given, numpy.frombuffer(bytes([255]) * 4, "f4"))

def ones(out, also, n):
    return also * 0 + 1

def twos(out, counter, n):
    out[:] = 2
    counter[:] = -1

def both(out, also, n):
    out[:], also[:] = 2 * also, also + 1

def none_of_them(out, given, n):
    sys.exit("enough")

def nothing(out, given, n):
    pass

def text(out, given, n):
    return "text"

def raises(out, given, n):
    raise ValueError("line\\nafter line")

def one(out):
    return out

def three(out, given, n):
    return 2 * given, given, given
"""
ARRAYS = ("--arg", f"float32[{N}]", "--arg", f"float32[{N}]")
LAUNCH = ("--grid", "8", "--block", "128", *ARRAYS, "--arg", N)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of kernels and of references."""
    folder = tmp_path_factory.mktemp("launches")
    for name, source in SOURCES.items():
        text = source.replace("static void", 'typedef float T;\nextern "C" __global__ void')
        (folder / f"{name}.cu").write_text(text)
    (folder / "mine.py").write_text(PYTHON)
    (folder / "broken.cu").write_text('extern "C" __global__ void broken(float *out)\n{\n    out[0] = missing;\n}\n')
    compiled, _ = compiled_kernel(f"{folder}/scale.cu:scale", "9.0")
    assert compiled.code is not None
    (folder / "scale.ptx").write_text(compiled.ptx)
    (folder / "scale.cubin").write_bytes(compiled.code)
    return folder


@pytest.fixture(scope="module")
def kernels(folder: Path) -> Path:
    """Host forms of the kernels."""
    forms = [
        HostKernel(name, f"{len(name)}{name}", f"typedef float T;{source}", (128, 1), 2, 1)
        for name, source in SOURCES.items()
    ]
    return compile_for_host(forms, folder)


LAUNCHED = f"""grid = "cdiv(n, 128)"
block = 128
sizes = {{n = {N}}}
arg = ["float32[n]", "float32[n]", "n"]
"""
SWEEPS = {
    "returned": ("scale.cu:scale", "check = 'mine.py:doubled'\nflops = '2*n'"),
    "in place": ("scale.cu:scale", "check = 'mine.py:doubled_in_place'"),
    "wrong": ("scale.cu:scale", "check = 'mine.py:tripled'"),
    "loose": ("scale.cu:scale", "check = 'mine.py:tripled'\nrtol = 0.5"),
    "unchecked": ("scale.cu:scale", "check = 'none'"),
    "accumulates, undeclared": ("add.cu:add", "check = 'mine.py:added'"),
    "accumulates": ("add.cu:add", "check = 'mine.py:added'\ninout = 'total'"),
    "accumulates on poison": ("add.cu:add", "check = 'mine.py:added'\nout = 0"),
    "flags reset": ("once.cu:once", "check = 'mine.py:counted'\nout = 0\nreset = 'done=0'"),
    "flags set": ("once.cu:once", "check = 'mine.py:counted'\nout = 0\nreset = '1=1'"),
    "beyond": ("beyond.cu:beyond", "out = 0"),
    "beyond, what lay beyond another": ("beyond_by_copies.cu:beyond_by_copies", ""),
    "input": ("input.cu:input", "out = 0\ncheck = 'mine.py:doubled'"),
    "counter reset": ("count.cu:count", "check = 'mine.py:counts'\nreset = 'counter=0'"),
    "counter reset twice": ("count.cu:count", "reset = ['counter=0', '1=5']"),
    "counter reset and restored": ("count.cu:count", "reset = 'counter=0'\ninout = 1"),
    "scratch": ("second.cu:second", "check = 'mine.py:ones'\nscratch = 'also'"),
    "scratch, reset": ("count.cu:count", "check = 'mine.py:twos'\nscratch = 1\nreset = '1=0'"),
    "scratch that accumulates": ("count.cu:count", "check = 'mine.py:twos'\nout = 'out'\nscratch = 'counter'"),
    "scratch is undeclared": ("second.cu:second", "check = 'mine.py:ones'"),
    "scratch is an output": ("second.cu:second", "out = ['out', 'also']\nscratch = 1"),
    "all is scratch": ("scale.cu:scale", "scratch = 'out'"),
    "reference is poison": ("some.cu:some", "check = 'mine.py:poison'\nout = 0"),
    "one of two": ("scale.cu:scale", "check = 'mine.py:both'"),
    "two of one": ("second.cu:second", "check = 'scale.cu:scale'"),
    "other names": ("scale.cu:scale", "check = 'add.cu:add'\nout = 'out'"),
    "reference exits": ("scale.cu:scale", "check = 'mine.py:none_of_them'"),
    "nothing is returned": ("scale.cu:scale", "check = 'mine.py:nothing'"),
    "text is returned": ("scale.cu:scale", "check = 'mine.py:text'"),
    "reference raises": ("scale.cu:scale", "check = 'mine.py:raises'"),
    "reference takes one": ("scale.cu:scale", "check = 'mine.py:one'"),
    "three are returned": ("scale.cu:scale", "check = 'mine.py:three'"),
    "no such argument": ("scale.cu:scale", "out = 'result'"),
    "broken": ("broken.cu:broken", ""),
    "ptx": ("scale.ptx:scale", "check = 'mine.py:doubled'"),
    "cubin": ("scale.cubin:scale", "check = 'mine.py:doubled'"),
    "cubin, macro": ("scale.cubin:scale", "option = '-DN=4'"),
    "cubin, typed": ("scale.cubin:scale", "check = 'mine.py:doubled'"),
}


@pytest.fixture(scope="module")
def run(fake_driver: FakeDriver, kernels: Path, folder: Path) -> tuple[Path, str]:
    """A stored run of all sweeps, and what the terminal shows."""
    sweeps = [
        *(f"kernel = '{target}'\nname = '{name}'\n{LAUNCHED}{keys}" for name, (target, keys) in SWEEPS.items()),
        "kernel = 'second.cu:second'\nname = 'in the gaps'\n" + LAUNCHED.replace("[n]", "[n] strides 2"),
        "problem = 'transpose'\nkernel = 'memcpy'\nn = 40",
    ]
    few = "samples = 3\nrounds = 1\nmax_seconds = 1\nwarmup = 0\nprecision = 90\n"
    sweeps = [item.replace('"n"]', "'int32 1000']") if "cubin, typed" in item else item for item in sweeps]
    config = folder / "mine.toml"  # paths in it are relative to its folder
    config.write_text(few + "".join(f"[[sweep]]\n{sweep}\n" for sweep in sweeps))
    root = folder / "results"
    out, _ = ended(fake_driver("smembench", "run", config, "--output", root, kernels=kernels), 1)
    (path,) = root.iterdir()
    return path, out


@pytest.fixture(scope="module")
def rows(run: tuple[Path, str]) -> Mapping[str, dict[str, str]]:
    """The run's rows by name."""
    with (run[0] / "cases.csv").open() as file:
        return {row["kernel"]: row for row in csv.DictReader(file)}


Rows = Mapping[str, dict[str, str]]


@pytest.mark.parametrize("name", ["returned", "in place", "loose", "accumulates", "flags reset", "ptx", "cubin"])
def test_right_results_are_timed(rows: Rows, name: str) -> None:
    row = rows[name]
    assert (row["status"], row["verified"]) == ("ok", "true"), row["reason"]
    assert float(row["elapsed_ms"]) > 0


def test_a_row_has_what_a_row_of_the_packages_kernels_has(rows: Rows) -> None:
    row = rows["returned"]
    assert (row["problem"], row["compiler"], row["dtype"], row["n"]) == ("time", "cuda", "float32", str(N))
    assert (int(row["bytes"]), int(row["flops"]), row["notes"]) == (8 * N, 2 * N, "")
    assert (row["predicted_load_sectors"], row["predicted_store_sectors"]) == ("3.90625", "3.90625")
    assert (len(row["code_hash"]), row["registers"] != "") == (16, True)
    assert rows["returned"]["code_hash"] == rows["cubin"]["code_hash"]
    passed = "1000 is passed as int32: if it is a float to the kernel, write 'float32 1000'"
    assert rows["cubin"]["notes"] == f"argument 2: {passed}; not explained: a cubin has no PTX"
    assert rows["cubin, typed"]["notes"] == "not explained: a cubin has no PTX"
    assert rows["memcpy"]["status"] == "ok"


def test_a_wrong_result_is_named_with_argument_and_element(rows: Rows) -> None:
    row = rows["wrong"]
    assert (row["status"], row["verified"], row["elapsed_ms"]) == ("wrong_result", "false", "")
    assert row["reason"].startswith("argument 0: ")
    assert f"of {N} elements differ, the first at [" in row["reason"]


def test_without_a_check_every_table_says_so(rows: Rows, run: tuple[Path, str]) -> None:
    assert (rows["unchecked"]["status"], rows["unchecked"]["verified"]) == ("ok", "false")
    assert rows["unchecked"]["notes"].startswith("not checked")
    assert "unchecked 128x1: not checked" in run[1]


def test_what_an_output_held_is_neither_read_nor_kept_unless_it_is_declared(rows: Rows) -> None:
    undeclared = "argument 0 (total) is written, and what is written depends on what it held"
    assert undeclared in rows["accumulates, undeclared"]["reason"]
    assert rows["accumulates on poison"]["status"] == "wrong_result"
    assert rows["flags set"]["status"] == "wrong_result"


def test_what_lies_beyond_an_array_and_what_is_only_read_stays(rows: Rows) -> None:
    for name in ("beyond", "beyond, what lay beyond another"):
        assert rows[name]["reason"] == "the kernel wrote outside argument 0, after it"
    assert rows["input"]["reason"] == "the kernel wrote to its input argument 1"


def test_what_a_launch_finds_reset_the_reference_finds_too_and_other_outputs_are_found(rows: Rows) -> None:
    assert (rows["counter reset"]["status"], rows["counter reset"]["verified"]) == ("ok", "true"), rows["counter reset"]
    twice = "--reset 1=5: argument 1 has a --reset already; give one of them"
    assert rows["counter reset twice"]["reason"].startswith(twice)
    both = "argument 1: --inout restores it, and --reset fills it; give one of them"
    assert rows["counter reset and restored"]["reason"].startswith(both)


def test_what_is_only_worked_in_is_not_checked(rows: Rows) -> None:
    for name in ("scratch", "scratch, reset", "scratch that accumulates"):
        assert (rows[name]["status"], rows[name]["verified"]) == ("ok", "true"), rows[name]["reason"]
    undeclared = "returns 1 array; the kernel writes 2; declare with --scratch what is only worked in"
    assert rows["scratch is undeclared"]["reason"].endswith(undeclared)
    assert rows["scratch is an output"]["reason"].startswith(
        "argument 1: is checked with --out, and not with --scratch"
    )
    assert rows["all is scratch"]["reason"].startswith("the kernel changed none of its arrays")


def test_an_element_that_is_not_written_is_no_result_where_poison_is_what_is_expected(rows: Rows) -> None:
    assert rows["reference is poison"]["reason"].startswith("right once, wrong after the timed launches: argument 0: ")


def test_gaps_between_elements_stay(rows: Rows) -> None:
    assert rows["in the gaps"]["reason"] == "the kernel wrote outside argument 0, between its elements"


def test_kernel_and_reference_write_the_same_arrays(rows: Rows, folder: Path) -> None:
    one, two, names, three = (
        rows[n]["reason"] for n in ("one of two", "two of one", "other names", "three are returned")
    )
    assert one == f"argument 1 is written by --check {folder}/mine.py:both, and not by the kernel"
    assert two == f"argument 1 is written, and not by --check {folder}/scale.cu:scale"
    assert names.startswith(f"--check {folder}/add.cu:add: argument 'out': is no array of the kernel; it has 0 (total)")
    ways = "return the outputs, or write them to its arguments"
    endings = {
        "nothing is returned": f"nothing: returns and writes nothing; {ways}",
        "reference raises": "raises: ValueError: line after line",
        "reference takes one": "one: TypeError: one() takes 1 positional argument but 3 were given",
    }
    for name, ending in endings.items():
        assert rows[name]["reason"] == f"--check {folder}/mine.py:{ending}"
    assert rows["text is returned"]["reason"] == "argument 0: the reference is of type <U4, the output float32"
    assert three == f"--check {folder}/mine.py:three: returns 3 arrays; the kernel writes 1"
    assert rows["reference exits"]["reason"] == f"--check {folder}/mine.py:none_of_them: SystemExit: enough"


def test_mistakes_are_rows_with_the_users_names_and_lines(rows: Rows, folder: Path) -> None:
    assert rows["no such argument"]["reason"] == (
        "argument 'result': is no array of the kernel; it has 0 (out), 1 (in)"
    )
    assert rows["cubin, macro"]["reason"] == "-DN=4: goes with a kernel in a .cu file"
    assert rows["broken"]["reason"].startswith(f"{folder}/broken.cu, line 3: ")
    assert "missing" in rows["broken"]["reason"]


def test_a_stored_run_has_the_files_and_is_read_by_every_command(
    fake_driver: FakeDriver, run: tuple[Path, str], folder: Path
) -> None:
    path, _ = run
    described = json.loads((path / "run.json").read_text())
    assert {"scale.cu", "mine.py", "scale.cubin"} <= described["kernels"].keys()
    assert described["config"]["sweep"][0]["kernel"] == [f"{folder}/scale.cu:scale"]
    out, _ = ended(fake_driver("smembench", "compare", path, path, "--json"), 5)
    assert "returned" in ended(fake_driver("smembench", "show", path))[0]
    out, _ = ended(fake_driver("smembench", "history", path.parent, "--json"))
    assert json.loads(out)


def timed(
    fake_driver: FakeDriver, kernels: Path, *arguments: object, code: int = 0, **settings: object
) -> tuple[list[dict[str, str]], str]:
    """The rows of a command, and what it says."""
    command = ("smembench", "time", *arguments, *FEW, "--csv", "-")
    out, err = ended(fake_driver(*command, kernels=kernels, **settings), code)
    return [*csv.DictReader(io.StringIO(out))], err


def test_kernels_of_one_command_are_measured_in_turns_and_checked_against_one_of_them(
    fake_driver: FakeDriver, kernels: Path, folder: Path
) -> None:
    first, second = folder / "scale.cu:scale", folder / "add.cu:add"
    rows, err = timed(fake_driver, kernels, first, second, *LAUNCH, "--out", "0", "--check", first, code=1)
    assert [row["status"] for row in rows] == ["ok", "wrong_result"]
    assert rows[0]["notes"] == "the kernel that the others are checked against"
    assert "scale.cu:scale" in err


def test_launches_on_copies_of_the_arrays_are_each_checked(
    fake_driver: FakeDriver, kernels: Path, folder: Path
) -> None:
    both = (folder / "scale.cu:scale", folder / "twentieth.cu:twentieth", *LAUNCH, "--out", "0")
    check = ("--check", folder / "mine.py:doubled", "--cache")
    rows, err = timed(fake_driver, kernels, *both, *check, "rotated", code=1)
    result = {row["kernel"]: row["status"] for row in rows}
    assert result == {"scale.cu:scale": "ok", "twentieth.cu:twentieth": "wrong_result"}
    assert "--cache rotated" not in err
    rows, err = timed(fake_driver, kernels, *both, *check, "warm")
    assert [row["status"] for row in rows] == ["ok", "ok"]
    assert "the arrays fit the last-level cache" in err
    assert "--cache rotated" in err
    restored = (folder / "add.cu:add", *LAUNCH, "--inout", "0", "--cache", "rotated")
    _, err = ended(fake_driver("smembench", "time", *map(str, restored), kernels=kernels), 2)
    assert "what --inout and --reset restore" in err


def test_a_fault_is_a_row_and_the_others_go_on(fake_driver: FakeDriver, kernels: Path, folder: Path) -> None:
    both = (folder / "add.cu:add", folder / "scale.cu:scale", *LAUNCH, "--out", "0")
    rows, _ = timed(fake_driver, kernels, *both, code=1, faults="add 1 700")
    assert [row["status"] for row in rows] == ["failed", "ok"]
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in rows[0]["reason"]


def test_the_fastest_of_several_macros_is_found(fake_driver: FakeDriver, kernels: Path, folder: Path) -> None:
    sizes = ("--sweep", f"n={N}", "--tune", "SIDE=64,128,256", "--where", "SIDE > 64")
    launch = (
        "--grid",
        "cdiv(n, SIDE)",
        "--block",
        "SIDE",
        *ARRAYS,
        "--arg",
        "n",
        "--check",
        folder / "mine.py:doubled",
    )
    rows, err = timed(fake_driver, kernels, folder / "scale.cu:scale", *sizes, *launch)
    assert [row["case_id"].split("/")[-3:-1] for row in rows] == [["SIDE=128", "b128x1"]]
    assert "2 candidates; ruled out by --where: 1" in err
    assert "1 candidate failed, the first" in err  # the host form has blocks of 128 threads


def test_a_gpu_goes_by_its_uuid(fake_driver: FakeDriver, kernels: Path, folder: Path) -> None:
    command = (folder / "scale.cu:scale", *LAUNCH, "--check", folder / "mine.py:doubled", "--device")
    (row,), _ = timed(fake_driver, kernels, *command, "GPU-74686520", devices=1)
    assert (row["status"], row["device"]) == ("ok", "cuda:0")
    _, err = timed(fake_driver, kernels, *command, "gpu-99", code=4)
    assert "device gpu-99: no GPU here has it (there are: GPU-74686520-" in err
