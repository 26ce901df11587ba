"""The search of ``smembench tune``: what is tried, what is left out, who comes into the final, what is written."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smembench.explain.analysis import explain
from smembench.kernels import registry
from smembench.model.case import Block, Case
from smembench.model.hardware import STATIC_SHARED_BYTES
from smembench.model.measurement import Measurement
from smembench.run.config import Sweep, from_stored
from smembench.run.narrowed import as_sweep, to_toml
from smembench.studies.tune import (
    FINALISTS,
    THREADS,
    PredictedCost,
    Tuned,
    finalists,
    lower_end,
    predicted_cost,
    search,
)
from smembench.views.tune import finals

BASE = Case("transpose", "", "cuda:0", "float32", 4096, 4096)
SMEM = ("transposeSmem", "transposeSmemPad")


def nothing(case: Case) -> None:
    return None


def test_candidates_fit_a_block_and_compute_the_problem() -> None:
    result = search(BASE, registry.names("transpose"), nothing)
    assert result.predicted_slow == 0
    assert not {"memcpy", "copyGmem"} & {case.kernel for case in result.cases}
    for case in result.cases:
        kernel = registry.kernel_of(case)
        assert kernel.static_bytes(case) <= STATIC_SHARED_BYTES
        if case.block is not None:
            assert THREADS[0] <= case.block.x * case.block.y <= THREADS[1]
    assert len(set(result.cases)) == len(result.cases)


def test_blocks_that_a_kernel_refuses_are_counted() -> None:
    result = search(Case("matmul", "", "cuda:0", "float32", 64, 64, 64), ["tiled"], nothing)
    assert [case.block for case in result.cases] == [Block(8, 8), Block(16, 16), Block(32, 32)]
    assert result.over_limits > 0


def test_a_kernel_is_tried_in_its_own_blocks_too() -> None:
    result = search(Case("matmul", "", "cuda:0", "float32", 1025, 1025, 1025), ["slicedK12x6"], nothing)
    assert Block(16, 24) in {case.block for case in result.cases}


def test_candidates_with_much_more_traffic_are_left_out() -> None:
    def predict(case: Case) -> PredictedCost:
        return PredictedCost(
            sectors=65.0 if case.block == Block(8, 8) else 2.0, wavefronts=33.0 if case.pad == 0 else 8.0
        )

    result = search(BASE, SMEM, predict)
    assert {case.pad for case in result.cases} == {1, 2}
    assert Block(8, 8) not in {case.block for case in result.cases}
    assert result.predicted_slow > 0


def test_a_candidate_is_left_where_one_has_the_fewest_sectors_and_another_the_fewest_wavefronts() -> None:
    costs = {1: PredictedCost(sectors=100.0, wavefronts=1.0), 2: PredictedCost(sectors=1.0, wavefronts=10.0)}
    result = search(BASE, SMEM, lambda case: costs[case.pad or 2])
    assert {case.pad for case in result.cases} == {0, 2}


def test_the_model_leaves_out_columns_written_straight_to_memory_and_32_way_conflicts() -> None:
    def only(case: Case) -> PredictedCost | None:
        return predicted_cost(case) if case.block == Block(32, 32) else PredictedCost(1e12, 1e12)

    result = search(BASE, ("naiveGmem", *SMEM), only)
    assert {case.kernel for case in result.cases} == {"transposeSmemPad"}


@pytest.mark.parametrize(
    ("kernel", "block"), [("naive", Block(32, 8)), ("tiled", Block(32, 32)), ("tiled1D", Block(16, 8))]
)
def test_the_traffic_of_a_product_is_of_the_whole_launch(kernel: str, block: Block) -> None:
    case = Case("matmul", kernel, "cuda:0", "float32", 256, 256, 256, block)
    explained = explain(case)
    sectors = sum(access.sectors * access.requests for access in explained.memory)
    predicted = predicted_cost(case)
    assert predicted is not None
    assert predicted.sectors == pytest.approx(sectors)
    shared = sum(access.wavefronts * access.requests for access in explained.shared)
    assert predicted.wavefronts == pytest.approx(shared)


def test_products_with_a_block_of_another_shape_are_compared_over_the_same_k() -> None:
    few, many = (
        predicted_cost(Case("matmul", "naive", "cuda:0", "float32", 512, 512, 512, block))
        for block in (Block(32, 4), Block(32, 16))
    )
    assert few == many


def test_cpu_cases_and_library_calls_have_no_predicted_traffic() -> None:
    assert predicted_cost(Case("transpose", "naiveGmem", "cpu", "float32", 64, 64, None, Block(8, 8))) is None
    assert predicted_cost(Case("transpose", "memcpy", "cuda:0", "float32", 64, 64)) is None


@given(st.lists(st.lists(st.floats(0.1, 10), min_size=3, max_size=9), min_size=1, max_size=12))
def test_finalists_are_those_whose_interval_begins_first(measured: Any, times: list[list[float]]) -> None:
    done = [measured("naiveGmem", values, block=Block(1, index + 1)) for index, values in enumerate(times)]
    chosen = finalists(done)
    assert len(chosen) == min(len(done), FINALISTS)
    worst = max(lower_end(m) for m in done if m.case in chosen)
    assert all(lower_end(m) >= worst for m in done if m.case not in chosen)


def test_failed_candidates_are_no_finalists(measured: Callable[..., Measurement]) -> None:
    assert finalists([measured("naiveGmem"), measured("transposeSmem", [1.0] * 3)]) == [
        measured("transposeSmem", [1.0]).case
    ]


@pytest.mark.parametrize(
    "case",
    [
        Case("transpose", "transposeSmemPad", "cuda:0", "float64", 4096, 4096, None, Block(16, 8), 2),
        Case("transpose", "transposeSmem", "cpu", "float32", 30, 50, None, Block(16, 8), 0),
        Case("matmul", "naive", "cuda:1", "float32", 30, 50, 70, Block(16, 16), cache="cold"),
    ],
)
def test_the_file_of_the_best_case_measures_that_case(case: Case) -> None:
    sweep = from_stored(tomllib.loads(to_toml([as_sweep(case)], ["a remark", "another"]))).sweep[0]
    assert sweep == from_stored({"sweep": [as_sweep(case)]}).sweep[0]
    assert isinstance(sweep, Sweep)
    assert (sweep.kernel, sweep.device, sweep.dtype, sweep.block) == (
        (case.kernel,),
        (case.device,),
        (case.dtype,),
        (case.block,),
    )
    assert not case.pad or sweep.pad_width == (case.pad,)


def test_the_final_has_the_interval_that_other_tables_have(measured: Callable[..., Measurement]) -> None:
    """It covers what differs between rounds, and a single round does not show that."""
    one = measured("transposeSmem", [1.0, 1.01, 1.0, 1.01, 1.1, 1.11])
    three = replace(one, samples=tuple(replace(item, round=at // 2) for at, item in enumerate(one.samples)), rounds=3)
    widths = []
    for measurement, notes in ((replace(one, rounds=1), 1), (three, 0)):
        section = finals(Tuned(one.case, [one.case], [measurement]))
        assert len([note for note in section.notes if "fewer than three rounds" in note]) == notes
        widths += [cell for cell in section.cells[0] if cell.startswith("±")]
    assert widths == ["±5.4 %", "±14.2 %"]


def test_the_final_says_whether_the_winner_is_one(measured: Callable[..., Measurement]) -> None:
    fast, level, slow = (
        measured(name, values)
        for name, values in [
            ("transposeSmemPad", [1.0, 1.1, 1.2]),
            ("transposeSmem", [1.1, 1.2, 1.3]),
            ("naiveGmem", [2.0, 2.1, 2.2]),
        ]
    )
    clear = finals(Tuned(fast.case, [slow.case, fast.case], [slow, fast]))
    assert "transposeSmemPad 32x32 is the fastest" in clear.sentence
    tied = finals(Tuned(fast.case, [slow.case, fast.case, level.case], [level, slow, fast]))
    assert tied.sentence.endswith("but does not differ from transposeSmem 32x32 beyond the noise.")
    assert [line[0] for line in tied.cells] == ["transposeSmemPad 32x32", "transposeSmem 32x32", "naiveGmem 32x32"]
