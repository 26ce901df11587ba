from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from programs import multiplied
from smembench.kernels.problems import PROBLEMS, Verification
from smembench.kernels.transpose.problem import COPY, TRANSPOSE
from smembench.model.case import Case
from smembench.model.formats import UNIT_ROUNDOFF, WIDE, carried, produced, widened
from smembench.model.problem import Problem, Shape

Array = NDArray[Any]
Spoil = Callable[[Array], object]


def walk(case: Case, chain: Array) -> Array:
    """Where the loads of a latency case end."""
    at = 0
    for _ in range(case.m):
        at = chain[at]
    return np.array([at], chain.dtype)


SOLVE: dict[str, Callable[[Case, tuple[Array, ...]], Array]] = {
    "transpose": lambda case, inputs: inputs[0].reshape(case.m, case.n).T.copy(),
    "matmul": lambda case, inputs: multiplied(case.dtype, inputs[0].reshape(case.m, -1), inputs[1].reshape(-1, case.n)),
    "constant": lambda case, inputs: np.correlate(inputs[0], inputs[1]).reshape(1, -1),
    "reduction": lambda case, inputs: inputs[0].sum(dtype=case.dtype).reshape(1, 1),
    "latency": lambda case, inputs: walk(case, inputs[0]).reshape(1, 1),
    "transfer": lambda case, inputs: inputs[0].reshape(1, -1).copy(),
    "roundtrip": lambda case, inputs: inputs[0].reshape(1, -1) + np.int32(1),
}
EVERY = [(name, dtype) for name in SOLVE for dtype in PROBLEMS[name].dtypes]
EXACT, PROBED = (30, 40, 50), (3, 1100, 7)
"""m, n and k of products checked entry by entry, and of those checked by Freivalds' probes."""


def case_of(problem: str, dtype: str = "float32", m: int = 30, n: int = 40, k: int = 50) -> Case:
    return Case(problem, "any", "cpu", dtype, m, n, k if problem == "matmul" else None)


def solve(case: Case, inputs: tuple[Array, ...]) -> Array:
    """The right output as a matrix, in the precision of the inputs."""
    return SOLVE[case.problem](case, inputs)


def judge(case: Case, output: Callable[[tuple[Array, ...]], Array]) -> Verification:
    problem = PROBLEMS[case.problem]
    inputs = problem.inputs(case, seed=1)
    return problem.check(case, problem.reference(case, inputs, TRANSPOSE), output(inputs).ravel())


def judge_spoiled(case: Case, spoil: Spoil) -> Verification:
    """Judge the right output after ``spoil`` changed it in place."""

    def output(inputs: tuple[Array, ...]) -> Array:
        right = solve(case, inputs)
        spoil(right)
        return right

    return judge(case, output)


def counts(case: Case) -> tuple[int, int, tuple[int, ...]]:
    problem = PROBLEMS[case.problem]
    return problem.bytes_moved(case), problem.flops(case), problem.scalars(case)


def test_compulsory_bytes_operations_and_scalars() -> None:
    """A transpose moves each element twice; a product moves three matrices and has two operations per term."""
    assert counts(case_of("transpose", "float64", m=3, n=5)) == (2 * 3 * 5 * 8, 0, (5, 3))
    product = (3 * 7 + 7 * 5 + 3 * 5) * 4, 2 * 3 * 5 * 7, (3, 5, 7, 7, 5, 5)
    assert counts(case_of("matmul", "float32", m=3, n=5, k=7)) == product
    assert counts(case_of("constant", "float64", m=1, n=100)) == ((100 + 108 + 9) * 8, 2 * 9 * 100, (100,))


@pytest.mark.parametrize(("name", "dtype"), EVERY)
def test_inputs_are_of_the_seed_alone_and_never_look_like_poison(name: str, dtype: str) -> None:
    problem, case = PROBLEMS[name], case_of(name, dtype)
    first, again, other = (problem.inputs(case, seed) for seed in (1, 1, 2))
    for array, one, same, different in zip(problem.arrays[1:], first, again, other, strict=True):
        assert one.dtype == carried(dtype)
        assert (one == same).all()
        assert (one != different).any(), array
        assert (one != -1).all()
        assert np.isfinite(widened(one, dtype, "float64")).all()


@pytest.mark.parametrize(("name", "dtype"), EVERY)
@pytest.mark.parametrize("sizes", [(1, 1, 1), EXACT, PROBED, (1100, 2, 3), (2, 3, 1100)])
def test_a_right_output_passes(name: str, dtype: str, sizes: tuple[int, int, int]) -> None:
    case = case_of(name, dtype, *sizes)
    verdict = judge(case, lambda inputs: solve(case, inputs))
    assert verdict.passed, verdict.detail
    assert verdict.error is not None
    assert verdict.error <= (max(1e-5, UNIT_ROUNDOFF.get(produced(dtype), 0)) if PROBLEMS[name].flops(case) else 0.0)


