"""The transposes whose blocks have many elements a thread, and 128-bit accesses, in Numba's simulator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest

import simulated
from programs import numba_kernel
from smembench.kernels import registry
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
from smembench.kernels.transpose.cuda.transpose_pipelined import TILES
from smembench.model.case import Block, Case
from smembench.model.problem import ITEMSIZE

NAMES = ("transposeVectorized", "transposeDown", "transposeStreamed", "transposeHalfWarp", "transposePaired")
SEVERAL_TILES = ("transposePipelined", "transposeAsync", "transposePersistent")
SIZES: list[Any] = [
    pytest.param(lambda side, wide: (side, side), id="a whole tile"),
    pytest.param(lambda side, wide: (side + wide, 2 * wide), id="whole vectors over the edges"),
    pytest.param(lambda side, wide: (side - 1, side + 1), id="no aligned rows"),
    pytest.param(lambda side, wide: (wide, side + 1), id="aligned rows of the output only"),
    pytest.param(lambda side, wide: (1, 1), id="one element"),
]
"""Rows and columns, from the side of a tile and the elements of a vector."""
UNALIGNED: list[Any] = [
    pytest.param(lambda side, wide: (side + 1, side + 1), id="one over"),
    pytest.param(lambda side, wide: (side + 1, wide), id="aligned rows of the input only"),
    pytest.param(lambda side, wide: (side + 1, 1), id="a column"),
    pytest.param(lambda side, wide: (1, side + 1), id="a row"),
    pytest.param(lambda side, wide: (1, wide - 1), id="less than a vector"),
    pytest.param(lambda side, wide: (wide - 1, wide + 1), id="vectors that several rows share"),
]


def case_of(name: str, dtype: str, rows: int, columns: int, block: Block) -> tuple[Case, registry.Kernel]:
    kernel = registry.find("transpose", name, "cuda")
    assert kernel is not None
    pad = {None: None, False: 0, True: 1}[kernel.pad]
    case = Case("transpose", kernel.name, "cuda:0", dtype, rows, columns, None, block, pad)
    assert kernel.unsupported(case) is None
    return case, kernel


def verify(
    name: str, dtype: str, rows: int, columns: int, block: Block, *, grid: tuple[int, int] | None = None
) -> None:
    """Hold one launch to the reference; a grid replaces the program's own."""
    case, kernel = case_of(name, dtype, rows, columns, block)
    if grid is not None:
        kernel = replace(
            kernel,
            build=lambda case: replace(numba_kernel(registry.kernel_of(case), case), grid=grid, persistent_blocks=None),
        )
    problem = PROBLEMS["transpose"]
    inputs = problem.inputs(case, seed=1)
    output = simulated.run(case, kernel, problem, inputs)
    verdict = problem.check(case, problem.reference(case, inputs, kernel.computes), output)
    assert verdict.passed, verdict.detail


@pytest.mark.parametrize("dtype", PROBLEMS["transpose"].dtypes)
@pytest.mark.parametrize("size", SIZES)
def test_vectors_are_right_at_the_edges_of_tiles(dtype: str, size: Callable[[int, int], tuple[int, int]]) -> None:
    wide = vector_width(dtype)
    verify("transposeVectorized", dtype, *size(8 * wide, wide), Block(8, max(wide, 4)))


@pytest.mark.parametrize("dtype", PROBLEMS["transpose"].dtypes)
@pytest.mark.parametrize("size", UNALIGNED)
def test_rows_may_begin_anywhere(dtype: str, size: Callable[[int, int], tuple[int, int]]) -> None:
    wide = vector_width(dtype)
    verify("transposeVectorized", dtype, *size(8 * wide, wide), Block(8, max(wide, 4)))


@pytest.mark.parametrize(("rows", "columns"), [(47, 17), (17, 32)])
@pytest.mark.parametrize("name", NAMES)
def test_tiles_whose_rows_begin_anywhere_join(name: str, rows: int, columns: int) -> None:
    verify(name, "float64", rows, columns, Block(8, 4))


