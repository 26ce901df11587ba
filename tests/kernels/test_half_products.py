"""Products of bfloat16 and float16: their inputs, and what their check lets pass."""

from __future__ import annotations

import ctypes
import sys
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smembench.kernels import registry
from smembench.kernels.matmul import inputs
from smembench.kernels.matmul.inputs import DISTRIBUTIONS
from smembench.kernels.matmul.peers import cublas
from smembench.kernels.matmul.peers.torch import build
from smembench.kernels.problems import PROBLEMS
from smembench.model.case import BY_COLUMNS, BY_ROWS, Case, parameters_of
from smembench.model.formats import HALVES, UNIT_ROUNDOFF, WIDE, accumulated, rounded, widened
from smembench.model.problem import Verification

MATMUL = PROBLEMS["matmul"]
CASE = Case("matmul", "naive", "cpu", "bfloat16", 33, 40, 70, inputs="normal")
LARGE = replace(CASE, m=40, n=1500, k=90)
"""One that Freivalds' check takes part in."""


def product(case: Case, seed: int = 1) -> tuple[Any, np.ndarray[Any, Any]]:
    """The reference of a case, and its product as float32 gives it."""
    inputs = MATMUL.inputs(case, seed)
    a, b = (widened(array, case.dtype, "float32") for array in inputs)
    exact = a.reshape(case.m, case.depth) @ b.reshape(case.depth, case.n)
    return MATMUL.reference(case, inputs, ""), exact


def checked(case: Case, reference: Any, values: Any) -> Verification:
    return MATMUL.check(case, reference, rounded(np.asarray(values, np.float32), case.dtype).reshape(-1))


@settings(max_examples=40)
@given(
    dtype=st.sampled_from(HALVES),
    inputs=st.sampled_from(list(DISTRIBUTIONS)),
    sides=st.tuples(*[st.integers(1, 60)] * 3),
    seed=st.integers(0, 99),
)
def test_a_product_that_is_rounded_once_is_right(
    dtype: str, inputs: str, sides: tuple[int, int, int], seed: int
) -> None:
    m, n, k = sides
    case = replace(CASE, dtype=dtype, inputs=inputs, m=m, n=n, k=k)
    reference, exact = product(case, seed)
    assert checked(case, reference, exact).passed


