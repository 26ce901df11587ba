"""Python functions that enqueue work, timed on the fake driver, and the memory that launches take."""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from fake_driver.process import FakeDriver, ended

pytestmark = pytest.mark.slow

PYTHON = """
from cuda.bindings import driver

def copied(out, given):
    return given

def of(array):
    return array.__cuda_array_interface__["data"][0], array.shape[0] * 4

def copy(out, given, stream):
    (to, size), (source, _) = of(out), of(given)
    driver.cuMemcpyAsync(to, source, size, stream)

def copy_bytes(out, given, stream):
    driver.cuMemcpyAsync(of(out)[0], of(given)[0], out.shape[0], stream)

def copy_one(out, given, stream):
    driver.cuMemcpyAsync(of(out)[0], of(given)[0], 4, stream)

def nothing(*arguments):
    pass

def copy_and_wait(out, given, stream):
    copy(out, given, stream)
    (error,) = driver.cuStreamSynchronize(stream)
    if error:
        raise RuntimeError(error)

def copy_twice(out, given, stream):
    copy(out, given, stream)
    driver.cuMemsetD8Async(of(out)[0], 7, 4, stream)
    copy(out, given, stream)

def copy_twice_and_wait(out, given, stream):
    copy_twice(out, given, stream)
    copy_and_wait(out, given, stream)

def copy_beside(out, given, stream):
    fork, join = (driver.cuEventCreate(0)[1] for _ in range(2))
    driver.cuEventRecord(fork, stream)
    driver.cuStreamWaitEvent(own, fork, 0)
    copy(out, given, own)
    driver.cuMemsetD8Async(of(out)[0], 7, 0, stream)
    driver.cuEventRecord(join, own)
    driver.cuStreamWaitEvent(stream, join, 0)

def copy_by_a_graph(out, given, stream, graphs={}):
    if not graphs:
        mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        driver.cuStreamBeginCapture(own, mode)
        copy(out, given, own)
        graphs[0] = driver.cuGraphInstantiate(driver.cuStreamEndCapture(own)[1], 0)[1]
    driver.cuGraphLaunch(graphs[0], stream)

_, own = driver.cuStreamCreate(1) if driver.cuCtxGetCurrent()[0] == 0 else (0, 0)

def copy_elsewhere(out, given):
    copy(out, given, own)

def fill_own(*arguments, stream, made={}):
    made.setdefault(0, driver.cuMemAlloc(4_000)[1])
    driver.cuMemsetD8Async(made[0], 7, 4_000, stream)
"""
FUNCTIONS = {
    "captured": "copy",
    "waits": "copy_and_wait",
    "several": "copy_twice",
    "several and waits": "copy_twice_and_wait",
    "two streams": "copy_beside",
    "a graph": "copy_by_a_graph",
}
ARRAYS = "arg = ['float32[1000]', 'float32[1000]']\ncheck = 'mine.py:copied'"
SWEEPS = {
    **{name: (function, ARRAYS) for name, function in FUNCTIONS.items()},
    "elsewhere": ("copy_elsewhere", ARRAYS),
    "elsewhere, unchecked": ("copy_elsewhere", ARRAYS.partition("\n")[0]),
    "bytes": ("copy_bytes", ARRAYS.replace("float32", "uint8")),
    "nothing": ("nothing", ""),
    "no array": ("fill_own", ""),
    "no elements": ("fill_own", "arg = ['float32[0]']\nout = 0"),
    "empty": ("nothing", "arg = ['float32[0]']\nout = 0"),
    "large, small": ("copy_one", "arg = ['float32[3000000]', 'float32[8]']\nout = 0\nbytes = 8"),
    "small, large": ("copy_one", "arg = ['float32[8]', 'float32[3000000]']\nout = 0\nbytes = 8"),
    "restored": ("copy_one", "arg = ['float32[2500000]', 'float32[8]']\ninout = 0"),
    "restored by name": ("copy_one", "arg = ['float32[2500000]', 'float32[8]']\nreset = 'out=0'"),
    "flushed": ("copy_one", "arg = ['float32[4000000]', 'float32[8]']\nout = 0\ncache = 'cold'"),
    "too large": ("copy_one", "arg = ['float32[1]', 'float32[8000000]']\nout = 0"),
}
FEW = "samples = 3\nrounds = 1\nmax_seconds = 1\nwarmup = 0\nprecision = 90\n"
Rows = Mapping[str, dict[str, str]]


