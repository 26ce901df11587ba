"""How blocks share the steps along k of all tiles evenly: which steps a block has, and which block has a step.

The steps of one tile after the other are numbered. The first blocks have one step more than the others where the number
of blocks does not divide them.
"""

from __future__ import annotations

from typing import NamedTuple

from smembench.kernels.numba_cuda import device
from smembench.kernels.types import Index


class StepShares(NamedTuple):
    """``fewest``: steps of a block at least. ``longer``: how many blocks have one more."""

    fewest: Index
    longer: Index


@device
def step_shares(steps: Index, blocks: Index) -> StepShares:
    """So many steps for so many blocks."""
    fewest = steps // blocks
    return StepShares(fewest, steps - fewest * blocks)


@device
def first_step(shares: StepShares, block: Index) -> Index:
    """A block's first step; the number of steps for the block after the last."""
    return block * shares.fewest + min(block, shares.longer)


@device
def block_with(shares: StepShares, step: Index) -> Index:
    """The block that has a step."""
    short_from = shares.longer * (shares.fewest + 1)
    if step < short_from:
        return step // (shares.fewest + 1)
    return shares.longer + (step - short_from) // shares.fewest
