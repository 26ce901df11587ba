"""Products of tf32 and float8: how numbers are rounded, what their check lets pass, and what other libraries get."""

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
from hypothesis import given
from hypothesis import strategies as st

from smembench.kernels import registry
from smembench.kernels.matmul.peers import cublas
from smembench.kernels.matmul.peers import torch as peer
from smembench.kernels.matmul.through_float32 import for_dtype
from smembench.kernels.problems import PROBLEMS
from smembench.model.case import BY_COLUMNS, BY_ROWS, Case
from smembench.model.formats import FLOAT8, NARROW, TF32, accumulated, produced, rounded, widened
from smembench.model.peaks import flops_per_clock
from smembench.model.problem import Verification

Array = np.ndarray[Any, Any]

MATMUL = PROBLEMS["matmul"]
CASE = Case("matmul", "wgmma", "cuda:0", TF32, 24, 40, 70, inputs="normal", b_layout=BY_COLUMNS)


def matrices(case: Case) -> tuple[Array, Array]:
    """A and B by rows, in float64."""
    a, b = (widened(array, case.dtype, "float64") for array in MATMUL.inputs(case, 1))
    return a.reshape(case.m, case.depth), b.reshape(case.n, case.depth).T


def checked(case: Case, product: Array) -> Verification:
    output = rounded(np.asarray(product, np.float32), produced(case.dtype)).reshape(-1)
    return MATMUL.check(case, MATMUL.reference(case, MATMUL.inputs(case, 1), ""), output)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False, max_value=2.0**126, min_value=-(2.0**126)))
def test_tf32_is_the_nearest_number_of_ten_bits_of_fraction(number: float) -> None:
    result = rounded(np.array([number], np.float32), TF32)
    fraction, exponent = np.frexp(np.float64(number))
    step = 11 if exponent > -126 else 11 + 125 + exponent  # subnormals have fewer bits
    assert result[0] == np.ldexp(np.rint(np.ldexp(fraction, step)), exponent - step)
    assert not result.view(np.uint32)[0] & 0x1FFF
    assert (rounded(result, TF32) == result).all()


def test_tf32_keeps_what_is_no_number() -> None:
    given_ = np.array([np.nan, np.inf, -np.inf], np.float32)
    given_[:1].view(np.uint32)[:] = 2**32 - 1
    np.testing.assert_array_equal(rounded(given_, TF32), given_)


@given(st.floats(width=32, min_value=-448, max_value=448))
def test_float8_is_the_nearest_of_its_numbers(number: float) -> None:
    bits = np.arange(256, dtype=np.uint8)
    known = widened(bits, FLOAT8, "float64")
    finite = bits[np.isfinite(known)]
    assert len(finite) == 254
    result = widened(rounded(np.array([number], np.float32), FLOAT8), FLOAT8, "float64")[0]
    assert abs(result - number) == np.abs(widened(finite, FLOAT8, "float64") - number).min()


def test_types_of_arrays_and_their_bytes() -> None:
    case = replace(CASE, dtype=FLOAT8)
    assert [array.dtype for array in MATMUL.inputs(case, 1)] == [np.uint8, np.uint8]
    assert MATMUL.bytes_moved(case) == 24 * 70 + 70 * 40 + 2 * 24 * 40
    assert MATMUL.bytes_moved(CASE) == 4 * (24 * 70 + 70 * 40 + 24 * 40)
    assert {MATMUL.usual_b_layout(dtype) for dtype in (TF32, FLOAT8)} == {BY_COLUMNS}
    assert [flops_per_clock(dtype, "9.0") for dtype in (TF32, "float16", FLOAT8)] == [2048, 4096, 8192]
    assert flops_per_clock(FLOAT8, "8.0") is None