@pytest.fixture(scope="module")
def rows(fake_driver: FakeDriver, tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """The rows of a run of all sweeps, by name, on a GPU with 17 MiB of memory."""
    folder = tmp_path_factory.mktemp("functions")
    (folder / "mine.py").write_text(PYTHON)
    config = folder / "mine.toml"
    config.write_text(
        FEW
        + "".join(f"[[sweep]]\nkernel = 'mine.py:{f}'\nname = '{name}'\n{keys}\n" for name, (f, keys) in SWEEPS.items())
    )
    ended(fake_driver("smembench", "run", config, "--output", folder / "results", memory=17 * 2**20), 1)
    (path,) = (folder / "results").iterdir()
    assert "nothing" in ended(fake_driver("smembench", "show", path))[0]  # what is stored can be read
    with (path / "cases.csv").open() as file:
        return {row["kernel"]: row for row in csv.DictReader(file)}


def test_what_a_function_enqueues_on_a_stream_of_its_own_is_not_timed(rows: Rows) -> None:
    for name in ("elsewhere", "elsewhere, unchecked", "nothing", "empty"):
        assert (rows[name]["status"], rows[name]["elapsed_ms"]) == ("failed", ""), rows[name]
        assert rows[name]["reason"].startswith("the function enqueues nothing on the stream that is timed")


def test_functions_get_the_stream_and_what_no_graph_holds_is_timed_by_events(rows: Rows) -> None:
    for name in FUNCTIONS:
        assert (rows[name]["status"], rows[name]["verified"]) == ("ok", "true"), rows[name]["reason"]
        assert float(rows[name]["elapsed_ms"]) > 0
    assert rows["captured"]["notes"] == "not explained: a function has no PTX"
    assert "timed by events, because no graph can capture it: " in rows["waits"]["notes"]
    assert "timed by events, because no graph can capture it: " in rows["several and waits"]["notes"]


def test_of_several_kernels_in_a_function_the_sum_and_the_gaps_are_told(rows: Rows) -> None:
    parts = r"2 copies and 1 fill: \d+\.\d µs one by one, \d+\.\d µs (between them|of overlap); not explained: .*"
    assert re.fullmatch(parts, rows["several"]["notes"])
    apart = "its kernels are not timed one by one: they are"
    assert rows["two streams"]["notes"].startswith(f"{apart} on several streams; ")
    assert rows["a graph"]["notes"].startswith(f"{apart} in a graph of the function's own; ")


def test_launches_without_arrays_and_of_any_type_are_timed(rows: Rows) -> None:
    row = rows["no array"]
    assert (row["status"], row["dtype"], row["bytes"], row["effective_gb_s"]) == ("ok", "none", "0", "")
    assert rows["no elements"]["status"] == "ok"
    assert (rows["bytes"]["status"], rows["bytes"]["dtype"]) == ("ok", "uint8")


def test_what_does_not_fit_is_a_row_with_the_reason_and_the_others_go_on(rows: Rows) -> None:
    assert rows["large, small"]["status"] == rows["small, large"]["status"] == "ok"
    needs = {"restored": 19.1, "restored by name": 19.1, "flushed": 17.3, "too large": 30.5}
    for name, mebibytes in needs.items():
        reason = f"needs {mebibytes} MiB of device memory and 17.0 MiB is free; use smaller arrays"
        assert (rows[name]["status"], rows[name]["reason"]) == ("skipped", reason)


def test_an_instance_of_a_gpu_in_mig_mode_is_a_device(fake_driver: FakeDriver, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(PYTHON)
    sweep = f"[[sweep]]\nkernel = 'mine.py:copy'\ndevice = 'mig-74686520'\n{ARRAYS}\n"
    (tmp_path / "mine.toml").write_text(FEW + sweep)
    serial = os.getpid()
    uuid = f"MIG-74686520-6661-6b65-2047-5055{(16 * serial + 2).to_bytes(4, 'little').hex()}"
    settings = {"devices": 3, "mig": 1, "serial": serial, "CUDA_VISIBLE_DEVICES": uuid}
    command = ("smembench", "run", tmp_path / "mine.toml", "--output", tmp_path / "results")
    ended(fake_driver(*command, **settings))
    (stored,) = (tmp_path / "results").iterdir()
    (device,) = (item for item in json.loads((stored / "run.json").read_text())["devices"] if item["name"] != "cpu")
    assert (device["uuid"], device["mig"]) == (uuid, True)
    (row,) = csv.DictReader((stored / "cases.csv").read_text().splitlines())
    assert (row["device"], row["status"], row["temperature_c"]) == ("cuda:0", "ok", "40")
    _, err = ended(fake_driver(*command, "--set", "device=cuda:1", **settings), 4)
    assert "device cuda:1: found 1 GPU, counted from cuda:0" in err