@pytest.mark.parametrize("dtype", PROBLEMS["transpose"].dtypes)
def test_one_flipped_bit_of_a_transpose_fails(dtype: str) -> None:
    def flip(output: Array) -> None:
        output.ravel().view("u1")[17 * output.itemsize] ^= 1

    verdict = judge_spoiled(case_of("transpose", dtype), flip)
    assert not verdict.passed
    assert verdict.error == 1 / 1200
    assert verdict.detail == "1 of 1200 elements differ, the first at index 17"


def test_negative_zero_is_not_zero() -> None:
    problem, case = PROBLEMS["transpose"], case_of("transpose", m=1, n=2)
    assert not problem.check(case, np.zeros(2, np.float32), np.array([0.0, -0.0], np.float32)).passed


def test_a_copy_is_not_a_transpose() -> None:
    problem, case = PROBLEMS["transpose"], case_of("transpose")
    inputs = problem.inputs(case, seed=1)
    assert problem.check(case, problem.reference(case, inputs, COPY), inputs[0]).passed
    assert not problem.check(case, problem.reference(case, inputs, TRANSPOSE), inputs[0]).passed


@pytest.mark.parametrize(("name", "dtype"), EVERY)
@pytest.mark.parametrize("sizes", [EXACT, PROBED])
def test_poison_left_in_one_element_fails(name: str, dtype: str, sizes: tuple[int, int, int]) -> None:
    assert not judge_spoiled(case_of(name, dtype, *sizes), lambda output: output[-1:, -1:].view("u1").fill(0xFF)).passed


WRONG: dict[str, Spoil] = {
    "one entry off": lambda output: np.add.at(output, (1, 2), 1e-3),
    "rows swapped": lambda output: np.copyto(output[:2], output[[1, 0]]),
    "a thousandth too small": lambda output: np.multiply(output, 0.999, out=output),
    "all zero": lambda output: output.fill(0),
}


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("sizes", [EXACT, PROBED], ids=["exact", "Freivalds"])
@pytest.mark.parametrize("spoil", WRONG.values(), ids=WRONG)
def test_a_wrong_product_fails(spoil: Spoil, sizes: tuple[int, int, int], dtype: str) -> None:
    verdict = judge_spoiled(case_of("matmul", dtype, *sizes), spoil)
    assert not verdict.passed
    assert ("Freivalds" in verdict.detail) == (sizes == PROBED)


@pytest.mark.parametrize("sizes", [EXACT, PROBED], ids=["exact", "Freivalds"])
@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_entries_without_a_value_fail_and_have_no_error(value: float, sizes: tuple[int, int, int]) -> None:
    verdict = judge_spoiled(case_of("matmul", "float32", *sizes), lambda output: np.add.at(output, (0, 0), value))
    assert (verdict.passed, verdict.error, verdict.detail) == (False, None, "1 entries are NaN or infinite")


@pytest.mark.parametrize("dtype", WIDE)
def test_one_wrong_entry_does_not_hide_in_the_norm(dtype: str) -> None:
    case = case_of("matmul", dtype, 100, 100, 50)
    tolerance = 4 * np.sqrt(50) * np.finfo(dtype).eps
    rms = np.sqrt(50) / 12  # of sums of 50 products of numbers uniform in [-1/2, 1/2)

    verdict = judge_spoiled(case, lambda output: np.add.at(output, (1, 2), 30 * tolerance * rms))
    assert not verdict.passed
    assert verdict.error <= tolerance


@pytest.mark.parametrize("sizes", [(256, 256, 256), (8, 8, 1100)])
def test_inputs_rounded_to_tf32_fail(sizes: tuple[int, int, int]) -> None:
    case = case_of("matmul", "float32", *sizes)

    def tf32(array: Array) -> Array:
        return ((array.view("u4") + 0x1000) & 0xFFFFE000).view("f4")

    assert not judge(case, lambda inputs: solve(case, tuple(map(tf32, inputs)))).passed


def test_cases_share_inputs_exactly_when_they_are_alike() -> None:
    keys = [PROBLEMS[name].input_key(case_of(name, dtype, m=m)) for (name, dtype), m in product(EVERY, (30, 31))]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=lambda problem: problem.name)
def test_sizes_of_a_case_make_its_shape_again(problem: Problem) -> None:
    for shape in problem.shapes({}):
        case = Case(problem.name, "any", "cpu", problem.dtypes[0], shape.m, shape.n or 64, shape.k)
        given = {name: (size,) for name, size in problem.sizes_of(case).items()}
        assert list(problem.shapes(given)) == [Shape(case.m, case.n, case.k)]


def test_a_transpose_that_is_not_square_is_given_by_both_sides() -> None:
    assert PROBLEMS["transpose"].sizes_of(case_of("transpose", m=3, n=5)) == {"nx": 5, "ny": 3}


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=lambda problem: problem.name)
def test_axes_have_names_of_their_own_and_words(problem: Problem) -> None:
    names = [axis.name for axis in (*problem.axes, *problem.texts.kernel_axes)]
    assert len({*names, *problem.texts.options}) == len(names) + len(problem.texts.options)
    assert all(axis.help.endswith(".") for axis in problem.axes + problem.texts.kernel_axes)
    assert all(axis.values for axis in problem.parameters)
    assert PROBLEMS[problem.texts.command or problem.name].texts.help or not problem.axes  # of the user's kernels
