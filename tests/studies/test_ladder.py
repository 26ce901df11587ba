from __future__ import annotations

import re
from dataclasses import replace
from importlib import import_module
from itertools import pairwise
from math import prod
from pathlib import Path
from pkgutil import walk_packages

import pytest
from hypothesis import given
from hypothesis import strategies as st

import smembench.kernels
from conftest import Measured, Rows
from smembench.explain.analysis import explain
from smembench.kernels import registry
from smembench.kernels.kernel import Kernel
from smembench.kernels.problems import PROBLEMS
from smembench.model.device import DeviceInfo
from smembench.run.config import from_toml
from smembench.store.relations import relate
from smembench.store.run import Run
from smembench.store.run_json import Description
from smembench.store.schema import Row, row_of
from smembench.studies.explain import Axes, cases
from smembench.studies.ladder.climb import Rung, ceiling, climb, problems, steps, sweeps
from smembench.views.ladder import ladder
from smembench.views.sections import sections

TRANSPOSES = [kernel.name for kernel in steps("transpose", "cuda")]
RUN = Description(devices=[DeviceInfo(name="cuda:0", model="H200")])


def climbed(result: list[Row]) -> dict[str, list[str]]:
    """The lines of the only table, by step."""
    (section,) = ladder(Run(result, RUN))
    return {line[0]: list(line[1:]) for line in section.cells}


FREE = re.compile(r"\b(no|free of|without)\b[^:;,]*\bconflicts")
CLAIMED = [
    kernel
    for kernel in registry.kernels()
    if kernel.kind == "cuda" and not (kernel.port or kernel.peer) and FREE.search(f"{kernel.summary}; {kernel.ladder}")
]


@pytest.mark.parametrize("kernel", CLAIMED, ids=lambda kernel: kernel.name)
def test_who_is_said_to_have_no_conflicts_has_none_in_any_block(kernel: Kernel) -> None:
    problem = PROBLEMS[kernel.problem]
    blocks = ",".join(map(str, kernel.default_blocks or problem.default_blocks))
    size = 256 if any(axis.name == "n" for axis in problem.sizes) else None
    for case in cases(kernel.name, Axes(blocks, ",".join(kernel.dtypes or problem.dtypes[:2])), n=size):
        assert {access.degree for access in explain(case).shared} <= {1.0}, case.id


def test_the_documents_kernels_come_first() -> None:
    assert TRANSPOSES[:3] == ["naiveGmem", "transposeSmem", "transposeSmemPad"]
    assert [kernel.name for kernel in steps("transpose", "cpu")] == TRANSPOSES[:3]
    assert [kernel.name for kernel in steps("matmul", "cuda")][:2] == ["naive", "tiled"]
    assert problems()[:2] == ("transpose", "matmul")
    assert steps("transpose", "tpu") == ()


@pytest.mark.parametrize("problem", problems())
def test_every_step_is_measured_by_a_config(problem: str) -> None:
    configs = map(from_toml, (Path(__file__).parents[2] / "configs").glob("*.toml"))
    sweeps = [sweep for config in configs for sweep in config.sweep if sweep.problem == problem]
    assert {kernel.name for kernel in steps(problem, "cuda")} <= {name for sweep in sweeps for name in sweep.kernel}


@pytest.mark.parametrize("problem", problems())
def test_what_a_step_changes_is_a_few_words(problem: str) -> None:
    for kind in ("cuda", "cpu"):
        for kernel in steps(problem, kind):
            assert kernel.ladder[-1] not in ". "
            assert len(kernel.ladder) <= 64


@pytest.mark.parametrize("kind", ["cuda", "cpu"])
@pytest.mark.parametrize("problem", problems())
def test_the_file_of_a_step_names_the_step_before(problem: str, kind: str) -> None:
    modules = [import_module(info.name) for info in walk_packages(smembench.kernels.__path__, "smembench.kernels.")]
    files = {
        kernel: str(module.__doc__)
        for module in modules
        for kernel in (getattr(module, "KERNEL", None), *getattr(module, "KERNELS", ()))
    }
    for dtype in PROBLEMS[problem].dtypes:
        for before, step in pairwise(step for step in steps(problem, kind) if step.takes(dtype)):
            assert before.name in files[step], dtype


@pytest.mark.parametrize(
    ("dtype", "m", "more"),
    [
        ("bfloat16", "4,16", ["fewRows", "fewRowsClustered"]),
        ("bfloat16", "128", ["fewRowsClustered"]),
        ("float32", "8", ["oneRow"]),
        ("bfloat16", "129", []),
    ],
)
def test_products_of_few_rows_have_steps_of_their_own(dtype: str, m: str, more: list[str]) -> None:
    (few,), (usual,) = sweeps("matmul", "cuda", dtype=dtype, m=m), sweeps("matmul", "cuda", dtype=dtype)
    assert str(few["kernel"]).split(",") == [*str(usual["kernel"]).split(","), *more]


def test_the_limit_is_the_copy_or_the_peak() -> None:
    assert (ceiling("transpose"), ceiling("matmul")) == ("percent_of_copy", "percent_of_peak")


def gained(rung: Rung) -> float | None:
    """The gain without its interval."""
    return rung.gain and rung.gain.value


def test_a_rung_is_the_fastest_of_its_blocks(measured: Measured) -> None:
    slow, fast = measured("naiveGmem", [4.0]), measured("naiveGmem", [3.0])
    other = replace(slow, case=replace(slow.case, block=None))
    result = climb(Run([row_of("run", item, {}) for item in (other, fast, measured("transposeSmem", [2.0]))]))
    assert [(rung.row.elapsed_ms, gained(rung)) for rung in result] == [(3.0, None), (2.0, 1.5)]


