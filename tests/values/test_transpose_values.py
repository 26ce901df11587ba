"""The transposes whose blocks have many elements per thread, and 128-bit accesses, by their PTX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import by_ptx
from ladder import VECTORIZED, transpose
from programs import assert_right, cuda_kernel, numba_kernel
from smembench.kernels.intrinsics.vector import vector_width
from smembench.kernels.problems import PROBLEMS
from smembench.kernels.program import NumbaKernel
from smembench.model.case import Block

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
    assert_right(case, lambda inputs: by_ptx.run(case, kernel, PROBLEMS["transpose"], inputs))
    return numba_kernel(case)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize("size", [*SIZES, *UNALIGNED])
def test_vectors_are_right_at_the_edges_of_tiles(dtype: str, size: Callable[[int, int], tuple[int, int]]) -> None:
    wide = vector_width(dtype)
    verify("transposeVectorized", *size(8 * wide, wide), dtype=dtype, block=Block(8, max(wide, 4)))


@pytest.mark.parametrize(
    ("rows", "columns"),
    [pytest.param(47, 17, id="rows that begin anywhere"), pytest.param(17, 32, id="aligned rows of the input")],
)
@pytest.mark.parametrize("name", VECTORIZED)
def test_tiles_join(name: str, rows: int, columns: int) -> None:
    verify(name, rows, columns)


@pytest.mark.parametrize(("name", "odd"), [*zip(VECTORIZED, (0, 1, 0, 1, 1), strict=True)])
def test_tiles_join_where_two_warps_lie_side_by_side(name: str, odd: int) -> None:
    """Of rows that are aligned, or begin anywhere."""
    verify(name, 34 + odd, 30 + odd, block=Block(16, 4))


@pytest.mark.parametrize(("down", "across"), [(2, 3), (3, 1)])
@pytest.mark.parametrize("name", VECTORIZED)
def test_a_grid_that_is_not_square_covers_every_tile(name: str, down: int, across: int) -> None:
    verify(name, down * SIDE - 4, across * SIDE - 2)


@pytest.mark.parametrize("name", ["transposeCoarsened", "transposeSwizzled"])
@pytest.mark.parametrize(("rows", "columns"), [(31, 33), (64, 32), (1, 70)])
def test_several_rows_a_thread_are_right_at_the_edges_of_tiles(name: str, rows: int, columns: int) -> None:
    verify(name, rows, columns, dtype="float16", block=Block(32, 4))
