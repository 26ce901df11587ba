"""The kernel that ``heuristic`` takes for a product."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from programs import case_of, cuda_kernel, numba_kernel, planned
from random_products import SIZES_OF_TILES
from smembench.kernels.matmul.cuda.few_rows_clustered import LEAST_STAGES, form_of
from smembench.kernels.matmul.cuda.heuristic import choice_of
from smembench.kernels.matmul.cuda.wgmma_clustered import tile_of
from smembench.kernels.matmul.tile_choice import SHARED, SHARED_BYTES, SHARING
from smembench.model.case import BY_COLUMNS, BY_ROWS, Block

HEURISTIC = cuda_kernel("matmul", "heuristic")


@pytest.mark.parametrize(
    ("dtype", "sides", "name"),
    [
        ("bfloat16", (1, 4096, 4096), "fewRows"),
        ("bfloat16", (16, 14336, 4096), "fewRowsClustered"),
        ("bfloat16", (32, 8192, 8192), "fewRowsClustered"),
        ("bfloat16", (128, 8192, 8192), "fewRowsClustered"),
        ("bfloat16", (1560, 496, 6816), "wgmmaClustered"),  # few tiles, long rows: four blocks share A
        ("bfloat16", (4096, 4096, 4096), "wgmmaOverlapped"),
        ("bfloat16", (6000, 6000, 6000), "wgmmaClustered"),
        ("bfloat16", (1536, 1536, 1536), "wgmmaClustered"),
        ("bfloat16", (1024, 1024, 1024), "wgmmaStored"),
        ("bfloat16", (1032, 952, 960), "wgmmaClustered"),  # k is too short for wgmmaStored
        ("bfloat16", (3432, 272, 160), "wgmmaClustered"),  # many results, which threads write slowly
        ("bfloat16", (128, 8192, 4096), "fewRowsClustered"),
        ("bfloat16", (1025, 1025, 1025), "wgmmaPacked"),
        ("float32", (1, 4096, 4096), "oneRow"),
        ("float32", (16, 512, 512), "oneRow"),
        ("float32", (16, 513, 512), "splitK"),  # rows of B begin at no multiple of 16 bytes
        ("float32", (117, 152, 46), "tiled"),  # few waits for the memory, and no sums in scratch memory
        ("float32", (252, 60, 216), "oneRow"),
        ("float32", (252, 61, 216), "tiled"),
        ("float32", (88, 184, 3288), "splitK"),  # all of k in one block is too long
        ("float32", (20, 2500, 9000), "splitK"),  # no tile of streamK's has as few rows
        ("float32", (2048, 2048, 2048), "streamK"),
    ],
)
def test_the_choice_by_type_and_shape(dtype: str, sides: tuple[int, int, int], name: str) -> None:
    case = case_of(HEURISTIC, *sides, dtype)
    kernel, chosen = choice_of(case)
    assert (kernel.name, chosen.kernel, kernel.refusal(chosen)) == (name, name, None)
    assert HEURISTIC.refusal(case) is None
    assert HEURISTIC.shared_bytes(case) == kernel.shared_bytes(chosen)


@pytest.mark.parametrize(
    ("sides", "name", "block"),
    [
        ((64, 4096, 4096), "splitK", Block(16, 8)),
        ((4096, 64, 4096), "splitK", Block(8, 16)),
        ((512, 512, 512), "splitK", Block(8, 4)),
        ((256, 256, 65536), "splitK", Block(16, 16)),
        ((160, 6000, 3000), "streamK", Block(16, 8)),
        ((2500, 300, 9000), "streamK", Block(8, 8)),
        ((4096, 4096, 4096), "streamK", Block(16, 16)),
    ],
)
def test_the_tile_in_float32(sides: tuple[int, int, int], name: str, block: Block) -> None:
    """The fastest of nine, as an H200 timed them."""
    kernel, chosen = choice_of(case_of(HEURISTIC, *sides, "float32"))
    assert (kernel.name, chosen.block) == (name, block)


def test_kept_machine_code_is_of_one_block() -> None:
    """Of kernels in other blocks the code differs, though the case that they are kept by names no block."""
    blocks: dict[str, set[Block | None]] = {}
    for m, n, k in product((64, 512, 4096), repeat=3):
        case = case_of(HEURISTIC, m, n, k, "float32")
        blocks.setdefault(numba_kernel(case).variant, set()).add(choice_of(case)[1].block)
    assert [len(of_variant) for of_variant in blocks.values()] == [1] * len(blocks)
    assert len(blocks) > 3


@pytest.mark.parametrize(("b_layout", "block"), [(BY_COLUMNS, Block(32, 8)), (BY_ROWS, Block(32, 16))])
def test_the_block_of_one_row(b_layout: str, block: Block) -> None:
    case = replace(case_of(HEURISTIC, 1, 4096, 4096, "float16"), b_layout=b_layout)
    assert choice_of(case)[1].block == block


def test_the_reason_of_the_last_kernel_for_what_none_takes() -> None:
    case = replace(case_of(HEURISTIC, 64, 64, 64, "float8_e4m3"), b_layout=BY_ROWS)
    kernel, chosen = choice_of(case)
    assert HEURISTIC.refusal(case) == kernel.refusal(chosen) is not None


def test_products_on_tensor_cores_show_it_unless_kernels_are_named() -> None:
    sweep = {"problem": "matmul", "dtype": "bfloat16", "m": 16, "n": 8192, "k": 8192, "device": "cuda:0"}
    assert "heuristic" in {item.case.kernel for item in planned(sweep)}


def test_of_tiles_that_take_as_long_the_one_with_more_stages() -> None:
    case = replace(case_of(HEURISTIC, 256, 8192, 8192, "bfloat16"), b_layout=BY_COLUMNS)
    taken = tile_of(case)
    others = [tile for tile in SHARED if (tile.rows, tile.columns) == (taken.rows, taken.columns)]
    assert len(others) > 1
    assert taken.stages == max(tile.stages for tile in others)


def test_the_sanitizers_see_tiles_of_every_kind() -> None:
    """Other estimates may choose other tiles for the sizes that they are given."""
    kernel = cuda_kernel("matmul", "wgmmaClustered")
    cases = [case_of(kernel, *size, "bfloat16") for size in SIZES_OF_TILES[kernel.name]]
    tiles = [tile_of(replace(case, b_layout=b_layout)) for case in cases for b_layout in (BY_ROWS, BY_COLUMNS)]
    assert {(tile.share_b, tile.share_a) for tile in tiles} == set(SHARING)
    assert {(tile.ping_pong, tile.cluster > 1) for tile in tiles} == set(product((False, True), repeat=2))
    assert {tile.swapped for tile in tiles} == {0, 1, 2, 3}
    assert {tile.parts for tile in tiles if not tile.swapped} == {1, 2}
    assert {tile.stored_bytes for tile in tiles} == {64, 128}
    assert max(tile.apart for tile in tiles) > 1


@given(
    m=st.integers(1, 400),
    n=st.integers(1, 4000).map(lambda eights: 8 * eights),
    k=st.integers(1, 4000).map(lambda eights: 8 * eights),
    b_layout=st.sampled_from([BY_ROWS, BY_COLUMNS]),
)
@settings(max_examples=100, deadline=None)
def test_any_few_rows_have_a_form_that_fits_and_multiplies_nothing_beyond_its_stage(
    m: int, n: int, k: int, b_layout: str
) -> None:
    case = replace(case_of(cuda_kernel("matmul", "fewRowsClustered"), m, n, k, "bfloat16"), b_layout=b_layout)
    form = form_of(case)
    tile, (across, down) = form.tile, form.tile.grid(case)
    assert tile.stages >= LEAST_STAGES
    assert tile.shared_bytes + form.sent <= SHARED_BYTES
    assert tile.rows + tile.columns >= 64 * tile.consumers
    assert across * tile.columns >= n
    assert down * tile.share_b * tile.rows >= m
    assert b_layout == BY_COLUMNS or tile.columns % 32 == 0
