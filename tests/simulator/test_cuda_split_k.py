"""splitK: products whose tiles several blocks share, each with slices of its own."""

from __future__ import annotations

from dataclasses import replace

import pytest

import simulated
from programs import assert_right, case_of, cuda_kernel, numba_kernel
from smembench.kernels.matmul.cuda.split_k import SHAPES, tiling_of
from smembench.kernels.problems import PROBLEMS
from smembench.model.case import Block

KERNEL = cuda_kernel("matmul", "splitK")
LARGE, WIDE, TALL, SQUARE, SMALL = SHAPES


def verify(block: Block, m: int, n: int, k: int, *, blocks: int, launches: int = 1, stride: int | None = None) -> str:
    """Check a product of so many blocks; its variant."""
    case = case_of(KERNEL, m, n, k, "float32", block, stride)
    assert KERNEL.refusal(case) is None
    program = replace(numba_kernel(case), persistent_blocks=lambda _: blocks)
    kernel = replace(KERNEL, build=lambda _: program)
    for _ in range(launches):
        assert_right(case, lambda inputs: simulated.run(case, kernel, PROBLEMS["matmul"], inputs))
    return program.variant


@pytest.mark.parametrize("block", SHAPES)
def test_blocks_share_a_whole_tile_at_every_launch(block: Block) -> None:
    """Counts of blocks are zero again when a launch ends."""
    tiling = tiling_of(case_of(KERNEL, 1, 1, 1, block=block))
    steps, blocks = (3, 2) if block == LARGE else (5, 3)  # those of the largest tile take longest
    launches = 2 if block == SMALL else 1
    variant = verify(block, tiling.rows, tiling.columns, steps * tiling.depth, blocks=blocks, launches=launches)
    assert variant == "A by 4, B by 4, whole tiles"


@pytest.mark.parametrize(
    ("block", "more", "k", "blocks", "stride", "variant"),
    [
        pytest.param(SQUARE, (3, 2), 75, 5, None, "A by 1, B by 1", id="each tile in several blocks"),
        pytest.param(SMALL, (1, 4), 66, 2, 144, "A by 1, B by 4", id="two blocks that have several tiles"),
        pytest.param(WIDE, (0, 4), 60, 1, None, "A by 4, B by 4", id="one block"),
        pytest.param(TALL, (5, 3), 40, 3, None, "A by 4, B by 1", id="tiles of two slices below each other"),
    ],
)
def test_tiles_over_an_edge_are_moved_inwards(
    block: Block, more: tuple[int, int], k: int, blocks: int, stride: int | None, variant: str
) -> None:
    tiling = tiling_of(case_of(KERNEL, 1, 1, 1, block=block))
    result = verify(block, tiling.rows + more[0], tiling.columns + more[1], k, blocks=blocks, stride=stride)
    assert result == f"{variant}, tiles moved inwards"


@pytest.mark.parametrize(
    ("block", "m", "n", "k", "blocks"), [(SQUARE, 68, 12, 36, 3), (SMALL, 3, 67, 40, 2), (WIDE, 1, 1, 1, 4)]
)
def test_sides_smaller_than_a_tile_are_right(block: Block, m: int, n: int, k: int, blocks: int) -> None:
    assert "tiles" not in verify(block, m, n, k, blocks=blocks)
