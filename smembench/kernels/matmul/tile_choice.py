"""Products that the kernels with warp groups take, their tiles, and the order in which blocks compute these.

Nothing here is compiled: the host asks for a tile by its cycles, and a persistent grid for as many blocks as it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from math import gcd, prod
from typing import NamedTuple

from smembench.kernels.common.grids import ceil_div
from smembench.kernels.intrinsics.bulk_copy import ROW_BYTES
from smembench.kernels.intrinsics.warp_group import ROWS
from smembench.kernels.matmul.warp_groups import Tile, placing
from smembench.model.case import BY_ROWS, Case
from smembench.model.formats import HALVES, produced
from smembench.model.hardware import SM90_MULTIPROCESSORS
from smembench.model.problem import ITEMSIZE

ALIGNED_BYTES = 16
"""A row of a matrix with a tensor map begins at a multiple of this."""
LINE_CYCLES = 2.5
"""Cycles of a multiprocessor per line of 128 bytes that it copies; fitted to times of rows that begin within lines."""
SLOWDOWN = 1.05
"""By this factor a swapped tile is slower than counted, and one with fewer than four stages; fitted to times, too."""
MEMORY_BYTES, IN_FLIGHT = 2500, 500_000
"""Bytes per cycle from the memory of an H200 at best, and bytes in flight with which half of that comes; fitted to
times, as the next three."""
WAVE_CYCLES = 4000
"""From the launch to the first product and from the last to the end, per wave."""
EXCHANGE_CYCLES, EXCHANGE_BYTES = 1000, 16
"""Cycles of an exchange of sums, and bytes per cycle that a block sends."""


def step_cycles(tile: Tile) -> int:
    """Counted cycles of a step along k.

    The products of 32 results take a cycle. In lines of 128 bytes, one per cycle, shared memory gets the rows of A and
    the columns of B once, and each instruction of a consumer reads 64 of those rows and its part of the columns, or of
    a swapped tile 64 of the columns and all rows.
    """
    width = tile.rows if tile.swapped else tile.columns // tile.column_parts
    lines = tile.rows + tile.columns + tile.consumers * tile.column_parts * (ROWS + width)
    return max(tile.rows * tile.columns // 32, lines)


def quickest(case: Case, tiles: Iterable[Tile]) -> Tile:
    """Of a case's tiles the one with the fewest cycles."""
    return min(tiles, key=lambda tile: ceil_div(prod(tile.grid(case)), SM90_MULTIPROCESSORS) * step_cycles(tile))


def cycles_in_clusters(tile: Tile, case: Case, cluster: int) -> float:
    """Cycles of a multiprocessor's tiles per step along k: ``step_cycles``, with factors fitted to times.

    A block copies its rows of A and its part of B's. Where those of a tile begin at multiples of fewer than 128 bytes
    most of them, 128 bytes each, lie in two lines.
    """
    of_b = case.n if case.b_layout == BY_ROWS else case.depth
    rows = ((tile.rows, tile.apart * case.depth), (tile.columns // cluster, of_b))
    lines = sum(count * (2 - gcd(ROW_BYTES, ITEMSIZE[case.dtype] * stride) / ROW_BYTES) for count, stride in rows)
    waves = ceil_div(prod(replace(tile, rows=cluster * tile.rows).grid(case)), SM90_MULTIPROCESSORS // cluster)
    more = SLOWDOWN ** (tile.swapped + (tile.stages < 4))
    return waves * more * max(step_cycles(tile), LINE_CYCLES * lines)


def read_cycles(case: Case, in_flight: int) -> float:
    """Cycles in which the memory delivers A and B, if the stages of all blocks have room for so many bytes of B."""
    return (case.m + case.n) * case.depth * ITEMSIZE[case.dtype] / MEMORY_BYTES * (1 + IN_FLIGHT / in_flight)


class Form(NamedTuple):
    """A tile, the blocks that split its k, and the bytes of sums that a block sends to the others, at most."""

    tile: Tile
    blocks: int
    sent: int

    def waves(self, case: Case) -> int:
        """Rounds in which the multiprocessors take all tiles."""
        return ceil_div(prod(self.tile.grid(case)) * self.blocks, SM90_MULTIPROCESSORS)

    def cycles(self, case: Case) -> float:
        """Estimated cycles: of the memory or of a multiprocessor, whichever has more, and what each wave adds.

        A multiprocessor takes as long as its lines of 128 bytes, or its products.
        """
        tile, waves = self.tile, self.waves(case)
        steps = ceil_div(ceil_div(case.depth, tile.depth), self.blocks)
        busy = waves * steps * max(step_cycles(tile), LINE_CYCLES * (tile.rows + tile.columns))
        blocks = min(prod(tile.grid(case)) * self.blocks, SM90_MULTIPROCESSORS)
        read = read_cycles(case, blocks * tile.stages * tile.columns * ROW_BYTES)
        exchange = EXCHANGE_CYCLES + self.sent / EXCHANGE_BYTES if self.blocks > 1 else 0
        return max(busy, read) + waves * (WAVE_CYCLES + exchange)


def fewest(tiles: int, most: int) -> int:
    """The fewest blocks with which the tiles take as few waves as with ``most`` blocks."""
    return ceil_div(tiles, ceil_div(tiles, most))


def in_order(tile: Tile, case: Case, cluster: int = 1) -> Callable[[int], tuple[int, int]]:
    """``tile_of(number)``: which tile of a case, across and down, has a number in the order of ``placing``."""
    place_of, (tiles_across, tiles_down) = placing(tile.of(case), cluster), tile.grid(case)

    def tile_of(number: int) -> tuple[int, int]:
        place = place_of(number, tiles_down, tiles_across, case.k)
        return int(place.col) // tile.columns, int(place.row) // tile.rows

    return tile_of


def shared_elements(tile_of: Callable[[Case], Tile]) -> Callable[[Case], int]:
    """``tile_elements`` of a case's tile, all in dynamic shared memory, as a function of the case."""
    return lambda case: tile_of(case).tile_elements(case)


def unsupported(case: Case, *, stored: bool = False) -> str | None:
    """The reason that the TMA cannot copy A or B, or that rows of C are odd; None if a case suits.

    With ``stored`` (the TMA writes the results) rows of C must be aligned as well.
    """
    aligned = ALIGNED_BYTES // ITEMSIZE[case.dtype]
    if case.b_layout == BY_ROWS and case.dtype not in HALVES:
        return f"{case.kernel} takes {case.dtype} only with B by columns, as wgmma reads it"
    mapped = (case.depth, case.n) if case.b_layout == BY_ROWS else (case.depth,)
    if odd := next((side for side in mapped if side % aligned), None):
        return f"{case.kernel} copies tiles by the TMA, which needs rows of a multiple of {aligned} elements, not {odd}"
    if stored and case.n % (aligned := ALIGNED_BYTES // ITEMSIZE[produced(case.dtype)]):
        return f"{case.kernel} writes tiles by the TMA, which needs an n that is a multiple of {aligned}, not {case.n}"
    return f"{case.kernel} writes results in pairs, which needs an even n, not {case.n}" if case.n % 2 else None
