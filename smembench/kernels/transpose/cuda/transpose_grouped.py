"""transposeGrouped: transposeVectorized with its blocks in groups that are near in memory on both sides.

Blocks start row after row of tiles, so that those which run together read a few whole rows of the input but write a
narrow strip down the whole output, a piece of 256 bytes in each of its rows. Here they go through 16 rows of tiles at a
time, column by column: those which run together lie in a square, and their pieces side by side make longer ones of
several kilobytes on both sides. What it relieves: the memory, of opening as many pages, and the translation of
addresses, of as many entries. That blocks start in the order of their index is how GPUs behave, not what CUDA promises;
the result does not depend on it. Where rows are no multiples of 16 bytes there is no difference to
transposeVectorized.

Predicted: at most what transposeVectorized's prototype lacked of cudaMemcpy on an H200 (2026-11-20): 1.08 times at
16384², where its strip crossed the whole output of 1 GiB, and 1.01 at 4096².
"""

from __future__ import annotations

from functools import cache
from typing import Any

from smembench.axes import Block
from smembench.case import Case
from smembench.cuda_api import device, uint32
from smembench.kernels.registry import Kernel, Program
from smembench.kernels.transpose.cuda.transpose_vectorized import Order, tile_elements, vectorized
from smembench.kernels.transpose.tiles import vectors_fit
from smembench.problems.transpose import TRANSPOSE

GROUP = 16
"""Rows of tiles in a group: of the order of the square root of the blocks that a large GPU runs at a time."""

OTHERS = (8, 32)
"""Further heights of a group, to choose from by measurement."""


@cache
def in_groups(group: int) -> Order:
    """The tile (across, down) of a block of the grid: ``group`` rows together, column by column, then the next."""

    def tile_of(across: Any, down: Any, columns: Any, rows: Any) -> tuple[Any, Any]:
        block = uint32(uint32(down * columns) + across)
        in_group = uint32(uint32(group) * columns)
        above = uint32(uint32(block // in_group) * uint32(group))
        height = uint32(rows - above)
        if height > uint32(group):
            height = uint32(group)
        place = uint32(block % in_group)
        return uint32(place // height), uint32(above + uint32(place % height))

    return device(tile_of)


def _kernel(group: int, *, ladder: str = "") -> Kernel:
    """The kernel with groups of one height, of which the first is the ladder's."""

    def build(case: Case) -> Program:
        """Program for ``(out, inp, nx, ny)``."""
        return vectorized(case, order=in_groups(group))

    return Kernel(
        problem="transpose",
        name="transposeGrouped" if group == GROUP else f"transposeGrouped{group}",
        kind="cuda",
        step=130,
        summary=f"transposeVectorized with blocks in groups of {group} rows, near in memory on both sides",
        build=build,
        computes=TRANSPOSE,
        results=(8, 8),
        default_blocks=(Block(16, 32), Block(16, 16)),
        pad=False,
        tile_elements=tile_elements,
        refuse=vectors_fit,
        standard=False,
        ladder=ladder,
    )


KERNELS = (_kernel(GROUP, ladder="blocks in groups: near in memory on both sides"), *map(_kernel, OTHERS))
