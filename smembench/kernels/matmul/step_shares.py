"""How blocks share the steps along k of all tiles evenly: which steps a block has, and which block has a step.

All steps are numbered, tile after tile, and block b begins at b · steps / blocks, rounded down. So blocks with one step
more lie between the others, and where the number of blocks is a multiple of the number of tiles, none has steps of two
tiles.
"""

from __future__ import annotations

from typing import NamedTuple

from smembench.kernels.numba_cuda import device, uint32, uint64
from smembench.kernels.types import Index


class StepShares(NamedTuple):
    """``steps`` shared by ``blocks``: ``fewest`` for each, and one more for ``longer`` of them."""

    steps: Index
    blocks: Index
    fewest: Index
    longer: Index


@device
def step_shares(steps: Index, blocks: Index) -> StepShares:
    """How ``blocks`` share ``steps``."""
    fewest = steps // blocks
    return StepShares(steps, blocks, fewest, steps - fewest * blocks)


@device
def first_step(shares: StepShares, block: Index) -> Index:
    """A block's first step; the number of steps for the block after the last."""
    return block * shares.fewest + block * shares.longer // shares.blocks


@device
def block_with(shares: StepShares, step: Index) -> Index:
    """The block that has a step."""
    return uint32((uint64(step + 1) * shares.blocks - 1) // shares.steps)