@pytest.mark.parametrize("sides", [(24, 40, 70), (40, 1500, 96)], ids=["all entries", "Freivalds"])
@pytest.mark.parametrize("dtype", [TF32, FLOAT8])
def test_a_product_without_a_term_is_wrong(dtype: str, sides: tuple[int, int, int]) -> None:
    m, n, k = sides
    case = replace(CASE, dtype=dtype, m=m, n=n, k=k)
    a, b = matrices(case)
    assert checked(case, a @ b).passed
    assert not checked(case, a[:, :-1] @ b[:-1]).passed
    one_row = a @ b
    one_row[m // 2] *= 1.25  # of 1.05 four random combinations miss one in 25
    assert not checked(case, one_row).passed


def test_a_product_of_numbers_with_fewer_bits_than_tf32_is_wrong() -> None:
    a, b = (matrix.astype(ml_dtypes.bfloat16).astype(np.float64) for matrix in matrices(CASE))
    assert not checked(CASE, a @ b).passed


def on_tensor_cores(a: Array, b: Array, bits: int = 13) -> Array:
    """The product as sums of 32 products and the sum so far, cut off below so many bits of the largest."""
    total = np.zeros((len(a), b.shape[1]))
    for first in range(0, a.shape[1], 32):
        terms = a[:, first : first + 32, None] * b[None, first : first + 32]
        terms = np.concatenate([terms, total[:, None]], axis=1)
        _, exponent = np.frexp(np.abs(terms).max(axis=1, keepdims=True))
        unit = np.ldexp(1.0, exponent - 1 - bits)
        total = (np.trunc(terms / unit) * unit).sum(axis=1)
    return total


@pytest.mark.parametrize("k", [32, 512, 4096])
@pytest.mark.parametrize("inputs", ["normal", "uniform", "integers"])
def test_what_tensor_cores_cut_off_is_allowed_and_not_much_more(k: int, inputs: str) -> None:
    """With the 14 bits that they keep, and with one bit less; with 9, as a sum in bfloat16 has, no longer."""
    case = replace(CASE, dtype=FLOAT8, m=16, n=128, k=k, inputs=inputs)
    a, b = matrices(case)
    assert checked(case, on_tensor_cores(a, b)).passed
    if inputs != "integers":  # they add up exactly
        assert checked(case, on_tensor_cores(a, b, 12)).passed
        assert not checked(case, on_tensor_cores(a, b, 7)).passed


@pytest.mark.parametrize("b_layout", [BY_ROWS, BY_COLUMNS])
@pytest.mark.parametrize("stride", [None, 90])
@pytest.mark.parametrize("dtype", [*NARROW, "float64"])
def test_matrices_that_cpu_kernels_do_not_read_are_converted(dtype: str, stride: int | None, b_layout: str) -> None:
    def multiply(c: Array, a: Array, b: Array, m: int, n: int, k: int, lda: int, ldb: int, ldc: int) -> None:
        for row in range(m):
            c[row * ldc :][:n] = sum(a[row * lda + i] * b[i * ldb :][:n] for i in range(k))
        assert c.dtype == a.dtype == b.dtype == accumulated(dtype)

    case = replace(CASE, dtype=dtype, stride=stride, b_layout=b_layout)
    inputs = MATMUL.inputs(case, 1)
    output = np.full(MATMUL.output_length(case) * 8, 0xFF, np.uint8)
    c = output.view(rounded(np.zeros(1), MATMUL.array_types(case)[0]).dtype)[: MATMUL.output_length(case)]
    first = MATMUL.first(case)
    for_dtype(case, multiply).function(c[first:], *(array[first:] for array in inputs), *MATMUL.scalars(case))
    assert MATMUL.check(case, MATMUL.reference(case, inputs, ""), c).passed


def test_who_takes_float8() -> None:
    case = replace(CASE, dtype=FLOAT8)
    kernels = {kernel.name: kernel for kernel in registry.of_problem("matmul", "cuda") if not kernel.port}
    own = {name for name, kernel in kernels.items() if kernel.takes(FLOAT8) and not kernel.peer}
    assert own == {name for name in kernels if name.startswith(("wgmma", "fewRowsClustered", "heuristic"))}
    by_rows = replace(case, b_layout=BY_ROWS, k=64)
    assert kernels["wgmma"].refusal(by_rows) == "wgmma takes float8_e4m3 only with B by columns, as wgmma reads it"
    assert kernels["torch"].refusal(by_rows) == "cuBLASLt takes float8_e4m3 only with B by columns"
    odd = "cuBLASLt takes sides of float8_e4m3 that are multiples of 16, not 70"
    assert kernels["torch"].refusal(replace(case, n=64)) == odd
    assert not kernels["cublas"].takes(FLOAT8)


def test_cublas_multiplies_tf32_on_tensor_cores(monkeypatch: pytest.MonkeyPatch) -> None:
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
    cublas.build(replace(CASE, kernel="cublas", compiler="cublas")).enqueue(7, 100, 200, 300)
    ((name, passed),) = calls
    assert name == "cublasGemmEx"
    assert passed[1:6] == [1, 0, 40, 24, 70]
    assert passed[7:13] + passed[14:] == [300, 0, 70, 200, 0, 70, 100, 0, 40, 77, -1]


@pytest.mark.parametrize("dtype", [TF32, FLOAT8])
def test_torch_multiplies_on_tensor_cores(monkeypatch: pytest.MonkeyPatch, dtype: str) -> None:
    class Tensor:
        def __init__(self, array: Any) -> None:
            self.array = array

        @property
        def dtype(self) -> Any:
            return self.array.dtype

        def view(self, what: Any) -> Tensor:
            return Tensor(self.array.reshape(what) if isinstance(what, tuple) else self.array.view(what))

        def t(self) -> Tensor:
            return Tensor(self.array.T)

    def mm(a: Tensor, b: Tensor, *, out: Tensor) -> None:
        out.array[:] = a.array.astype(np.float32) @ b.array.astype(np.float32)

    def scaled(a: Tensor, b: Tensor, *scales: Any, out_dtype: Any, use_fast_accum: bool, out: Tensor) -> None:
        assert (*scales, out_dtype, use_fast_accum) == (1, 1, ml_dtypes.bfloat16, True)
        mm(a, b, out=out)

    matmul = SimpleNamespace()
    torch = SimpleNamespace(
        _scaled_mm=scaled,
        as_tensor=lambda array, device: Tensor(array),
        backends=SimpleNamespace(cuda=SimpleNamespace(matmul=matmul)),
        bfloat16=ml_dtypes.bfloat16,
        cuda=SimpleNamespace(stream=nullcontext, ExternalStream=lambda handle: handle, current_device=lambda: 0),
        float32=np.float32,
        float8_e4m3fn=ml_dtypes.float8_e4m3fn,
        mm=mm,
        ones=lambda shape, device: np.ones(shape),
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    peer._one.cache_clear()
    case = replace(CASE, kernel="torch", dtype=dtype, compiler="torch")
    inputs = MATMUL.inputs(case, 1)
    out = rounded(np.full(case.m * case.n, np.nan, np.float32), produced(dtype))
    peer.build(case).enqueue(0, out, *inputs)
    peer._one.cache_clear()
    assert MATMUL.check(case, MATMUL.reference(case, inputs, ""), out).passed
    assert matmul.allow_tf32 == (dtype == TF32)