@pytest.mark.parametrize("case", [CASE, LARGE], ids=["all entries", "Freivalds"])
@pytest.mark.parametrize("dtype", HALVES)
def test_what_is_more_than_rounding_is_wrong(case: Case, dtype: str) -> None:
    case = replace(case, dtype=dtype)
    reference, exact = product(case)
    right = checked(case, reference, exact)
    assert right.passed
    assert right.error is not None
    assert 0 < right.error < UNIT_ROUNDOFF[dtype]

    a, b = (widened(array, dtype, "float32") for array in MATMUL.inputs(case, 1))
    without_a_term = exact - np.outer(a.reshape(case.m, -1)[:, 3], b.reshape(-1, case.n)[3])
    assert not checked(case, reference, without_a_term).passed
    one_row = exact.copy()
    one_row[case.m // 2] *= 1 + 40 * UNIT_ROUNDOFF[dtype]
    assert not checked(case, reference, one_row).passed
    unwritten = exact.copy()
    unwritten[-1, -1] = np.nan
    verdict = checked(case, reference, unwritten)
    assert (verdict.passed, verdict.error, verdict.detail) == (False, None, "1 entries are NaN or infinite")


@pytest.mark.parametrize("dtype", HALVES)
def test_one_entry_off_by_two_units_in_the_last_place_is_wrong(dtype: str) -> None:
    case = replace(CASE, dtype=dtype, inputs="integers")
    reference, exact = product(case)
    place = np.unravel_index(np.argmax(np.abs(exact)), exact.shape)
    exact[place] *= 1 + 3 * UNIT_ROUNDOFF[dtype]
    verdict = checked(case, reference, exact)
    assert not verdict.passed
    where = "entry ({}, {})".format(*place)
    assert verdict.detail.startswith(f"1 of {exact.size} entries are off by more than rounding; {where} is ")


def test_sums_that_are_rounded_to_16_bits_on_the_way_are_wrong() -> None:
    case = replace(CASE, k=512)
    inputs = MATMUL.inputs(case, 1)
    a, b = (widened(array, case.dtype, "float32") for array in inputs)
    total = np.zeros((case.m, case.n), np.float32)
    for step in range(512):
        term = np.outer(a.reshape(case.m, -1)[:, step], b.reshape(-1, case.n)[step])
        total = widened(rounded(total + term, case.dtype), case.dtype, "float32")
    assert not checked(case, MATMUL.reference(case, inputs, ""), total).passed


@pytest.mark.parametrize("dtype", MATMUL.dtypes)
def test_inputs_are_distributed_as_they_are_called(dtype: str) -> None:
    case = replace(CASE, dtype=dtype, m=128, k=128)

    def drawn(inputs: str) -> np.ndarray[Any, Any]:
        return widened(MATMUL.inputs(replace(case, inputs=inputs), 1)[0], dtype, "float64")

    normal, uniform, integers = drawn("normal"), drawn("uniform"), drawn("integers")
    assert abs(normal.mean()) < 0.05
    assert 0.95 < normal.std() < 1.05
    assert normal.max() > 2.5
    assert (uniform.min() >= -0.5, uniform.max() <= 0.5, abs(uniform.mean()) < 0.02) == (True, True, True)
    assert set(integers) == set(range(-4, 5))
    assert not drawn("zeros").any()
    assert MATMUL.usual_inputs(dtype) == ("uniform" if dtype in WIDE else "normal")


def test_no_part_of_a_large_matrix_repeats_another_and_a_seed_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 1000 elements in parts of 64, the last of 40."""
    monkeypatch.setattr(inputs, "_PART", 64)
    drawn, again, other = (inputs.draw(np.random.default_rng(seed), 1000, "float32", "normal") for seed in (7, 7, 8))
    assert np.array_equal(drawn, again)
    assert np.unique(np.concatenate([drawn, other])).size == 2000
    assert abs(drawn.mean()) < 0.2
    assert abs(drawn.std() - 1) < 0.2


def test_cases_of_other_inputs_are_other_cases() -> None:
    uniform = replace(CASE, dtype="float32", inputs="uniform")
    assert uniform.id == "matmul/naive/cpu/numba/float32/33x70x40/warm"
    normal = replace(uniform, inputs="normal")
    assert normal.id == "matmul/naive/cpu/numba/float32/33x70x40/inputs=normal/warm"
    assert parameters_of(normal.id) == ()
    assert MATMUL.input_key(uniform) != MATMUL.input_key(normal)
    by_columns = replace(uniform, b_layout=BY_COLUMNS)
    assert by_columns.id == "matmul/naive/cpu/numba/float32/33x70x40/b_layout=columns/warm"
    assert parameters_of(by_columns.id) == ()
    assert MATMUL.input_key(uniform) != MATMUL.input_key(by_columns)


def test_b_by_columns_is_its_transpose_by_rows() -> None:
    """The same product of a B that lies otherwise is right, and that of a B taken for one by rows is wrong."""
    case = replace(CASE, b_layout=BY_COLUMNS)
    inputs = MATMUL.inputs(case, 1)
    a, b = (widened(array, case.dtype, "float32") for array in inputs)
    a = a.reshape(case.m, case.depth)
    reference = MATMUL.reference(case, inputs, "")
    assert checked(case, reference, a @ b.reshape(case.n, case.depth).T).passed
    assert not checked(case, reference, a @ b.reshape(case.depth, case.n)).passed
    assert MATMUL.scalars(case)[3:] == (case.depth, case.depth, case.n)


def test_kernels_that_read_b_by_rows_refuse_it_by_columns() -> None:
    refusing = replace(CASE, kernel="mmaPlain", b_layout=BY_COLUMNS)
    kernel = registry.find("matmul", "mmaPlain", "cuda")
    assert kernel is not None
    assert kernel.refusal(refusing) == "mmaPlain takes B by rows, not by columns"


@pytest.mark.parametrize("b_layout", [BY_ROWS, BY_COLUMNS])
@pytest.mark.parametrize("dtype", HALVES)
def test_cublas_adds_up_16_bit_numbers_in_float32(monkeypatch: pytest.MonkeyPatch, dtype: str, b_layout: str) -> None:
    case = replace(CASE, kernel="cublas", dtype=dtype, compiler="cublas", b_layout=b_layout)
    calls = []

    class Library:
        def on(self, stream: int) -> int:
            return stream

        def call(self, name: str, *arguments: Any) -> None:
            calls.append((name, [getattr(value, "value", value) for value in arguments]))

    monkeypatch.setattr(cublas, "_opened", lambda device: Library())
    monkeypatch.setattr(cublas, "driver", SimpleNamespace(cuCtxGetDevice=lambda: 0))
    monkeypatch.setattr(cublas, "checked", lambda result: result)
    monkeypatch.setattr(cublas, "_pointer", ctypes.c_void_p)
    cublas.build(case).enqueue(7, 100, 200, 300)
    ((name, given),) = calls
    kind = {"bfloat16": 14, "float16": 2}[dtype]
    one, zero = given[6], given[13]
    assert name == "cublasGemmEx"
    assert (one._obj.value, zero._obj.value) == (1, 0)
    assert type(one._obj) is ctypes.c_float
    transposed, ldb = (0, case.n) if b_layout == BY_ROWS else (1, case.depth)
    pointers = [300, kind, ldb, 200, kind, case.depth]
    assert given[:6] + given[7:13] + given[14:] == [
        7, transposed, 0, case.n, case.m, case.depth, *pointers, 100, kind, case.n, 68, -1
    ]  # fmt: skip


@pytest.mark.parametrize("b_layout", [BY_ROWS, BY_COLUMNS])
@pytest.mark.parametrize("dtype", HALVES)
def test_torch_is_given_16_bit_numbers_as_what_they_are(
    monkeypatch: pytest.MonkeyPatch, dtype: str, b_layout: str
) -> None:
    class Tensor:
        def __init__(self, array: Any) -> None:
            self.array = array

        def view(self, what: Any) -> Tensor:
            return Tensor(self.array.reshape(what) if isinstance(what, tuple) else self.array.view(what))

        def t(self) -> Tensor:
            return Tensor(self.array.T)

    def mm(a: Tensor, b: Tensor, *, out: Tensor) -> None:
        out.array[:] = a.array.astype(np.float32) @ b.array.astype(np.float32)

    matmul = SimpleNamespace()
    torch = SimpleNamespace(
        as_tensor=lambda array, device: Tensor(array),
        backends=SimpleNamespace(cuda=SimpleNamespace(matmul=matmul)),
        bfloat16=ml_dtypes.bfloat16,
        cuda=SimpleNamespace(stream=nullcontext, ExternalStream=lambda handle: handle),
        float16=np.float16,
        mm=mm,
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    case = replace(CASE, kernel="torch", dtype=dtype, compiler="torch", b_layout=b_layout)
    a, b = MATMUL.inputs(case, 1)
    out = np.full(case.m * case.n, -1, np.int16).view(a.dtype)
    build(case).enqueue(0, out, a, b)
    assert MATMUL.check(case, MATMUL.reference(case, (a, b), ""), out).passed
    assert set(vars(matmul).values()) == {False}


@pytest.mark.parametrize("dtype", HALVES)
def test_rounding_there_and_back_is_exact(dtype: str) -> None:
    bits = np.arange(2**16, dtype=np.uint16)
    bits = bits[np.isfinite(widened(bits, dtype, "float32"))]
    assert (rounded(widened(bits, dtype, "float32"), dtype).view(np.uint16) == bits).all()
    assert accumulated(dtype) == "float32"


def test_kernels_that_multiply_elements_as_they_are_take_no_bits_of_halves() -> None:
    own = [kernel for kernel in registry.of_problem("matmul", "cuda") if not kernel.peer]
    taking = {kernel.name for kernel in own if kernel.takes("bfloat16") or kernel.takes("float16")}
    assert {name for name in taking if "mma" not in name} == {
        *("tiledHalf", "fewRows", "fewRowsClustered", "heuristic")
    }
