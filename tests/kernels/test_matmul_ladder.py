"""The products of the ladder: what the model says of them. Their results: tests/simulator."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from campaign import CAMPAIGN
from ladder import PIPELINED, TILED
from ladder import matmul as case
from programs import cuda_kernel, numba_kernel
from smembench.explain.analysis import explain
from smembench.kernels.intrinsics.vector import load_pair
from smembench.kernels.matmul.cuda.serpentine import Variant
from smembench.kernels.matmul.ragged import SIDE, remainder
from smembench.kernels.matmul.tiling import Tiling, predication
from smembench.kernels.numba_cuda import uint32
from smembench.model.case import Block, Case
from smembench.model.formats import WIDE
from smembench.model.problem import ITEMSIZE

DTYPES = list(WIDE)
LEFT_OVER = ("slicedK12x6", *PIPELINED)
CLIMBED = ("tiled1D", "tiled2D", *TILED)
VARIANTS = [(name, block) for name in CLIMBED for block in cuda_kernel("matmul", name).default_blocks]


@pytest.mark.parametrize(
    ("name", "block"),
    [  # unrolled's other block is that of serpentine16x8
        (name, block)
        for name, block in VARIANTS
        if CAMPAIGN > 1 or name != "unrolled" or block == cuda_kernel("matmul", name).default_blocks[0]
    ],
)
def test_every_step_is_coalesced_and_free_of_conflicts(name: str, block: Block) -> None:
    explained = explain(case(name, n=256, k=16, block=block))
    assert {access.efficiency for access in explained.memory} == {1.0}
    assert explained.degree("load") == 1.0
    degrees = {(access.site.array, access.degree) for access in explained.shared if access.site.kind == "store"}
    # Four columns of A at once: a pitch of whole vectors leaves every second of them in the same banks.
    expected = {("shared0", 2.0 if name in PIPELINED else 1.0), ("shared1", 1.0)}
    # Copies of single elements have none.
    assert degrees == expected | ({("shared0", 1.0)} if name == "streamK" else set())
    assert sum(array.bytes for array in explained.trace.shared) == explained.shared_bytes


@pytest.mark.parametrize(
    ("name", "dtype", "n", "k"),
    [
        *(("vectorized", "float64", 256, 16), ("vectorized", "float32", 257, 9)),
        *([("unrolled", "float64", 257, 9)] if CAMPAIGN > 1 else []),
    ],
)
def test_float64_and_sizes_without_aligned_rows_are_free_of_conflicts_too(
    name: str, dtype: str, n: int, k: int
) -> None:
    explained = explain(case(name, dtype, n, k=k))
    assert (explained.degree("store"), explained.degree("load")) == (1.0, 1.0)
    assert {access.site.width for access in explained.memory} == {16 if n == 256 else ITEMSIZE[dtype]}


@pytest.mark.parametrize(("name", "block"), VARIANTS)
def test_a_grid_covers_the_product_by_what_a_block_computes(name: str, block: Block) -> None:
    across, down = cuda_kernel("matmul", name).results
    x, y = block.x * across, block.y * down
    few, more = name in LEFT_OVER, (y + 1, x + 1)
    sizes = {x * y: (y, x), x * y + 1: (y, x) if few else more, x * y + SIDE + 1: more, 1: (1, 1)}
    for n, expected in sizes.items():
        program = numba_kernel(case(name, n=n, block=block))
        assert program.grid == expected
        assert ("a few left over" in program.variant) is (few and n == x * y + 1)


@pytest.mark.parametrize(("block", "few"), [(Block(8, 16), True), (Block(8, 32), False)])
def test_nothing_is_left_over_where_a_tile_does_not_hold_the_sums_of_pieces(block: Block, few: bool) -> None:
    ragged = replace(case("streamK", block=block), m=8 * block.y + 1, n=8 * block.x + 1)
    assert ("a few left over" in numba_kernel(ragged).variant) is few


@given(
    tiling=st.sampled_from([Tiling(Block(16, 16), "float32"), Tiling(Block(16, 8), "float32", down=16)]),
    tiles=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    few=st.tuples(st.integers(0, 3 * SIDE), st.integers(0, 3 * SIDE)),
)
def test_pieces_are_all_that_whole_tiles_leave_over(
    tiling: Tiling, tiles: tuple[int, int], few: tuple[int, int]
) -> None:
    sides = (tiling.rows, tiling.columns)
    m, n = (whole * side + more for whole, side, more in zip(tiles, sides, few, strict=True))
    left = remainder(tiling)
    count = int(left.chunks(uint32(m), uint32(n)))
    corners = [tuple(map(int, left.corner(uint32(piece), uint32(m), uint32(n)))) for piece in range(count)]
    result = Counter(
        (row + i, col + j)
        for row, col in corners
        for i, j in product(range(SIDE), range(SIDE))
        if row + i < m and col + j < n
    )
    down, across = tiles[0] * tiling.rows, tiles[1] * tiling.columns
    assert result == Counter((i, j) for i, j in product(range(m), range(n)) if i >= down or j >= across)


@pytest.mark.parametrize("name", ["slicedK12x6", "serpentine"])
def test_what_is_left_over_is_written_once_and_read_by_pieces(name: str) -> None:
    """As many pieces for each of 4 blocks. A piece reads its rows of A by SIDE lanes, and those of B once."""
    kernel = cuda_kernel("matmul", name)
    (block,) = kernel.default_blocks
    down, across = block.y * kernel.results[1], block.x * kernel.results[0]
    tiles = replace(case(name, k=3072), m=2 * down, n=2 * across)
    before = {load.array: load.per_element for load in explain(tiles).loads}
    columns_too = CAMPAIGN > 1 or name == "slicedK12x6"  # one program for both, which takes long to compile
    for rows, columns in ((0, 1), (SIDE, 0)) if columns_too else ((SIDE, 0),):
        explained = explain(replace(tiles, m=tiles.m + rows, n=tiles.n + columns))
        (written,) = (traffic for traffic in explained.traffic if traffic.kind == "store")
        assert written.per_element == pytest.approx(1, abs=0.03)
        after = {load.array: load.per_element for load in explained.loads}
        assert after == pytest.approx({"A": before["A"] + SIDE, "B": before["B"] + 1}, rel=0.05)


@given(n=st.integers(1, 64), k=st.integers(1, 64), more=st.none() | st.integers(0, 8), dtype=st.sampled_from(DTYPES))
def test_vectors_only_where_rows_begin_and_end_at_one(n: int, k: int, more: int | None, dtype: str) -> None:
    stride = None if more is None else max(n, k) + more
    tiling = Tiling(Block(16, 16), dtype)
    result = tiling.widths(Case("matmul", "unrolled", "cuda:0", dtype, 1, n, k, Block(16, 16), stride=stride))
    for width, row in zip(result, (k, n), strict=True):
        aligned = row * ITEMSIZE[dtype] % 16 == 0 and (stride or row) * ITEMSIZE[dtype] % 16 == 0
        assert width * ITEMSIZE[dtype] == (16 if aligned else ITEMSIZE[dtype])


@pytest.mark.parametrize(
    ("name", "dtype", "block", "reason"),
    [
        ("serpentine16x8", "float64", Block(16, 8), "keeps 16×8 float64 results per thread, more than its registers"),
        ("vectorized", "float32", Block(32, 32), "needs 128 registers per thread, more than 1024 threads can have"),
        ("vectorized", "float32", Block(3, 3), "cannot divide its tiles evenly among 3x3 threads: use 16x16"),
        ("unrolled", "float32", Block(4, 16), "cannot divide its tiles evenly among 4x16 threads"),
        ("slicedK12x6", "float32", Block(16, 16), "cannot divide its tiles evenly among 16x16 threads: use 16x24"),
    ],
)
def test_blocks_that_do_not_fit_are_refused(name: str, dtype: str, block: Block, reason: str) -> None:
    refused = cuda_kernel("matmul", name).refusal(case(name, dtype, block=block))
    assert refused is not None
    assert refused.startswith(f"{name} {reason}")


@pytest.mark.parametrize(
    ("name", "dtype", "bounds"),
    [
        ("unrolled", "float32", (256, 2)),
        ("unrolled", "float64", (256, 1)),
        ("serpentine16x8", "float32", (128, 2)),
    ],
)
def test_registers_are_as_many_as_leave_room_for_the_blocks(name: str, dtype: str, bounds: tuple[int, int]) -> None:
    assert numba_kernel(case(name, dtype)).launch_bounds == bounds


def test_a_pair_begins_at_an_even_index() -> None:
    elements: Any = np.arange(8, dtype=np.float32)
    assert load_pair(elements, 6) == (6, 7)
    with pytest.raises(ValueError, match="index 3 of a 8-byte access is not a multiple of its 2 elements"):
        load_pair(elements, 3)


@given(side=st.integers(1, 500), k=st.integers(1, 500))
def test_tiles_that_are_moved_inwards_cover_everything_once_along_k(side: int, k: int) -> None:
    tiling = Tiling(Block(8, 8), "float32", depth=16)
    square = Case("matmul", "serpentine", "cuda:0", "float32", side, side, k, Block(8, 8))
    label, origin, short_of, first_end = predication(tiling, square)
    short = int(short_of(uint32(k)))
    first = int(first_end(uint32(k), uint32(short)))
    if label:
        assert min(first, 16) + short == 16
        assert (k + short) % 16 == 0
        origins = [int(origin(uint32(i), uint32(64), uint32(side))) for i in range(-(-side // 64))]
        assert {row for first in origins for row in range(first, first + 64)} == set(range(side))
    else:
        assert (short, first) == (0, k)
        assert side < 64 or k < 16


@pytest.mark.parametrize(
    ("name", "n", "k", "side", "depth"), [("serpentine", 4096, 4096, 128, 16), ("slicedK12x6", 108, 25, 96, 24)]
)
def test_tiles_that_are_loaded_once_more_are_counted_once_more(
    name: str, n: int, k: int, side: int, depth: int
) -> None:
    """The last tiles along k come twice, and of tiles that are moved inwards some rows and columns do."""
    tiles = -(-n // side)
    expected = (k + depth) / k * tiles * side / n * tiles
    loads = {load.array: load.per_element for load in explain(case(name, n=n, k=k)).loads}
    assert loads == {"A": pytest.approx(expected, rel=0.01), "B": pytest.approx(expected, rel=0.01)}


@given(down=st.integers(1, 16), across=st.integers(1, 16), by_rows=st.booleans())
def test_a_serpentine_visits_every_result_and_keeps_a_factor(down: int, across: int, by_rows: bool) -> None:
    result = Variant(down, across, by_rows).results()
    assert Counter(result) == Counter(product(range(down), range(across)))
    assert all((i == k) != (j == m) for (i, j), (k, m) in pairwise(result))
