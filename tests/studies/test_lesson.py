"""Lessons without a GPU: what is computed, what Numba's simulator and the fake driver show, and what a failure is."""

from __future__ import annotations

import json
import pkgutil
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numba import types

from conftest import Ptx, records
from fake_driver.host_code import COMPILER, HostKernel, compile_for_host, kernel_of
from fake_driver.process import FakeDriver, ended
from smembench.cli.lesson import lesson as command
from smembench.cli.options import Outputs
from smembench.kernels.common.grids import covering
from smembench.model.case import Block
from smembench.model.errors import SmembenchError
from smembench.studies import lesson
from smembench.studies.lesson import LESSONS, barrier, bounds, divergence, fence, reuse, scope
from smembench.studies.lesson.experiment import Experiment, Lesson, Observation, load
from smembench.studies.lesson.run import SIMULATOR, isolated, results
from smembench.toolchains import nvvm
from smembench.toolchains.nvrtc import Nvrtc
from smembench.toolchains.registry import Refused

SLIDES = """
typedef float T;
constexpr int BDIMX = 16, BDIMY = 16;
static const Index blockDim = {BDIMX, BDIMY};

extern "C" __global__ void transposeSmem(float *out, float *in, int nx, int ny) {
    // static shared memory
    __shared__ float tile[BDIMY][BDIMX];

    // coordinate in original matrix
    unsigned int ix,iy,ti,to;
    ix = blockIdx.x *blockDim.x + threadIdx.x;
    iy = blockIdx.y *blockDim.y + threadIdx.y;

    // linear global memory index for original matrix
    ti = iy*nx + ix;

    // thread index in transposed block
    unsigned int bidx,irow,icol;
    bidx = threadIdx.y*blockDim.x + threadIdx.x;
    irow = bidx/blockDim.y;
    icol = bidx%blockDim.y;

    // coordinate in transposed matrix
    ix = blockIdx.y * blockDim.y + icol;
    iy = blockIdx.x * blockDim.x + irow;

    // linear global memory index for transposed matrix
    to = iy*ny + ix;

    // transpose with boundary test
    if (ix < nx && iy < ny)
    {
        // load data from global memory to shared memory
        tile[threadIdx.y][threadIdx.x] = in[ti];

        // thread synchronization
        __syncthreads();

        // store data to global memory from shared memory
        out[to] = tile[icol][irow];
    }
}
"""
"""The slides' listing as it is, beside what it takes to compile it."""


