"""Products by warp groups: copies of tiles, barriers and products as their Python bodies have them."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from types import ModuleType

import pytest

import simulated
from campaign import CAMPAIGN
from programs import assert_right, case_of, cuda_kernel, numba_kernel
from smembench.kernels.matmul.cuda import (
    wgmma_clustered,
    wgmma_overlapped,
    wgmma_packed,
    wgmma_stored,
)
from smembench.kernels.matmul.tile_choice import PING_PONG, SHARED, SWAPPED, UNSWAPPED
from smembench.kernels.matmul.warp_groups import TILES, Tile
from smembench.kernels.problems import PROBLEMS
from smembench.model.case import BY_COLUMNS, BY_ROWS
from smembench.model.formats import FLOAT8, TF32

STORED = ("wgmmaStored", "wgmmaClustered", "wgmmaOverlapped")
STEPS = ("wgmma", "wgmmaSpecialized", "wgmmaPersistent", *STORED)
FEW = CAMPAIGN == 1
"""Of tiles that differ in their numbers alone, representatives are tried; others where ``CAMPAIGN`` is larger."""
WIDTHS = TILES[::3] if FEW else TILES
"""Of the rows of B's tiles by rows, those of 160 columns have 64 bytes, and of 256 and 64 columns 128."""


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize(
    ("size", "dtype", "b_layout"),
    [
        pytest.param((130, 264, 72), "bfloat16", BY_ROWS, id="ragged in all three"),
        pytest.param((3, 72, 328), "float16", BY_COLUMNS, id="more steps than stages"),
        pytest.param((64, 6, 4), TF32, BY_COLUMNS, id="less than a tile"),
        pytest.param((66, 134, 144), FLOAT8, BY_COLUMNS, id="float8"),
    ],
)
def test_products_are_right_at_the_edges_of_tiles(
    name: str, size: tuple[int, int, int], dtype: str, b_layout: str
) -> None:
    m, n, k = size
    if name in STORED:
        n = min(n, 136)  # several tiles across, as 264 columns are for others
        n += -n % 8  # the TMA writes results, too
    verify(name, (m, n, k), dtype, b_layout)


def test_blocks_compute_one_tile_after_another() -> None:
    """Five rows of three tiles for four blocks: a band that is not full, and blocks with one tile more than others."""
    verify("wgmmaPersistent", (600, 520, 8), "bfloat16", BY_ROWS, blocks=4)


@pytest.mark.parametrize(
    ("name", "tile", "dtype", "b_layout"),
    [
        *(("wgmmaStored", tile, "bfloat16", BY_ROWS) for tile in WIDTHS),
        *(("wgmmaPacked", tile, "bfloat16", BY_ROWS) for tile in TILES[:6:3]),  # 64 columns are usual at small sizes
        # Rows of B by columns have 128 bytes in a tile of any width.
        *(
            ("wgmmaStored", tile, dtype, BY_COLUMNS)
            for tile, dtype in zip(TILES[1::2], (TF32, FLOAT8, TF32), strict=True)
        ),
        *(("wgmmaOverlapped", tile, TF32, BY_COLUMNS) for tile in wgmma_overlapped.HALVED[:1]),
    ],
    ids=lambda value: value.columns if isinstance(value, Tile) else value,
)
def test_tiles_of_every_width_are_right(
    monkeypatch: pytest.MonkeyPatch, name: str, tile: Tile, dtype: str, b_layout: str
) -> None:
    """Two tiles across, the second ragged; where columns are no multiple of 64, rows of B and C have 64 bytes."""
    for module in (wgmma_stored, wgmma_packed, wgmma_overlapped):
        monkeypatch.setattr(module, "tile_of", tile.of)
    odd = 1 if name == "wgmmaPacked" else 0
    verify(name, (70, tile.columns + 24 + odd, 80 + odd), dtype, b_layout)


