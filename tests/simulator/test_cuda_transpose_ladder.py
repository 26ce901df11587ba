"""What only the simulator shows of transposes: other constants of a module, and the Python bodies of accesses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import simulated
from ladder import transpose
from programs import assert_right, cuda_kernel, numba_kernel
from smembench.kernels.intrinsics.async_copy import commit_copies, copy_vector_async, wait_for_copies
from smembench.kernels.intrinsics.vector import (
    ALIGNMENT,
    copy_vector,
    load_vector,
    load_vector_streaming,
    store_vector,
    store_vector_streaming,
    vector_width,
)
from smembench.kernels.numba_cuda import cuda, uint32
from smembench.kernels.problems import PROBLEMS
from smembench.kernels.transpose.cuda import transpose_paired
from smembench.model.case import Block
from smembench.model.formats import carried
from smembench.model.problem import ITEMSIZE


@pytest.mark.parametrize(("row", "apart"), [(1024, 256), (2048, 512), (512, 128)])
def test_columns_of_tiles_in_pairs_cover_the_matrix(row: int, apart: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With rows shorter than those for which it is meant: 4 to 16 columns of tiles, 1 to 4 apart."""
    monkeypatch.setattr(transpose_paired, "CONFLICTING", row)
    monkeypatch.setattr(transpose_paired, "APART", apart)
    kernel = cuda_kernel("transpose", "transposePaired")
    case = transpose(kernel.name, "float64", row // 8, 18, Block(8, 4))
    assert numba_kernel(case).variant == "in pairs"
    assert_right(case, lambda inputs: simulated.run(case, kernel, PROBLEMS["transpose"], inputs))


def run(function: Callable[..., None], count: int, dtype: str, first: int = 0) -> Any:
    """What one thread makes of ``count`` numbers counted from 1, in an output of zeros."""
    inputs, output = np.arange(1, count + 1).astype(carried(dtype)), np.zeros(count, carried(dtype))
    launch: Any = cuda.jit(function)[1, 1]
    launch(output, inputs, np.uint32(first))
    return output


def copy(out: Any, inp: Any, first: Any) -> None:
    store_vector(out, first, load_vector(inp, first))


def copy_at_once(out: Any, inp: Any, first: Any) -> None:
    copy_vector(out, first, inp, first)


def copy_streaming(out: Any, inp: Any, first: Any) -> None:
    store_vector_streaming(out, first, load_vector_streaming(inp, first))


def store_beyond(out: Any, inp: Any, first: Any) -> None:
    store_vector(out, uint32(out.size), load_vector(inp, first))


def copy_async(out: Any, inp: Any, first: Any) -> None:
    tile = cuda.shared.array(16, inp.dtype, alignment=ALIGNMENT)
    copy_vector_async(tile, 0, inp, first)
    commit_copies()
    wait_for_copies(0)
    store_vector(out, first, load_vector(tile, 0))


@pytest.mark.parametrize("function", [copy, copy_at_once, copy_streaming, copy_async])
@pytest.mark.parametrize("dtype", sorted(ITEMSIZE))
def test_an_access_is_of_sixteen_bytes(function: Callable[..., None], dtype: str) -> None:
    count = vector_width(dtype)
    output = run(function, 3 * count, dtype, count)
    assert count * ITEMSIZE[dtype] == 16
    assert output.tolist() == [0.0] * count + list(range(count + 1, 2 * count + 1)) + [0.0] * count


@pytest.mark.parametrize("function", [copy, copy_at_once, copy_streaming, copy_async])
def test_an_index_between_two_vectors_is_an_error(function: Callable[..., None]) -> None:
    with pytest.raises(ValueError, match="index 3 of a 16-byte access is not a multiple of its 4 elements"):
        run(function, 8, "float32", 3)


def test_a_store_beyond_the_array_is_an_error() -> None:
    with pytest.raises(ValueError, match="broadcast"):
        run(store_beyond, 8, "float32")
