"""Products of sub-matrices inside wider matrices: rows a stride apart, and nothing around them read or written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from programs import multiplied
from smembench.kernels.problems import PROBLEMS
from smembench.model.case import Case
from smembench.model.formats import carried, produced, widened
from smembench.model.problem import ITEMSIZE


def case_of(dtype: str = "float32", m: int = 30, n: int = 40, k: int = 50) -> Case:
    return Case("matmul", "any", "cpu", dtype, m, n, k)


def test_a_stride_is_that_of_all_three_matrices_and_moves_no_more_bytes() -> None:
    problem, case = PROBLEMS["matmul"], case_of(m=3, n=5, k=7)
    strided = replace(case, stride=10)
    assert problem.scalars(strided) == (3, 5, 7, 10, 10, 10)
    assert problem.lengths(strided) == (19 * 10, 19 * 10, 23 * 10)  # 16 rows above
    assert problem.elements(strided) == problem.elements(case) == problem.lengths(case)
    assert problem.bytes_moved(strided) == problem.bytes_moved(case)
    assert problem.input_key(strided) != problem.input_key(case)


@pytest.mark.parametrize(("stride", "refused"), [(None, False), (1, True), (49, True), (50, False), (1000, False)])
def test_a_stride_is_as_long_as_the_longest_row(stride: int | None, refused: bool) -> None:
    reason = PROBLEMS["matmul"].unsupported(replace(case_of(), stride=stride))
    assert ("use 50 or more" in str(reason)) == (reason is not None) == refused


def around(wide: Any, case: Case, rows: int, columns: int) -> tuple[Any, Any]:
    """The sub-matrix as a kernel gets it, and what else is in the wider matrix."""
    first, stride = PROBLEMS["matmul"].first(case), case.stride
    assert stride is not None
    matrix = wide[first:][: (rows - 1) * stride + columns]
    strides = (stride * wide.itemsize, wide.itemsize)
    result = np.lib.stride_tricks.as_strided(matrix, (rows, columns), strides).copy()
    inside = np.zeros(wide.size, bool)
    for row in range(rows):
        inside[first + row * stride :][:columns] = True
    return result, wide[~inside]


@pytest.mark.parametrize(("stride", "first"), [(50, 16 * 50), (81, 16 * 81), (82, 16 * 82 + 16), (200, 16 * 200 + 64)])
def test_sub_matrices_begin_inside_the_wider_ones_and_around_them_is_nothing_to_compute_with(
    stride: int, first: int
) -> None:
    problem, case = PROBLEMS["matmul"], replace(case_of(), stride=stride)
    assert problem.first(case) == first
    assert problem.first(case_of()) == 0
    dense, strided = problem.inputs(case_of(), seed=1), problem.inputs(case, seed=1)
    for array, wide, (rows, columns) in zip(dense, strided, [(30, 50), (50, 40)], strict=True):
        matrix, rest = around(wide, case, rows, columns)
        assert (matrix == array.reshape(rows, columns)).all()
        assert np.isnan(rest).all()
    assert [len(array) for array in strided] == [*problem.lengths(case)[1:]]


@pytest.mark.parametrize("sizes", [(30, 40, 50), (3, 1100, 7)], ids=["exact", "Freivalds"])
@pytest.mark.parametrize("dtype", PROBLEMS["matmul"].dtypes)
def test_what_lies_around_c_must_stay_poison(dtype: str, sizes: tuple[int, int, int]) -> None:
    problem, case = PROBLEMS["matmul"], replace(case_of(dtype, *sizes), stride=1200)
    inputs = problem.inputs(case, seed=1)
    reference = problem.reference(case, inputs, "")
    output = np.full(problem.output_length(case), -1, f"i{ITEMSIZE[produced(dtype)]}").view(carried(produced(dtype)))
    (a, _), (b, _) = around(inputs[0], case, case.m, case.depth), around(inputs[1], case, case.depth, case.n)
    first = problem.first(case)
    for row in range(case.m):
        output[first + row * 1200 :][: case.n] = multiplied(dtype, a, b)[row]
    assert problem.check(case, reference, output).passed
    everywhere = output.copy()
    everywhere[np.isnan(widened(output, produced(dtype), "float64"))] = 0
    assert not problem.check(case, reference, everywhere).passed
    for at in (0, first - 1, first + case.n, len(output) - 1):
        wrong = output.copy()
        wrong[at] = 0.0
        verdict = problem.check(case, reference, wrong)
        assert not verdict.passed
        where = f"the first in row {at // 1200} at {at % 1200} of the wider matrix"
        assert verdict.detail == f"1 elements around C were written, {where}"