@pytest.mark.parametrize(
    ("kernel", "module", "name", "reader"),
    [
        ("wgmmaStored", wgmma_stored, "finish_products", "the tensor cores"),
        ("wgmmaStored", wgmma_stored, "finish_stores", "the TMA"),
        ("wgmmaOverlapped", wgmma_overlapped, "finish_products", "the tensor cores"),
        ("wgmmaOverlapped", wgmma_overlapped, "finish_stores", "the TMA"),
    ],
)
def test_memory_that_is_written_again_too_early_is_found(
    monkeypatch: pytest.MonkeyPatch, kernel: str, module: ModuleType, name: str, reader: str
) -> None:
    """Where a kernel waits for one group fewer than it has to."""
    wait = getattr(module, name)
    monkeypatch.setattr(module, name, lambda newest: wait(newest + 1))
    with pytest.raises(AssertionError, match=f"memory was changed before {reader} had read it"):
        verify(kernel, (300, 264, 576), "bfloat16", BY_ROWS, blocks=1)


@pytest.mark.parametrize(
    ("tile", "steps"),
    [
        (tile, steps)
        for tile, some in zip(
            wgmma_overlapped.HALVED, ((4,), (1, 7)) if FEW else ((1, 4, 9), (1, 3, 5, 7)), strict=True
        )
        for steps in some
    ],
    ids=lambda value: value.columns if isinstance(value, Tile) else value,
)
def test_products_by_halves_are_right_with_any_number_of_steps(
    monkeypatch: pytest.MonkeyPatch, tile: Tile, steps: int
) -> None:
    """Fewer than at the edges, as many, and more; a block has one or two tiles."""
    monkeypatch.setattr(wgmma_overlapped, "tile_of", tile.of)
    verify("wgmmaOverlapped", (270, tile.columns // 2 + 8, 64 * steps - 8), "bfloat16", BY_ROWS, blocks=2)


@pytest.mark.parametrize(
    ("tile", "b_layout"),
    [*((tile, BY_ROWS) for tile in WIDTHS), *((tile, BY_COLUMNS) for tile in TILES[::5])],
    ids=lambda value: value.columns if isinstance(value, Tile) else value,
)
def test_clusters_take_tiles_of_every_width(monkeypatch: pytest.MonkeyPatch, tile: Tile, b_layout: str) -> None:
    """Most of the last tile of B lies beyond it, and is not copied."""
    monkeypatch.setattr(wgmma_clustered, "tile_of", tile.of)
    verify("wgmmaClustered", (66, tile.columns + 8, 80), "bfloat16", b_layout)


OF_WIDTHS = [list(tiles) for _, tiles in groupby(SWAPPED, lambda tile: tile.columns)]
EDGES = [(tiles[0], min(tiles[1:-1], key=lambda tile: tile.buffers), tiles[-1]) for tiles in OF_WIDTHS]
"""Of each width the shortest tile, of those between the one with the smallest buffers, and the tallest."""
SOME = [edges[i] for edges, i in zip(EDGES, (2, 1, 2, 1), strict=True)]
"""One of each width, where the shortest are tried by columns."""


@pytest.mark.parametrize(
    ("tile", "dtype", "b_layout"),
    [
        *((tile, "bfloat16", BY_ROWS) for tile in (SOME if FEW else sum(EDGES, ()))),
        *(
            (edges[0 if FEW else -1], dtype, BY_COLUMNS)
            for edges, dtype in zip(EDGES, ("float16", TF32, FLOAT8, TF32), strict=True)
        ),
    ],
    ids=lambda value: f"{value.rows}x{value.columns}" if isinstance(value, Tile) else value,
)
def test_swapped_tiles_are_right(monkeypatch: pytest.MonkeyPatch, tile: Tile, dtype: str, b_layout: str) -> None:
    """A ragged one below a whole one and to its right."""
    monkeypatch.setattr(wgmma_clustered, "tile_of", tile.of)
    verify("wgmmaClustered", (tile.rows + 18, tile.columns + 8, 80), dtype, b_layout)


@pytest.mark.parametrize(
    ("rows", "columns", "apart", "dtype"),
    [(128, 136, 1, "bfloat16"), (192, 72, 1, TF32), (256, 72, 2, "float16"), (256, 152, 1, FLOAT8)],
    ids=str,
)
def test_tiles_of_any_multiple_of_8_columns_are_right(
    monkeypatch: pytest.MonkeyPatch, rows: int, columns: int, apart: int, dtype: str
) -> None:
    """A ragged one below a whole one and to its right."""
    tile = next(tile for tile in UNSWAPPED if (tile.rows, tile.columns) == (rows, columns))
    monkeypatch.setattr(wgmma_clustered, "tile_of", replace(tile, apart=apart).of)
    verify("wgmmaClustered", (rows * apart + 18, columns + 8, 80), dtype, BY_COLUMNS)


@pytest.mark.parametrize(
    ("sides", "tiles", "k", "dtype", "b_layout"),
    [
        pytest.param((64, 128), 5, 80, "bfloat16", BY_ROWS, id="64x128, fewer steps than stages"),
        pytest.param((120, 192), 2, 456, "float16", BY_COLUMNS, id="120x192, more steps than stages"),
        pytest.param((176, 128), 1, 72, "bfloat16", BY_COLUMNS, id="176x128, one tile"),
        pytest.param((88, 256), 3, 8, TF32, BY_COLUMNS, id="88x256, one step"),
    ],
)
def test_warp_groups_alternate(
    monkeypatch: pytest.MonkeyPatch, sides: tuple[int, int], tiles: int, k: int, dtype: str, b_layout: str
) -> None:
    """A block has all tiles of a column of them, of which the last one is ragged."""
    tile = next(tile for tile in PING_PONG if (tile.rows, tile.columns) == sides)
    monkeypatch.setattr(wgmma_clustered, "tile_of", tile.of)
    verify("wgmmaClustered", (tiles * tile.rows - 6, tile.columns - 8, k), dtype, b_layout, blocks=1)


NARROWEST = min((tile for tile in SHARED if not tile.swapped), key=lambda tile: tile.columns)


@pytest.mark.parametrize(
    ("tile", "apart", "dtype", "b_layout"),
    [
        (SWAPPED[0], 2, "bfloat16", BY_ROWS),
        (SWAPPED[0], 8, "float16", BY_COLUMNS),
        (NARROWEST, 2, "bfloat16", BY_ROWS),
        (NARROWEST, 8, TF32, BY_COLUMNS),
    ],
    ids=lambda value: value.rows if isinstance(value, Tile) else value,
)
def test_tiles_whose_rows_lie_apart_are_right(
    monkeypatch: pytest.MonkeyPatch, tile: Tile, apart: int, dtype: str, b_layout: str
) -> None:
    """Rows of A begin at several places within lines, and every second or eighth at the same; tiles are ragged."""
    monkeypatch.setattr(wgmma_clustered, "tile_of", replace(tile, apart=apart).of)
    verify("wgmmaClustered", (2 * tile.rows + 24, tile.columns + 8, 72), dtype, b_layout)


@pytest.mark.parametrize(
    ("size", "dtype", "b_layout"),
    [
        pytest.param((130, 133, 75), "bfloat16", BY_ROWS, id="odd in all three"),
        pytest.param((70, 133, 75), "bfloat16", BY_COLUMNS, id="both, by columns"),
        pytest.param((3, 65, 331), "float16", BY_ROWS, id="more steps than stages"),
        pytest.param((70, 136, 75), "float16", BY_ROWS, id="A alone"),
        pytest.param((70, 133, 72), "bfloat16", BY_ROWS, id="B alone"),
        pytest.param((70, 133, 72), "bfloat16", BY_COLUMNS, id="neither"),
        pytest.param((70, 133, 35), TF32, BY_COLUMNS, id="tf32"),
        pytest.param((70, 133, 139), FLOAT8, BY_COLUMNS, id="float8"),
    ],
)
def test_rows_that_the_tma_does_not_take_are_copied(size: tuple[int, int, int], dtype: str, b_layout: str) -> None:
    verify("wgmmaPacked", size, dtype, b_layout)


def verify(name: str, size: tuple[int, int, int], dtype: str, b_layout: str, blocks: int | None = None) -> None:
    kernel = cuda_kernel("matmul", name)
    case = replace(case_of(kernel, *size, dtype), b_layout=b_layout)
    assert kernel.refusal(case) is None
    if blocks:
        program = replace(numba_kernel(case), persistent_blocks=lambda _: blocks)
        kernel = replace(kernel, build=lambda _: program)
    assert_right(case, lambda inputs: simulated.run(case, kernel, PROBLEMS["matmul"], inputs))
