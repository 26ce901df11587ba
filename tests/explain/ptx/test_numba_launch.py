"""Launches of Numba kernels by their PTX: what they leave in arrays is what NumPy computes, in all blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numba import cuda, float32, int32

from smembench.explain.costs import Costs
from smembench.explain.ptx.numba_launch import NumbaPtx
from smembench.model.errors import UsageError

pytest.importorskip("cuda.bindings.nvjitlink")

RANDOM = np.random.default_rng(1)


def run_numba(kernel: Any, arrays: Sequence[Any], **launch: Any) -> Costs:
    return NumbaPtx(kernel, arrays).run(arrays, **launch)


def histogram(counts: Any, values: Any) -> None:
    tile = cuda.shared.array(8, int32)
    i = cuda.grid(1)
    if cuda.threadIdx.x < 8:
        tile[cuda.threadIdx.x] = 0
    cuda.syncthreads()
    if i < values.size:
        cuda.atomic.add(tile, values[i] % 8, 1)
    cuda.syncthreads()
    if cuda.threadIdx.x < 8:
        cuda.atomic.add(counts, cuda.threadIdx.x, tile[cuda.threadIdx.x])


def polynomial(out: Any, x: Any, coefficients: Any) -> None:
    row, column = cuda.grid(2)
    if row < x.shape[0] and column < x.shape[1]:
        total = 0.0
        for k in range(coefficients.size):
            total = total * x[row, column] + coefficients[-1 - k]
        out[row, column] = total


def warp_sums(out: Any, values: Any) -> None:
    value = values[cuda.grid(1)]
    for apart in (16, 8, 4, 2, 1):
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, apart)
    if cuda.threadIdx.x % 32 == 0:
        out[cuda.grid(1) // 32] = value


def two_tiles(out: Any, inp: Any) -> None:
    first = cuda.shared.array(32, float32)
    second = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    first[t] = second[2 * t] = inp[t]
    cuda.syncthreads()
    out[t] = first[31 - t] + second[2 * t]


def two_tiles_at_once(out: Any, inp: Any) -> None:
    first, second = cuda.shared.array(32, float32), cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    first[t] = second[2 * t] = inp[t]
    cuda.syncthreads()
    out[t] = first[31 - t] + second[2 * t]


def beyond(out: Any, inp: Any) -> None:
    out[cuda.threadIdx.x, 0] = inp[cuda.threadIdx.x, 0] - inp[cuda.threadIdx.x, 0]


def before(out: Any, inp: Any) -> None:
    tile = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    tile[t] = inp[t]
    cuda.syncthreads()
    out[t] = tile[t - 65]


def endless(out: Any) -> None:
    while out[0] < 2:
        out[0] = 1


def test_atomics_of_shared_and_global_memory() -> None:
    values = RANDOM.integers(0, 100, 1000).astype(np.int32)
    counts = np.zeros(8, np.int32)
    run_numba(histogram, [counts, values], grid=(4,), block=(256,))
    assert counts.tolist() == np.bincount(values % 8).tolist()


def test_arrays_by_rows_and_indices_from_the_end() -> None:
    x, coefficients = RANDOM.integers(-4, 4, (37, 21)).astype(np.float64), np.array([1.0, -2.0, 3.0])
    out = np.full((37, 21), np.nan)
    run_numba(cuda.jit(polynomial), [out, x, coefficients], grid=(5, 3), block=(8, 8))
    assert np.array_equal(out, 1 - 2 * x + 3 * x**2)


def test_shuffles() -> None:
    values, out = RANDOM.integers(0, 9, 128).astype(np.float32), np.zeros(4, np.float32)
    run_numba(warp_sums, [out, values], grid=(2,), block=(64,))
    assert np.array_equal(out, values.reshape(4, 32).sum(1))


@pytest.mark.parametrize(
    ("kernel", "names"), [(two_tiles, ["first", "second"]), (two_tiles_at_once, ["shared0", "shared1"])]
)
def test_shared_arrays_have_their_names(kernel: Any, names: list[str]) -> None:
    inp, out = RANDOM.random(32, np.float32), np.zeros(32, np.float32)
    costs = run_numba(kernel, [out, inp], grid=(1,), block=(32,))
    assert np.array_equal(out, inp[::-1] + inp)
    assert sorted({access.site.array for access in costs.shared}) == names
    assert costs.worst() == 2


def test_what_is_outside_is_named_by_its_index_and_its_value_is_not_known() -> None:
    inp, out = np.ones((3, 5), np.float32), np.zeros((4, 2), np.float32)
    costs = run_numba(beyond, [out, inp], grid=(1,), block=(4,))
    (mistake,) = costs.trace.mistakes
    assert mistake.text == "thread 3 loads inp[3, 0], and inp has 3x5 elements"
    assert out[:3, 0].tolist() == [0, 0, 0]
    assert np.isnan(out[3, 0])


def test_what_is_before_shared_memory_is_outside_and_in_no_bank() -> None:
    """-65 + 32 is where Numba's index from the end begins."""
    inp, out = np.ones(32, np.float32), np.zeros(32, np.float32)
    costs = run_numba(before, [out, inp], grid=(1,), block=(32,))
    (mistake,) = costs.trace.mistakes
    assert mistake.text == "thread 0 loads 4 bytes at byte -132 of shared memory, which has 128 bytes"
    assert np.isnan(out).all()
    assert costs.worst() == 1


@pytest.mark.parametrize(
    ("kernel", "count", "words"),
    [
        (endless, 1, r"endless, line \d+: a block runs more than 1000 instructions; end the loop"),
        (beyond, 3, r"takes \(out, inp\); it is launched with 3"),
    ],
)
def test_what_cannot_be_run_is_refused(kernel: Any, count: int, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        run_numba(kernel, [np.zeros(1, np.int32)] * count, grid=(1,), block=(1,), most_steps=1000)
