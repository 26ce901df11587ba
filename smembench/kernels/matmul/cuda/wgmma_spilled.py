"""wgmmaSpilled: wgmma with tiles of 256 columns, whose results do not fit one warp group's registers.

A larger tile is used more often per byte copied. But 128 × 256 results over 128 threads are 256 per thread, and a
thread has 255 registers: the compiler spills some of them to local memory around every product.
"""

from __future__ import annotations

from dataclasses import replace

from smembench.kernels.matmul.cuda import wgmma
from smembench.kernels.matmul.warp_groups import Tile
from smembench.kernels.program import NumbaKernel
from smembench.model.case import Case

TILE = Tile(rows=128, columns=256)


def build(case: Case) -> NumbaKernel:
    """With 256 columns."""
    return wgmma.program(case, TILE)


KERNEL = replace(
    wgmma.KERNEL,
    name="wgmmaSpilled",
    summary="wgmma with tiles of 256 columns: its results do not fit the registers",
    build=build,
    results=(TILE.columns, TILE.rows),
    tile_elements=TILE.tile_elements,
    dynamic_elements=TILE.tile_elements,
    ladder="a tile twice as wide, and registers spill",
)
