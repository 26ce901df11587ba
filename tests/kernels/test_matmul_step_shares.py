"""Steps that blocks share evenly: every step has one block, whose range holds it."""

from __future__ import annotations

from itertools import pairwise

import pytest

from smembench.kernels.matmul.partial_sums import block_with, steps_of
from smembench.kernels.matmul.tiled_kernel import split_k_blocks


@pytest.mark.parametrize(("steps", "blocks"), [(1, 1), (7, 3), (12, 4), (3, 5), (2000, 132), (4096, 264)])
def test_blocks_have_equal_shares_one_after_the_other(steps: int, blocks: int) -> None:
    shares = [steps_of(block, blocks, steps) for block in range(blocks)]
    assert (shares[0][0], shares[-1][1]) == (0, steps)
    assert all(end == begin for (_, end), (begin, _) in pairwise(shares))
    sizes = [end - begin for begin, end in shares]
    assert max(sizes) - min(sizes) <= 1
    for step in range(steps):
        begin, end = shares[block_with(step, blocks, steps)]
        assert begin <= step < end


@pytest.mark.parametrize(
    ("tiles", "steps", "multiprocessors", "blocks"),
    [
        pytest.param(64, 16, 132, 128, id="two blocks for every tile"),
        pytest.param(100, 20, 132, 100, id="a quarter idle"),
        pytest.param(72, 48, 132, 132, id="too many idle otherwise"),
        pytest.param(16, 2, 132, 32, id="no block without a step"),
        pytest.param(4096, 128, 132, 132, id="more tiles than blocks"),
        pytest.param(4, 2048, 2000, 1024, id="no more than there is scratch memory for"),
    ],
)
def test_a_grid_has_as_many_blocks_as_are_worth_it(tiles: int, steps: int, multiprocessors: int, blocks: int) -> None:
    assert split_k_blocks(tiles, steps, 1024, multiprocessors) == blocks