@pytest.mark.parametrize("name", NAMES)
def test_two_warps_side_by_side_cover_a_row(name: str) -> None:
    verify(name, "float64", 34, 30, Block(16, 4))
    verify(name, "float64", 35, 31, Block(16, 4))


@pytest.mark.parametrize(("row", "apart"), [(1024, 256), (2048, 512), (512, 128)])
def test_columns_of_tiles_in_pairs_cover_the_matrix(row: int, apart: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With rows shorter than those for which it is meant: 4 to 16 columns of tiles, 1 to 4 apart."""
    monkeypatch.setattr(transpose_paired, "CONFLICTING", row)
    monkeypatch.setattr(transpose_paired, "APART", apart)
    case, kernel = case_of("transposePaired", "float64", 18, row // 8, Block(8, 4))
    assert numba_kernel(kernel, case).variant == "in pairs"
    verify("transposePaired", "float64", case.m, case.n, Block(8, 4))


@pytest.mark.parametrize(("down", "across"), [(5, 2), (2, 5), (1, 3), (TILES + 2, 1)])
@pytest.mark.parametrize("name", [*NAMES, *SEVERAL_TILES])
def test_a_grid_that_is_not_square_covers_every_tile(name: str, down: int, across: int) -> None:
    side = 8 * vector_width("float64")
    verify(name, "float64", down * side - 4, across * side - 2, Block(8, 4))


@pytest.mark.parametrize("dtype", PROBLEMS["transpose"].dtypes)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", SEVERAL_TILES)
def test_blocks_with_several_tiles_are_right_at_their_edges(
    name: str, size: Callable[[int, int], tuple[int, int]], dtype: str
) -> None:
    wide = vector_width(dtype)
    verify(name, dtype, *size(8 * wide, wide), Block(8, max(wide, 4)))


@pytest.mark.parametrize("tiles", [TILES - 1, TILES, 2 * TILES + 1])
@pytest.mark.parametrize("name", SEVERAL_TILES)
def test_the_last_block_has_the_tiles_that_are_left(name: str, tiles: int) -> None:
    side = 8 * vector_width("float64")
    verify(name, "float64", tiles * side - 2, side + 2, Block(8, 4))


@pytest.mark.parametrize("grid", [(1, 1), (5, 1), (2, 3), (3, 4)])
def test_a_persistent_grid_of_any_size_goes_over_all_tiles(grid: tuple[int, int]) -> None:
    """Of one block, of several with one tile or two, in two dimensions, and of a block for each of the 3 × 4 tiles."""
    side = 8 * vector_width("float64")
    verify("transposePersistent", "float64", 3 * side, 4 * side - 2, Block(8, 4), grid=grid)


def test_the_simulator_has_fewer_blocks_than_tiles() -> None:
    side = 8 * vector_width("float64")
    case, kernel = case_of("transposePersistent", "float64", 17 * side, 2 * side, Block(8, 4))
    program = numba_kernel(kernel, case)
    assert prod(program.on(1).grid) < prod(program.grid)
    verify("transposePersistent", "float64", case.m, case.n, Block(8, 4))


@pytest.mark.parametrize("name", ["transposeCoarsened", "transposeSwizzled"])
@pytest.mark.parametrize(("rows", "columns"), [(31, 33), (64, 32), (1, 70)])
def test_several_rows_a_thread_are_right_at_the_edges_of_tiles(name: str, rows: int, columns: int) -> None:
    verify(name, "float16", rows, columns, Block(32, 4))


def run(function: Callable[..., None], count: int, dtype: str, first: int = 0) -> Any:
    """What one thread makes of ``count`` numbers counted from 1, in an output of zeros."""
    inputs, output = np.arange(1, count + 1).astype(dtype), np.zeros(count, dtype)
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
    tile = cuda.shared.array(8, inp.dtype, alignment=ALIGNMENT)
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
    with pytest.raises(ValueError, match="index 3 of a 16-byte access is no multiple of its 4 elements"):
        run(function, 8, "float32", 3)


def test_a_store_beyond_the_array_is_an_error() -> None:
    with pytest.raises(ValueError, match="broadcast"):
        run(store_beyond, 8, "float32")
