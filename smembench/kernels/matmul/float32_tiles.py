"""The kernel and tile of a float32 product: the one with the fewest estimated cycles.

1. splitK and streamK: the multiply-adds of the multiprocessor with the most steps along k, at the fraction of the peak
   that a tile reaches, and the cycles in which it multiplies nothing. The numbers are fitted to times of 71 products on
   an H200, in all tiles and with several numbers of splitK's blocks.
2. Where a product is so small that a launch and the latency of the memory are most of its time, tiled or oneRow: their
   launches take fewer cycles, and they sum nothing in scratch memory. The numbers are fitted to 21 times on an H200, of
   18 of 40 products below 1.5 GFLOP: those in which the kernel took at most 1.6 times as long as the fastest.

The multiprocessors are those of an H100 or H200.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil, inf, prod
from typing import NamedTuple

from smembench.kernels.common.grids import block_of, ceil_div
from smembench.kernels.kernel import Kernel
from smembench.kernels.matmul import ragged
from smembench.kernels.matmul.cuda import one_row, split_k, stream_k, tiled
from smembench.kernels.matmul.partial_sums import EXCHANGE, Shares, part_cycles
from smembench.kernels.matmul.tiled_kernel import few_left
from smembench.kernels.matmul.tiling import Tiling
from smembench.kernels.program import NumbaKernel
from smembench.model.case import Block, Case
from smembench.model.hardware import SM90_MULTIPROCESSORS
from smembench.model.problem import ITEMSIZE

PEAK = 128
"""Multiply-adds per cycle of a multiprocessor."""


class Costs(NamedTuple):
    """What a kernel's launches cost.

    Attributes:
        kernel, tiling_of: the kernel, and the tile of a case with a block.
        launch: cycles per launch.
        of_peak: blocks, each with the fraction of the peak that as many as fit on a multiprocessor reach.
    """

    kernel: Kernel
    tiling_of: Callable[[Case], Tiling]
    launch: int
    of_peak: dict[Block, float]


SPLIT_K = Costs(
    split_k.KERNEL,
    split_k.tiling_of,
    5800,
    {Block(16, 16): 0.765, Block(16, 8): 0.732, Block(8, 16): 0.716, Block(8, 8): 0.662, Block(8, 4): 0.667},
)
STREAM_K = Costs(
    stream_k.KERNEL,
    stream_k.tiling_of,
    4100,
    {Block(16, 16): 0.792, Block(16, 8): 0.783, Block(8, 16): 0.756, Block(8, 8): 0.758},
)


class SmallCosts(NamedTuple):
    """What a kernel of small products costs: cycles per launch, and per steps along k.

    Attributes:
        kernel, block: the kernel, and its block.
        depth: the steps along k between two waits for the memory.
        launch: cycles per launch.
        waiting, each: cycles per wait, and more for each block of a multiprocessor.
    """

    kernel: Kernel
    block: Block
    depth: int
    launch: int
    waiting: int
    each: int

    def cycles(self, case: Case) -> float:
        """Estimated cycles of a launch on a case in this block."""
        program = self.kernel.build(case)
        assert isinstance(program, NumbaKernel)
        on_each = ceil_div(prod(program.grid), SM90_MULTIPROCESSORS)
        return self.launch + ceil_div(case.depth, self.depth) * (self.waiting + self.each * on_each)


SMALL = (
    SmallCosts(tiled.KERNEL, Block(16, 16), 16, 4400, 250, 270),
    SmallCosts(one_row.KERNEL, Block(32, 16), 512, 3450, 0, 2775),
)
PER_THREAD = 1.4 / 256
"""Fraction of the peak per thread of a multiprocessor, where it has too few to reach more."""
SHORT = 1.267
"""Factor of the cycles where a side is shorter than the tile, so that copies are not asynchronous."""
L2_BYTES, FROM_MEMORY = 50_000_000, 1.2
"""Bytes of the L2, and the factor of the cycles of splitK's tiles in four slices and more where A and B are larger:
the few bytes that they copy ahead do not hide the latency of the memory."""
BY_ELEMENTS = 7.3
"""Multiply-adds in whose time an element of B is copied that serves as many of them as a tile has rows: where rows of
B do not all begin at multiples of 16 bytes."""
CHUNK = 1300
"""Cycles per chunk of a few rows and columns beyond streamK's tiles, and per steps along k that are loaded at once."""


def cycles(costs: Costs, case: Case) -> float:
    """Estimated cycles of a launch on a case in one of the kernel's blocks; infinite for streamK with a short side."""
    program, tiling = costs.kernel.build(case), costs.tiling_of(case)
    assert isinstance(program, NumbaKernel)
    assert program.persistent_blocks is not None
    blocks = program.persistent_blocks(SM90_MULTIPROCESSORS)
    on_each = ceil_div(blocks, SM90_MULTIPROCESSORS)
    short = case.m < tiling.rows or case.n < tiling.columns or case.depth < tiling.depth
    if short and costs is STREAM_K:
        return inf
    results, most = tiling.rows * tiling.columns, PER_THREAD * tiling.threads * on_each
    step_cycles = tiling.depth * results / PEAK / min(costs.of_peak[block_of(case)], most)
    step_cycles *= (SHORT if short else 1) * (1 + BY_ELEMENTS / tiling.rows if tiling.widths(case)[1] == 1 else 1)
    if costs is SPLIT_K and tiling.slices > 2 and ITEMSIZE[case.dtype] * case.depth * (case.m + case.n) > L2_BYTES:
        step_cycles *= FROM_MEMORY
    shares = Shares(prod(program.grid), ceil_div(case.depth, tiling.depth), results, step_cycles)
    if costs is SPLIT_K:
        return costs.launch + shares.cycles(blocks, SM90_MULTIPROCESSORS)
    return costs.launch + _passed_on(shares, blocks) + _chunks(case, tiling, blocks)


def _passed_on(shares: Shares, blocks: int) -> float:
    """Cycles of streamK's blocks, which share all steps evenly and pass sums on, each to the next one of its tile."""
    on_each, tiles = ceil_div(blocks, SM90_MULTIPROCESSORS), shares.tiles / blocks
    multiplying = on_each * ceil(tiles * shares.steps) * shares.step_cycles
    exchanges = 0 if tiles.is_integer() else max(1 / tiles, 1)
    return multiplying + max(tiles, 1) * part_cycles(on_each * shares.results) + exchanges * EXCHANGE


def _chunks(case: Case, tiling: Tiling, blocks: int) -> float:
    """Cycles for the few rows and columns beyond whole tiles, if they are computed in chunks."""
    if not few_left(case, tiling):
        return 0
    chunks = ragged.remainder(tiling, tiles_follow=True).chunks(case.m, case.n)
    return CHUNK * ceil_div(chunks, blocks) * ceil_div(case.depth, ragged.AT_ONCE * tiling.threads // ragged.SIDE)


def choice_of(case: Case) -> tuple[Kernel, Case]:
    """The kernel for a case, and the case in its block."""
    choices = []
    for costs in (SPLIT_K, STREAM_K):
        for block in costs.of_peak:
            chosen = replace(case, kernel=costs.kernel.name, block=block)
            choices.append((cycles(costs, chosen), costs.kernel, chosen))
    for small in SMALL:
        chosen = replace(case, kernel=small.kernel.name, block=small.block)
        if small.kernel.refusal(chosen) is None:
            choices.append((small.cycles(chosen), small.kernel, chosen))
    return min(choices, key=lambda choice: choice[0])[1:]