@pytest.fixture(scope="module")
def slides(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The slides' listing compiled for the host, as the host form of the lesson's kernel."""
    if not COMPILER:
        pytest.skip("needs g++")
    written = HostKernel("transposeSmem", "10as_written", SLIDES, (16, 16), 2, 2)
    return compile_for_host([written], tmp_path_factory.mktemp("slides"))


def compiled(function: Callable[..., None], *arguments: Any) -> str:
    """PTX of a kernel."""
    text = nvvm.compiled(function, arguments, (9, 0), at_link_time=False).decode()
    return str(text)


# the list


def test_every_lesson_is_listed_and_there() -> None:
    names = [info.name for info in pkgutil.iter_modules(lesson.__path__)]
    there = {name for name in names if hasattr(import_module(f"{lesson.__name__}.{name}"), "LESSON")}
    assert there == set(LESSONS)
    assert all(load(name).experiments for name in LESSONS)


# bounds


def test_the_counts_of_the_slides_listing() -> None:
    assert [bounds.predicted(*size) for size in ((64, 64), (64, 32), (32, 64))] == [
        bounds.Predicted(0, 0, 0),
        bounds.Predicted(1024, 0, 0),
        bounds.Predicted(1024, 0, 0),
    ]
    # In six of the seven lowest blocks threads 0 to 3 of rows 4 to 15 pass the test: 6 · 12 · 4 loads of rows from 100.
    ragged = bounds.predicted(100, 100)
    assert (ragged.wrong, ragged.divergent, ragged.beyond) == (576, 13, 288)


@pytest.mark.parametrize(("nx", "ny"), [(64, 64), (64, 32), (32, 64), (16, 80), (100, 100), (33, 33), (15, 15), (1, 1)])
def test_the_slides_own_listing_is_wrong_where_it_is_predicted(slides: Path, nx: int, ny: int) -> None:
    grid, count = covering(nx, ny, Block(16, 16)), nx * ny
    inp = np.full(count + 16 * 16 * (nx + 16), -1, np.float32)
    inp[:count] = np.arange(count)
    out = np.full(count, np.nan, np.float32)
    kernel_of(slides, 0)(grid, (out, inp), (nx, ny), b"")
    wrong = np.count_nonzero(out.reshape(nx, ny) != inp[:count].reshape(ny, nx).T)
    assert wrong == bounds.predicted(nx, ny).wrong


def test_the_simulator_finds_what_is_predicted() -> None:
    result = [isolated("bounds", number, SIMULATOR, 1) for number in (1, 3)]
    assert result == [
        Observation("1024 of 2048 wrong", as_expected=True),
        Observation("0 of 960 wrong", as_expected=True),
    ]


@pytest.mark.slow
def test_a_gpu_finds_what_is_predicted(fake_driver: FakeDriver, slides: Path) -> None:
    """With the slides' own listing in the place of the lesson's kernel."""
    out, _ = ended(fake_driver("smembench.studies.lesson.run", "bounds", 2, "cuda:0", 1, kernels=slides))
    assert Observation(**json.loads(out)) == Observation("576 of 10000 wrong", as_expected=True)


# barrier, fence, divergence


@pytest.mark.parametrize(("number", "text"), [(0, "wrong in 0 of 2 runs"), (1, "wrong in 2 of 2 runs")])
def test_without_the_barrier_the_transpose_is_wrong(number: int, text: str) -> None:
    assert isolated("barrier", number, SIMULATOR, 2) == Observation(text, as_expected=True)


@pytest.mark.usefixtures("ptx")
def test_what_is_compiled_has_the_barriers_and_fences_of_the_listings() -> None:
    array, index = types.float32[::1], types.uint32
    assert [
        compiled(barrier.build(Block(32, 32), barrier=there), array, array, index, index).count("bar.sync")
        for there in (True, False)
    ] == [1, 0]
    assert compiled(bounds.build(), array, array, index, index).count("bar.sync") == 1
    whole = types.int32[::1]
    listings = (divergence.before_the_branch, divergence.in_both_branches, divergence.returned, divergence.waiting)
    assert [compiled(listing, whole, whole).count("bar.sync") for listing in listings] == [1, 2, 1, 2]
    for fences, before in ((fence.NONE, True), (fence.WRITER, True), (fence.BOTH, True), (fence.BOTH, False)):
        text = compiled(fence.build(fences, read_before=before), *[whole] * 4, types.int32)
        assert len(re.findall(r"membar\.gl|fence\.\w+\.gpu", text)) == sum(fences)
        assert text.count("ld.global") == 4 * (1 + before)


@pytest.mark.parametrize(
    ("fences", "result"),
    [(fence.NONE, (6, 24)), (fence.WRITER, (1, 12)), (fence.READER, (1, 12)), (fence.BOTH, (0, 6))],
)
def test_only_both_fences_forbid_an_old_message(fences: fence.Fences, result: tuple[int, int]) -> None:
    assert fence.orders(fences) == result


def test_a_hang_is_a_row_and_the_simulator_shows_it() -> None:
    result = [isolated("divergence", number, SIMULATOR, 1) for number in (1, 2, 3)]
    assert result == [
        Observation("ends, 64 of 64 right", as_expected=True),
        Observation("ends, 64 of 64 right", as_expected=True),
        Observation("no end within 5 s: killed", as_expected=True),
    ]


# reuse


def test_reads_of_an_element_become_as_many_times_fewer_as_the_tile_is_wide() -> None:
    assert set(reuse.global_reads("naive", 4).values()) == {8}
    assert set(reuse.global_reads("tiled", 4).values()) == {2}
    assert set(reuse.uses("tiled", 4).values()) == {4}


def test_variables_are_in_the_machine_code(ptx: Ptx) -> None:
    assert load("symbols").experiments[0].run(1) == Observation(
        "constData 1024, devData 4, devPointer 8 bytes", as_expected=True
    )


def test_without_a_compiler_the_variables_are_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Nvrtc, "unavailable", lambda toolchain: "no libnvrtc")
    with pytest.raises(Refused, match="needs NVRTC: no libnvrtc"):
        load("symbols").experiments[0].run(1)


@pytest.mark.slow
def test_variables_are_filled_and_read(fake_driver: FakeDriver) -> None:
    """On a fake driver, whose kernels without a host form do nothing: the row of the kernel has to fail."""
    out, _ = ended(fake_driver("smembench", "lesson", "symbols", "--json"), 1)
    result = json.loads(out)
    assert result["device"]["model"] == "fake driver, no GPU"
    rows = result["rows"]
    assert [row["as_expected"] for row in rows] == [True, True, True, True, False]
    sizes = [re.fullmatch(r"(\d+) bytes at 0x[0-9a-f]+, (\d+) of \2 the same", row["found"]) for row in rows[1:4]]
    assert [size and size[1] for size in sizes] == ["1024", "4", "8"]
    assert rows[4]["found"] == "0 of 256 right"


# scope


def test_what_needs_no_gpu_of_scope_is_shown_without_one(ptx: Ptx) -> None:
    rows = {row.what: (number, row) for number, row in enumerate(load("scope").experiments)}
    result = {what: row.run(1) for what, (_, row) in rows.items() if row.needs == "nothing"}
    assert [item.text for item in result.values()] == ["16, 13, 4", "stores 1-way, loads 32-way"]
    assert all(item.as_expected for item in result.values())
    threads = [number for number, row in rows.values() if row.needs == "threads"]
    assert [isolated("scope", number, SIMULATOR, 1) for number in threads] == [
        Observation("1024 of 1024 right", as_expected=True),
        Observation("each once, 0 out of turn", as_expected=True),
    ]


def test_without_its_barrier_a_neighbour_is_read_too_early() -> None:
    whole = types.Array(types.int32, 1, "C")
    assert compiled(scope.neighbours, whole, whole).count("bar.sync") == 1


def test_blocks_fit_by_what_is_left_of_shared_memory() -> None:
    assert {name: scope.resident(name) for name in ("7.0", "8.6")} == {"7.0": [16, 6, 2], "8.6": [12, 5, 2]}


# the command


def _raise(error: Exception) -> Callable[[int], Observation]:
    def run(runs: int) -> Observation:
        raise error

    return run


MADE: Mapping[str, Experiment] = {
    "right": Experiment("right", "so", lambda runs: Observation("so", as_expected=True), needs="nothing"),
    "explained": Experiment(
        "new", "so", lambda runs: Observation("else", as_expected=False), needs="nothing", unless="newer"
    ),
    "missing": Experiment("missing", "so", _raise(Refused("needs a compiler")), needs="nothing"),
    "gpu": Experiment("gpu", "so", _raise(AssertionError()), needs="gpu"),
    "wrong": Experiment("wrong", "so", lambda runs: Observation("else", as_expected=False), needs="nothing"),
    "raises": Experiment("raises", "so", _raise(ValueError("no")), needs="nothing"),
    "lost": Experiment("lost", "so", lambda runs: Observation("so", as_expected=True)),
}
"""``lost`` has to be run in a process of its own, which does not know a lesson that is made here."""


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Make a lesson of these experiments."""

    def make(*names: str) -> None:
        result = Lesson("no document", tuple(MADE[name] for name in names), "Because.", "looked at")
        monkeypatch.setitem(LESSONS, "made", "what is made")
        monkeypatch.setitem(sys.modules, "smembench.studies.lesson.made", SimpleNamespace(LESSON=result))

    return make


def test_what_is_explained_or_cannot_be_run_is_no_failure(
    made: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    made("right", "explained", "missing", "gpu")
    command(context=SimpleNamespace(info_name="made"), runs=100, device="cpu", **asdict(Outputs(markdown=True)))
    out, err = capsys.readouterr()
    assert err.splitlines() == ["1 of 4: right", "2 of 4: new", "3 of 4: missing", "4 of 4: gpu"]
    assert [line for line in out.splitlines() if line.startswith("| ")][2:] == [
        "| right | cpu | so | so | yes |",
        "| new | cpu | so | else | no |",
        "| missing | cpu | so | needs a compiler |  |",
        "| gpu |  | so | needs a GPU |  |",
    ]
    assert out.splitlines()[-3:] == ["Because. How it is found: looked at.", "", "- new: newer"]


@pytest.mark.parametrize(
    ("name", "text"), [("wrong", "else"), ("raises", "ValueError: no"), ("lost", "its process ended with 1")]
)
def test_what_nothing_explains_is_a_failure(
    made: Callable[..., None], capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, text: str
) -> None:
    made("right", name)
    with pytest.raises(SmembenchError, match="1 of 2 experiments did not show what they should"):
        command(
            context=SimpleNamespace(info_name="made"),
            runs=100,
            device="cpu",
            **asdict(Outputs(export=tmp_path / "rows.csv")),
        )
    assert "nothing explains it" in capsys.readouterr().out
    last = records((tmp_path / "rows.csv").read_text())[-1]
    assert text in last["found"]
    assert (last["as_expected"], last["unless"]) == ("false", "")


def test_rows_come_one_by_one(made: Callable[..., None]) -> None:
    made("right", "explained")
    begun: list[str] = []
    rows = results("made", "cpu", 1, lambda experiment: begun.append(experiment.what))
    assert next(rows).observation == Observation("so", as_expected=True)
    assert begun == ["right"]
