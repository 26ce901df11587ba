"""How blocks share the steps along k of all tiles evenly: which steps a block has, and which block has a step.

The steps of one tile after the other are numbered. The first blocks have one step more than the others where the number
of blocks does not divide them. A trace, with as many blocks for each of a few tiles, divides every tile evenly instead:
its blocks have steps of one tile.
"""

from __future__ import annotations

from typing import NamedTuple

from smembench.kernels.intrinsics.traced import traced
from smembench.kernels.numba_cuda import device
from smembench.kernels.types import Index


class StepShares(NamedTuple):
    """Of so many ``steps`` for so many ``blocks``, ``fewest`` for a block at least, and one more for the ``longer``."""

    steps: Index
    blocks: Index
    fewest: Index
    longer: Index


@device
def step_shares(steps: Index, blocks: Index) -> StepShares:
    """So many steps for so many blocks."""
    fewest = steps // blocks
    return StepShares(steps, blocks, fewest, steps - fewest * blocks)


@device
def first_step(shares: StepShares, block: Index) -> Index:
    """A block's first step; the number of steps for the block after the last."""
    if traced():
        return block * shares.steps // shares.blocks
    return block * shares.fewest + min(block, shares.longer)


@device
def block_with(shares: StepShares, step: Index) -> Index:
    """The block that has a step."""
    if traced():
        return ((step + 1) * shares.blocks - 1) // shares.steps
    short_from = shares.longer * (shares.fewest + 1)
    if step < short_from:
        return step // (shares.fewest + 1)
    return shares.longer + (step - short_from) // shares.fewest
