"""Steps that blocks share evenly: every step has one block, whose range holds it."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smembench.kernels.matmul.cuda.split_k import PER_CYCLE
from smembench.kernels.matmul.partial_sums import Shares, block_with, steps_of


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


SMALL, LARGE = 32 * 64, 128 * 128
"""Results of a tile."""


@pytest.mark.parametrize(
    ("tiles", "steps", "results", "multiprocessors", "blocks"),
    [
        pytest.param(30, 4, SMALL, 132, 30, id="a block for every tile, since sums take longer than few steps"),
        pytest.param(30, 40, SMALL, 132, 120, id="four blocks for every tile"),
        pytest.param(45, 20, SMALL, 132, 90, id="two for every tile, a third idle: none has parts of two tiles"),
        pytest.param(72, 55, LARGE, 132, 132, id="one per multiprocessor: too many idle otherwise"),
        pytest.param(207, 10, SMALL, 132, 207, id="a block for every tile, two on most multiprocessors"),
        pytest.param(216, 83, SMALL, 132, 132, id="one per multiprocessor, which all have as many steps"),
        pytest.param(16, 2, LARGE, 132, 32, id="no block without a step"),
        pytest.param(4, 2048, LARGE, 2000, 256, id="no more than there is scratch memory for"),
        pytest.param(1, 1, SMALL, 132, 1, id="a single step"),
    ],
)
def test_a_grid_has_as_many_blocks_as_are_worth_it(
    tiles: int, steps: int, results: int, multiprocessors: int, blocks: int
) -> None:
    shares = Shares(tiles, steps, results, step_cycles=32 * results / PER_CYCLE)
    assert shares.blocks(multiprocessors) == blocks
    assert shares.cycles(blocks, multiprocessors) <= shares.cycles(min(tiles, multiprocessors), multiprocessors)


@given(st.integers(1, 500), st.integers(1, 300), st.sampled_from((SMALL, LARGE)), st.integers(1, 150))
def test_blocks_that_wait_for_each_other_run_at_once(
    tiles: int, steps: int, results: int, multiprocessors: int
) -> None:
    blocks = Shares(tiles, steps, results, step_cycles=32 * results / PER_CYCLE).blocks(multiprocessors)
    assert 1 <= blocks <= tiles * steps
    assert blocks <= multiprocessors or blocks == tiles
