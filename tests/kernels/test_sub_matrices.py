"""Products of sub-matrices: rows a stride apart, and nothing between them read or written."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smembench.kernels.problems import PROBLEMS
from smembench.model.case import Block, Case


def case_of(dtype: str = "float32", m: int = 30, n: int = 40, k: int = 50) -> Case:
    return Case("matmul", "any", "cpu", dtype, m, n, k)


def test_a_stride_is_that_of_all_three_matrices_and_moves_no_more_bytes() -> None:
    problem, case = PROBLEMS["matmul"], case_of(m=3, n=5, k=7)
    strided = replace(case, stride=10)
    assert problem.scalars(strided) == (3, 5, 7, 10, 10, 10)
    assert problem.lengths(strided) == (3 * 10, 3 * 10, 7 * 10)
    assert problem.elements(strided) == problem.elements(case) == problem.lengths(case)
    assert problem.bytes_moved(strided) == problem.bytes_moved(case)
    assert problem.input_key(strided) != problem.input_key(case)


@pytest.mark.parametrize(("stride", "refused"), [(None, False), (1, True), (49, True), (50, False), (1000, False)])
def test_a_stride_is_as_long_as_the_longest_row(stride: int | None, refused: bool) -> None:
    reason = PROBLEMS["matmul"].unsupported(replace(case_of(), stride=stride))
    assert ("use 50 or more" in str(reason)) == (reason is not None) == refused


def test_between_the_rows_of_sub_matrices_is_nothing_to_compute_with() -> None:
    problem, case = PROBLEMS["matmul"], case_of()
    dense, strided = problem.inputs(case, seed=1), problem.inputs(replace(case, stride=64), seed=1)
    for array, wide, (rows, columns) in zip(dense, strided, [(30, 50), (50, 40)], strict=True):
        matrix = wide.reshape(rows, 64)
        assert (matrix[:, :columns] == array.reshape(rows, columns)).all()
        assert np.isnan(matrix[:, columns:]).all()


@pytest.mark.parametrize("sizes", [(30, 40, 50), (3, 1100, 7)], ids=["exact", "Freivalds"])
@pytest.mark.parametrize("dtype", PROBLEMS["matmul"].dtypes)
def test_what_lies_between_the_rows_of_c_must_stay_poison(dtype: str, sizes: tuple[int, int, int]) -> None:
    problem, case = PROBLEMS["matmul"], replace(case_of(dtype, *sizes), stride=1200)
    inputs = problem.inputs(case, seed=1)
    reference = problem.reference(case, inputs, "")
    output = np.full(problem.output_length(case), np.nan, dtype)
    output.view("u1")[:] = 0xFF
    rows, (a, b) = output.reshape(case.m, 1200), (array.reshape(-1, 1200) for array in inputs)
    rows[:, : case.n] = a[:, : case.k] @ b[:, : case.n]
    assert problem.check(case, reference, output).passed
    assert not problem.check(case, reference, np.where(np.isnan(output), 0, output).astype(dtype)).passed
    rows[1, case.n + 3] = 0.0
    verdict = problem.check(case, reference, output)
    assert not verdict.passed
    assert verdict.detail == f"1 elements between the rows of C were written, the first in row 1 at {case.n + 3}"


@given(st.integers(1, 600), st.integers(1, 600), st.integers(1, 600), st.integers(0, 700))
def test_the_pattern_of_a_sub_matrix_is_one_whose_rows_begin_at_the_same_places(
    m: int, n: int, k: int, gap: int
) -> None:
    problem = PROBLEMS["matmul"]
    case = Case("matmul", "any", "cuda:0", "float32", m, n, k, Block(16, 16), stride=max(n, k) + gap)
    smaller = problem.pattern(case)
    assert case.stride is not None
    assert smaller.stride is not None
    assert problem.unsupported(smaller) is None
    assert smaller.stride <= case.stride
    assert smaller.stride % 32 == case.stride % 32
    assert problem.pattern(smaller) == smaller
