"""The stencil whose coefficients are in constant memory: problem, kernels' traces, and the model of the cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from smembench.explain.analysis import Explanation, explain
from smembench.explain.constant import addresses
from smembench.explain.prediction import predict
from smembench.kernels import registry
from smembench.kernels.constant.problem import TAPS
from smembench.kernels.problems import PROBLEMS, Verification
from smembench.model.case import Block, Case

Array = NDArray[Any]
PROBLEM = PROBLEMS["constant"]
BLOCK = Block(256, 1)
KERNELS = registry.names("constant")


def case_of(kernel: str = "globalUniform", dtype: str = "float32", n: int = 1000, block: Block = BLOCK) -> Case:
    return Case("constant", kernel, "cuda:0", dtype, 1, n, None, block)


def explained(kernel: str, **case: Any) -> Explanation:
    return explain(case_of(kernel, **case), "9.0")


def judge(output: Callable[[Array, Array], Array], dtype: str = "float32") -> Verification:
    """Judge what a stencil in the given precision makes of the input and the coefficients."""
    case = case_of(dtype=dtype)
    inputs = PROBLEM.inputs(case, seed=1)
    return PROBLEM.check(case, PROBLEM.reference(case, inputs, ""), output(*inputs).astype(dtype))


@pytest.mark.parametrize("dtype", PROBLEM.dtypes)
def test_a_sum_in_the_precision_of_the_dtype_passes_in_any_order(dtype: str) -> None:
    def backwards(line: Array, weights: Array) -> Array:
        total = np.zeros(1000, dtype)
        for tap in reversed(range(TAPS)):
            total += weights[tap] * line[tap : tap + 1000]
        return total

    verdict = judge(backwards, dtype)
    assert verdict.passed
    assert verdict.error is not None
    assert 0 < verdict.error < TAPS * np.finfo(dtype).eps


WRONG: dict[str, Callable[[Array, Array], Array]] = {
    "a tap left out": lambda line, weights: np.correlate(line, np.where(np.arange(TAPS) == 0, 0, weights)),
    "mirrored": lambda line, weights: np.convolve(line, weights, "valid"),
    "one element off": lambda line, weights: np.roll(np.correlate(line, weights), 1),
    "in half the digits": lambda line, weights: np.correlate(line.astype(np.float16), weights),
    "all zero": lambda line, weights: np.zeros(1000),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_a_wrong_stencil_fails(wrong: Callable[[Array, Array], Array]) -> None:
    verdict = judge(wrong)
    assert not verdict.passed
    assert "allowed 1.1e-06" in verdict.detail


def test_poison_fails_and_has_no_error() -> None:
    def poisoned(line: Array, weights: Array) -> Array:
        right = np.correlate(line, weights)
        right[-1] = np.nan
        return right

    assert judge(poisoned) == Verification(False, None, "1 entries are NaN or infinite")


@given(st.lists(st.none() | st.integers(0, 40), min_size=32, max_size=32))
def test_a_request_is_split_by_its_different_addresses(lanes: list[int | None]) -> None:
    assert addresses(lanes, 1) == len(set(lanes) - {None})


@pytest.mark.parametrize(("kernel", "split"), [("constantUniform", 1.0), ("constantDiverging", 9.0)])
@pytest.mark.parametrize("dtype", PROBLEM.dtypes)
def test_diverging_lanes_read_every_coefficient_at_each_step(kernel: str, split: float, dtype: str) -> None:
    (access,) = explained(kernel, dtype=dtype, n=4096).constant
    assert access.addresses == split
    assert access.requests == TAPS * 4096 // 32
    assert "table[tap]" in access.source
    assert predict(case_of(kernel, dtype, 4096), "9.0").constant_addresses == split


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("dtype", PROBLEM.dtypes)
def test_shared_memory_is_free_of_conflicts_either_way(kernel: str, dtype: str) -> None:
    result = explained(kernel, dtype=dtype, n=4096)
    assert result.degree("load") == result.degree("store") == 1.0
    assert bool(result.constant) == kernel.startswith("constant")


def test_uniform_reads_of_shared_coefficients_are_a_broadcast() -> None:
    reads = {kernel: explained(kernel).shared[-1] for kernel in ("sharedUniform", "sharedDiverging")}
    assert [(read.site.array, read.broadcast) for read in reads.values()] == [("shared1", True), ("shared1", False)]


@pytest.mark.parametrize(("kernel", "sectors"), [("globalUniform", 1.0), ("globalDiverging", 2.0)])
def test_nine_coefficients_in_global_memory_lie_in_two_sectors(kernel: str, sectors: float) -> None:
    reads = [access for access in explained(kernel, n=4096).memory if access.site.array == "coefficients"]
    assert [access.sectors for access in reads] == [sectors]


def test_a_trace_stands_for_a_grid_of_any_length() -> None:
    (access,) = explained("constantDiverging", n=1_000_001).constant
    assert access.requests == TAPS * -(-1_000_001 // 32)
    assert access.addresses == pytest.approx(9 - 8 / 31_251)  # the last warp has one lane


@pytest.mark.parametrize("kernel", KERNELS)
def test_blocks_with_fewer_threads_than_taps_are_refused(kernel: str) -> None:
    refused, taken = (case_of(kernel, block=block) for block in (Block(4, 2), Block(3, 3)))
    assert "at least 9 threads, not 4x2" in str(registry.kernel_of(refused).refusal(refused))
    assert registry.kernel_of(taken).refusal(taken) is None