@given(times=st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=len(TRANSPOSES)))
def test_the_gains_of_new_bests_multiply_to_the_whole_climb(rows: Rows, times: list[float]) -> None:
    result = climb(Run(rows({name: [time] for name, time in zip(TRANSPOSES, times, strict=False)})))
    assert [rung.kernel.name for rung in result] == TRANSPOSES[: len(times)]
    assert prod(max(gained(rung) or 1.0, 1.0) for rung in result) == pytest.approx(times[0] / min(times))


def test_a_step_without_a_figure_is_left_out_and_said(rows: Rows) -> None:
    result = rows({"naiveGmem": [4.0], "transposeSmem": [], "transposeSmemPad": [1.0], "memcpy": [0.5]})
    assert [gained(rung) for rung in climb(Run(result))] == [None, 4.0]
    (section,) = ladder(Run(result, RUN))
    assert len(section.cells) == 3
    assert section.notes[0] == "transposeSmem 32x32: failed: LaunchError: out of luck"
    assert climb(Run([])) == []


def test_the_climb_as_a_table(measured: Measured) -> None:
    times = {"memcpy": 0.5, "copyGmem": 0.8, "naiveGmem": 4.0, "transposeSmem": 2.0, "transposeSmemPad": 1.0}
    done = [measured(name, [time] * 3, block=None) for name, time in times.items()]
    result = [row_of("run", item, relate(done)) for item in done]
    assert climbed(result) == {
        "naiveGmem": ["4.0000", "33.6", "12.5", "", "from global memory to global memory: writes strided"],
        "transposeSmem": [
            "2.0000",
            "67.1",
            "25.0",
            "2.000\n±0.01 %",
            "through a shared tile: both global sides coalesced",
        ],
        "transposeSmemPad": [
            "1.0000",
            "134.2",
            "50.0",
            "2.000\n±0.01 %",
            "padded rows, against the tile's bank conflicts",
        ],
        "memcpy": ["0.5000", "268.4", "100.0", "", "the ceiling"],
    }
    (section,) = ladder(Run(result, RUN))
    assert section.heading.startswith("H200 · matrix transpose 4096×4096 float32")
    assert [bar.label for bar in section.bars] == list(climbed(result))
    assert "transposeSmemPad, 4.000 times (±0.01 %) as fast as naiveGmem, at 50.0 % of memcpy" in section.sentence


def test_steps_that_lose_have_a_table_of_their_own(rows: Rows) -> None:
    times = {"naiveGmem": 4.0, "transposeSmem": 1.0, "transposeSmemPad": 2.0, "transposeCoarsened": 0.5}
    main, lost = ladder(Run(rows({name: [ms] * 9 for name, ms in times.items()}, pad=1), RUN))
    assert [line[0].split()[0] for line in main.cells] == ["naiveGmem", "transposeSmem", "transposeCoarsened"]
    assert [line[0].split()[0] for line in lost.cells] == ["transposeSmemPad"]
    assert "steps that lose" in lost.heading


def test_times_with_wide_intervals_make_no_ratio(rows: Rows) -> None:
    vague, sure = rows({"naiveGmem": [4.0] * 9, "transposeSmem": [1.0] * 9})
    vague = replace(vague, uncertainty=0.21)
    assert [gained(rung) for rung in climb(Run([vague, sure]))] == [None, None]
    assert [gained(rung) for rung in climb(Run([replace(vague, uncertainty=0.2), sure]))] == [None, 4.0]
    (section,) = sections(Run([vague, sure], RUN))
    assert section.sentence.startswith("Through shared memory the transpose is faster than naiveGmem.")
    assert section.notes == ["naiveGmem 32x32: no ratios, because the 95 % interval is wider than ±20 %"]


def test_a_gain_within_the_noise_is_in_brackets(rows: Rows) -> None:
    result = rows({"naive": [2.9, 3.0, 3.1], "tiled": [2.8, 2.9, 3.05]}, problem="matmul")
    assert climbed(result)["tiled 32x32"][2] == "(1.0\n±12.6 %)"
    (section,) = ladder(Run(result, RUN))
    assert section.sentence.startswith("The fastest step is tiled 32x32, as fast as naive 32x32 within 14.2 %.")
    assert section.sentence.endswith("gains in brackets are within the noise.")
    assert [column.heading for column in section.columns] == ["step", "elapsed ms", "TFLOP/s", "gain", "what changes"]


def test_tables_are_of_one_size_and_device_and_hold_only_steps(rows: Rows) -> None:
    both = [*rows({"naiveGmem": [4.0], "copyGmem": []}), *rows({"naiveGmem": [8.0]}, device="cpu")]
    both += rows({"cpu": [5.0]}, problem="matmul", device="cpu")
    result = ladder(Run([*both, *rows({"naiveGmem": [1.0]}, n=512)], RUN))
    assert [section.cells[0][1] for section in result] == ["4.0", "8.0", "1.0"]
    assert not any(section.notes for section in result)


def test_other_libraries_stand_below_the_ladder(rows: Rows) -> None:
    result = rows({"naiveGmem": [4.0], "transposeSmem": [2.0]})
    torch = replace(rows({"copyGmem": [3.0]})[0], kernel="torch", compiler="torch", block_x=None, block_y=None)
    port = replace(result[0], compiler="nvrtc")
    lines = climbed([torch, port, *result])
    assert list(lines) == ["naiveGmem 32x32", "transposeSmem 32x32", "torch"]
    assert lines["torch"][-2:] == ["", "PyTorch's copy of a transposed view"]
