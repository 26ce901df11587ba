"""The transposes whose blocks have many elements per thread, and 128-bit accesses, in Numba's simulator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import simulated
from ladder import VECTORIZED, transpose
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
from smembench.kernels.program import NumbaKernel
from smembench.kernels.transpose.cuda import transpose_paired
from smembench.model.case import Block
from smembench.model.formats import carried
from smembench.model.problem import ITEMSIZE

SIZES: list[Any] = [
    pytest.param(lambda side, wide: (side, side), id="a whole tile"),
    pytest.param(lambda side, wide: (side + wide, 2 * wide), id="whole vectors over the edges"),
    pytest.param(lambda side, wide: (side - 1, side + 1), id="no aligned rows"),
    pytest.param(lambda side, wide: (wide, side + 1), id="aligned rows of the output only"),
    pytest.param(lambda side, wide: (1, 1), id="one element"),
]
"""Rows and columns, from the side of a tile and the elements of a vector."""
UNALIGNED: list[Any] = [
    pytest.param(lambda side, wide: (side + 1, wide), id="aligned rows of the input only"),
    pytest.param(lambda side, wide: (side + 1, 1), id="a column"),
    pytest.param(lambda side, wide: (1, side + 1), id="a row"),
    pytest.param(lambda side, wide: (1, wide - 1), id="less than a vector"),
    pytest.param(lambda side, wide: (wide - 1, wide + 1), id="vectors that several rows share"),
]
SMALL = Block(8, 4)
SIDE = 8 * vector_width("float64")
"""Of a tile of float64 in small blocks."""


def verify(name: str, rows: int, columns: int, *, dtype: str = "float64", block: Block = SMALL) -> NumbaKernel:
    """Hold one launch to the reference, and return its program."""
    case, kernel = transpose(name, dtype, columns, rows, block), cuda_kernel("transpose", name)
    assert kernel.refusal(case) is None
    assert_right(case, lambda inputs: simulated.run(case, kernel, PROBLEMS["transpose"], inputs))
    return numba_kernel(case)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize("size", [*SIZES, *UNALIGNED])
def test_vectors_are_right_at_the_edges_of_tiles(dtype: str, size: Callable[[int, int], tuple[int, int]]) -> None:
    wide = vector_width(dtype)
    verify("transposeVectorized", *size(8 * wide, wide), dtype=dtype, block=Block(8, max(wide, 4)))


@pytest.mark.parametrize("name", VECTORIZED)
@pytest.mark.parametrize(
    ("rows", "columns", "block"),
    [
        pytest.param(47, 17, SMALL, id="rows that begin anywhere"),
        pytest.param(17, 32, SMALL, id="aligned rows of the input"),
        pytest.param(34, 30, Block(16, 4), id="two warps side by side"),
        pytest.param(35, 31, Block(16, 4), id="two warps side by side, rows that begin anywhere"),
    ],
)
def test_tiles_join(name: str, rows: int, columns: int, block: Block) -> None:
    verify(name, rows, columns, block=block)


@pytest.mark.parametrize(("row", "apart"), [(1024, 256), (2048, 512), (512, 128)])
def test_columns_of_tiles_in_pairs_cover_the_matrix(row: int, apart: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With rows shorter than those for which it is meant: 4 to 16 columns of tiles, 1 to 4 apart."""
    monkeypatch.setattr(transpose_paired, "CONFLICTING", row)
    monkeypatch.setattr(transpose_paired, "APART", apart)
    assert verify("transposePaired", 18, row // 8).variant == "in pairs"


@pytest.mark.parametrize(("down", "across"), [(2, 3), (3, 1)])
@pytest.mark.parametrize("name", VECTORIZED)
def test_a_grid_that_is_not_square_covers_every_tile(name: str, down: int, across: int) -> None:
    verify(name, down * SIDE - 4, across * SIDE - 2)


@pytest.mark.parametrize("name", ["transposeCoarsened", "transposeSwizzled"])
@pytest.mark.parametrize(("rows", "columns"), [(31, 33), (64, 32), (1, 70)])
def test_several_rows_a_thread_are_right_at_the_edges_of_tiles(name: str, rows: int, columns: int) -> None:
    verify(name, rows, columns, dtype="float16", block=Block(32, 4))


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
