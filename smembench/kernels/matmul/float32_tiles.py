"""The kernel and tile of a float32 product: of splitK's and streamK's the one with the fewest estimated cycles.

The estimate is the multiply-adds of the multiprocessor with the most steps along k, at the share of the peak that a
tile reaches, and the cycles in which it multiplies nothing. Its numbers are fitted to times of 89 products on H200s;
the multiprocessors are those of an H100 or H200.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil, inf, prod
from typing import NamedTuple

from smembench.kernels.common.grids import block_of, ceil_div
from smembench.kernels.kernel import Kernel
from smembench.kernels.matmul.cuda import split_k, stream_k
from smembench.kernels.matmul.tiling import Tiling
from smembench.kernels.program import NumbaKernel
from smembench.model.case import Block, Case
from smembench.model.hardware import SM90_MULTIPROCESSORS

PEAK = 128
"""Multiply-adds per cycle of a multiprocessor."""


class Costs(NamedTuple):
    """What a kernel's launches cost.

    Attributes:
        kernel, tiling_of: the kernel, and the tile of a case with a block.
        shares: blocks, each with the share of the peak that as many as fit on a multiprocessor reach.
        launch: cycles per launch.
        exchange: cycles in which the blocks of a tile exchange sums; where they pass them on, per block of a tile.
        passed_on: whether sums are passed on from block to block.
    """

    kernel: Kernel
    tiling_of: Callable[[Case], Tiling]
    shares: dict[Block, float]
    launch: int
    exchange: int
    passed_on: bool


SPLIT_K = Costs(
    split_k.KERNEL,
    split_k.tiling_of,
    {Block(16, 16): 0.775, Block(16, 8): 0.71, Block(8, 16): 0.7, Block(8, 8): 0.6, Block(8, 4): 0.555},
    launch=7000,
    exchange=6000,
    passed_on=False,
)
STREAM_K = Costs(
    stream_k.KERNEL,
    stream_k.tiling_of,
    {Block(16, 16): 0.795, Block(16, 8): 0.77, Block(8, 16): 0.765, Block(8, 8): 0.745},
    launch=4400,
    exchange=3750,
    passed_on=True,
)
PER_THREAD = 1.35 / 256
"""Share of the peak per thread of a multiprocessor, where it has too few to reach more."""
SHORT, UNALIGNED = 1.24, 1.08
"""Factors of the cycles where a side is shorter than the tile, so that copies are not asynchronous, and where rows of B
do not all begin at multiples of 16 bytes."""
PER_RESULT = 0.45
"""Cycles per result in which a tile's first copies come and its results are written."""


def cycles(costs: Costs, case: Case) -> float:
    """Estimated cycles of a launch on a case in one of the kernel's blocks; infinite for streamK with a short side."""
    program, tiling = costs.kernel.build(case), costs.tiling_of(case)
    assert isinstance(program, NumbaKernel)
    assert program.persistent_blocks is not None
    short = case.m < tiling.rows or case.n < tiling.columns or case.depth < tiling.depth
    if short and costs is STREAM_K:
        return inf
    tiles, blocks = prod(program.grid), program.persistent_blocks(SM90_MULTIPROCESSORS)
    at_once, in_tile = ceil_div(blocks, SM90_MULTIPROCESSORS), ceil_div(case.depth, tiling.depth)
    steps, results = tiles * in_tile / blocks, tiling.rows * tiling.columns
    share = min(costs.shares[block_of(case)], PER_THREAD * tiling.threads * at_once)
    multiplying = at_once * ceil(steps) * tiling.depth * results / PEAK / share
    multiplying *= (SHORT if short else 1) * (UNALIGNED if tiling.widths(case)[1] == 1 else 1)
    exchanges = (max(blocks / tiles, 1) if costs.passed_on else 1) if steps % in_tile else 0
    per_tile = at_once * max(steps / in_tile, 1) * results * PER_RESULT
    return costs.launch + multiplying + exchanges * costs.exchange + per_tile


def choice_of(case: Case) -> tuple[Kernel, Case]:
    """The kernel for a case, and the case in its block."""
    choices = [
        (costs, replace(case, kernel=costs.kernel.name, block=block))
        for costs in (SPLIT_K, STREAM_K)
        for block in costs.shares
    ]
    costs, chosen = min(choices, key=lambda choice: cycles(*choice))
    return costs.kernel, chosen
