"""Products that the kernels with warp groups take, their tiles, and the order in which blocks compute these.

Nothing here is compiled: the host asks for a tile by its cycles, and a persistent grid for as many blocks as it needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from math import gcd, prod
from typing import NamedTuple

from smembench.kernels.common.grids import ceil_div
from smembench.kernels.intrinsics.bulk_copy import ROW_BYTES
from smembench.kernels.intrinsics.warp_group import GROUP, ROWS
from smembench.kernels.matmul.warp_groups import BUFFERS, TILES, Tile, placing
from smembench.kernels.numba_cuda import SIMULATED
from smembench.model.case import BY_COLUMNS, BY_ROWS, Case
from smembench.model.formats import HALVES, produced
from smembench.model.hardware import SM90_MULTIPROCESSORS
from smembench.model.problem import ITEMSIZE

ALIGNED_BYTES = 16
"""A row of a matrix with a tensor map begins at a multiple of this."""
AT_ONCE = {1: SM90_MULTIPROCESSORS, 2: SM90_MULTIPROCESSORS // 2, 3: 39, 4: 30}
"""Clusters that run at once, by their blocks; of three and four on an H200, as the driver counts them."""
COPY_CYCLES, ALL_COPY_CYCLES = 1.68, 2.6
"""Cycles per row of up to 128 bytes that a multiprocessor copies, alone and while all copy; fitted to times of an H200,
as all that follow."""
TWO_LINES = 1.85
"""Factor of COPY_CYCLES for rows that begin within a line of 128 bytes, and so touch two."""
ROW_COST, WITHIN_SECTOR = {128: 1.0, 64: 1.06, 32: 1.2}, 1.79
"""Factors of ALL_COPY_CYCLES: for rows that begin at multiples of 128, 64 or 32 bytes, and within a sector."""
HALF_ROW = 0.62
"""Factor of both for rows of 64 bytes that begin at multiples of it; others cost as much as whole ones."""
ZERO_ROW = 4
"""Factor of both for rows of zeros, below A's last row."""
WRITTEN, BY_THREADS = 11, 4
"""Results per cycle that a multiprocessor writes by the TMA, while products wait and copies go on, and that the threads
of fewRowsClustered write."""
OVERLAPPED, BY_ONE_GROUP = 0.915, 1.08
"""Factors of the products of wgmmaOverlapped, and of those of a single warp group that also fills buffers."""
SHARED_LINES, WIDE_LINES = 0.94, 0.86
"""Factors of the lines that shared memory reads and writes for swapped tiles of two or three warp groups, and for
ping-pong tiles of more than 128 columns."""
FEW_STAGES, UNBUFFERED = 1.07, 1.05
"""Factors of the products of tiles with fewer than four stages, and of those without buffers for results."""
WAVE_CYCLES = 710
"""Cycles that each wave of tiles after the first adds."""
APART_CYCLES = 570
"""Cycles that a launch takes longer in a tile whose rows lie apart."""
ALONE_CYCLES, CLUSTER_CYCLES = 850, 2300
"""Cycles that a launch of wgmmaClustered takes longer than one of the others, without clusters and with them."""
MEETING_CYCLES, SPLIT_CYCLES, EXCHANGE_BYTES = 750, 500, 11
"""Cycles that clusters add to a wave of fewRowsClustered where their blocks share B, and where they split k; bytes of
sums that a block sends per cycle."""
MEMORY_BYTES, IN_FLIGHT = 2750, 500_000
"""Bytes per cycle from the memory of an H200 at best, and bytes in flight with which half of that comes."""
REREAD = 0.14
"""Share of B that is read from memory again where tiles that do not share it lie below each other."""

SHARED_BYTES = 226 * 1024
"""Of a block on capability 9.0, but for 1 KiB of barriers."""
LEAST_ROWS = 24
"""Of a buffer: with fewer, results wait for the TMA to read the buffer before, which took 0.3 to 0.7 µs per tile."""


def _swapped(rows: int, columns: int, consumers: int, *, ping_pong: bool = False) -> Tile:
    """A tile of the most stages, and then with the fewest buffers to fill, of which each takes 64 columns of results.

    An odd number of them costs as much as one more: the next tile begins with the buffer that this one ended with.
    """
    tile, choices = Tile(rows, columns, swapped=consumers, ping_pong=ping_pong), []
    for height in range(LEAST_ROWS, rows + 1, 8):
        buffers, filled = tile.groups * BUFFERS * height, ceil_div(rows, height) * tile.parts
        choices.append(
            ((SHARED_BYTES // ROW_BYTES - buffers) // (rows + columns), -filled - filled % BUFFERS, -buffers)
        )
    stages, _, buffers = max(choices)
    return replace(tile, stages=stages, buffers=-buffers)


def _unswapped(rows: int, columns: int) -> Tile:
    """A tile of the most stages; buffers have 64 bytes of each row, so that four stages of 256 × 152 leave room."""
    tile = Tile(rows, columns)
    buffers = tile.groups * ROW_BYTES // 2
    return replace(tile, stages=(SHARED_BYTES // ROW_BYTES - buffers) // (rows + columns), buffers=buffers)


SWAPPED = tuple(
    _swapped(rows, columns, consumers)
    for columns, consumers, least, most in ((64, 1, 64, 256), (128, 2, 64, 256), (192, 3, 64, 192), (256, 2, 80, 192))
    for rows in range(least, most + 1, 8)
)
PING_PONG = tuple(
    _swapped(rows, columns, 1, ping_pong=True)
    for columns, most in ((128, 176), (192, 120), (256, 88))
    for rows in range(64, most + 1, 8)
)
UNSWAPPED = tuple(
    _unswapped(rows, columns)
    for rows, most, step in ((128, 248, 32), (192, 184, 64), (256, 176, 64))
    for columns in range(72, most + 1, 8)
    if columns % step
)
"""Multiples of ``step`` are among ``TILES`` or ``SWAPPED``."""
SHARING = ((1, 1),) if SIMULATED else ((1, 1), (2, 1), (4, 1), (1, 2), (1, 4))
"""Blocks of a cluster that share a tile of B, and that share one of A; the simulator runs one after another."""
SHARED = tuple(
    replace(tile, share_b=share_b, share_a=share_a)
    for share_b, share_a in SHARING
    for tile in (*TILES, *SWAPPED, *PING_PONG, *UNSWAPPED)
)


def step_cycles(tile: Tile) -> float:
    """Estimated cycles of a step along k.

    The products of 32 results take a cycle. In lines of 128 bytes, one per cycle, shared memory gets the rows of A and
    the columns of B once. Each instruction of a consumer reads 64 of those rows and its part of the columns, or of a
    swapped tile 64 of the columns and all rows.
    """
    factor = 1.0
    if tile.swapped and tile.groups > 1:
        factor = WIDE_LINES if tile.ping_pong and tile.parts > 2 else SHARED_LINES
    lines = tile.rows + tile.columns + tile.consumers * tile.parts * (ROWS + tile.width)
    one_group = BY_ONE_GROUP if tile.groups == 1 and tile.buffers else 1
    return one_group * max(tile.consumers * GROUP * tile.sums // 32, factor * lines)


def cycles(tile: Tile, case: Case, split: int = 1, *, overlapped: bool = False) -> float:
    """Estimated cycles of a product: of a multiprocessor, the L2 or the memory, whichever has most.

    A multiprocessor takes as long as the products or the copies of its tiles; the L2 delivers the copies of all.
    Reading B again and further waves are added.

    ``split``: blocks of a cluster that share the tile's steps. ``overlapped``: whether products go on while results are
    written.
    """
    itemsize, by_rows, blocks = ITEMSIZE[case.dtype], case.b_layout == BY_ROWS, tile.cluster * split
    across, down = tile.grid(case)
    clusters = across * down
    steps, waves = _steps(case.depth, tile.depth, tile.apart, split), ceil_div(clusters, AT_ONCE[blocks])
    row_bytes = tile.piece_bytes if by_rows else ROW_BYTES
    zeros = max(0, tile.rows - case.m // tile.apart)  # rows below C's
    # Rows that a block copies, of A and of B, and the factors of their cycles.
    rows_of_a = (tile.rows - zeros + ZERO_ROW * zeros) / tile.share_a
    rows_of_b = tile.columns * ROW_BYTES / row_bytes / tile.share_b
    own_a, all_a = _row_costs(itemsize * tile.apart * case.depth)
    own_b, all_b = _row_costs(itemsize * (case.n if by_rows else case.depth), row_bytes)
    slowdown = FEW_STAGES if tile.stages < 4 else 1 if tile.buffers else UNBUFFERED
    products = steps * slowdown * step_cycles(tile) * (OVERLAPPED if overlapped else 1)
    copies, writing = COPY_CYCLES * steps * (rows_of_a * own_a + rows_of_b * own_b), tile.rows * tile.columns / WRITTEN
    if overlapped or tile.ping_pong:  # of two warp groups one writes while the other multiplies, but for the last tile
        each = max(products, copies, (products + writing) / 2)
        own = (waves - 1) * each + max(products, copies) + writing
    else:
        own = waves * max(products + writing, copies)
    all_copies = clusters * blocks * steps * (rows_of_a * all_a + rows_of_b * all_b)
    of_all = ALL_COPY_CYCLES * all_copies / SM90_MULTIPROCESSORS
    # Of the stages of all blocks at once, those of A are alike beside each other, those of B below each other.
    across_at_once = ceil_div(min(clusters, AT_ONCE[blocks]), down) * split * tile.share_a
    rows = min(min(down, AT_ONCE[blocks]) * tile.rows, case.m)
    in_flight = (rows + across_at_once * tile.columns) * tile.stages * ROW_BYTES
    bytes_of_a, bytes_of_b = itemsize * case.depth * case.m, itemsize * case.depth * case.n
    of_memory = (bytes_of_a + bytes_of_b) / MEMORY_BYTES * (1 + IN_FLIGHT / in_flight)
    added = REREAD * (down > 1) * bytes_of_b / MEMORY_BYTES + WAVE_CYCLES * (waves - 1)
    # The sum decides between tiles of the same maximum.
    return max(own, of_all, of_memory) + (own + of_all + of_memory) / 100 + added


@cache
def _steps(length: int, depth: int, apart: int, split: int) -> float:
    """Mean steps along k per tile; of rows that lie apart they begin with the line in which a tile's first row does."""
    steps = sum(ceil_div(first * length % depth + length, depth) for first in range(apart))
    return ceil_div(steps, split) / apart


def _row_costs(apart: int, length: int = ROW_BYTES) -> tuple[float, float]:
    """Factors of COPY_CYCLES and ALL_COPY_CYCLES for rows of ``length`` bytes that are ``apart`` bytes apart."""
    if length < ROW_BYTES:
        cost = 1.0 if apart % length else HALF_ROW
        return cost, cost
    begin = gcd(ROW_BYTES, apart)
    return 1.0 if begin == ROW_BYTES else TWO_LINES, ROW_COST.get(begin, WITHIN_SECTOR)


def launch_cycles(tile: Tile, case: Case) -> float:
    """Estimated cycles of a launch of wgmmaClustered."""
    launch = CLUSTER_CYCLES if tile.cluster > 1 else ALONE_CYCLES
    return cycles(tile, case) + launch + (APART_CYCLES if tile.apart > 1 else 0)


def quickest(case: Case, tiles: tuple[Tile, ...]) -> Tile:
    """Of some tiles for a case the one with the fewest cycles.

    Rows that lie apart must divide those of C, and are tried where rows of A begin within lines.
    """
    of_case = _of(tiles, case.dtype, case.b_layout)
    fitting = (tile for tile in of_case if tile.apart == 1 or (case.depth % tile.depth and case.m % tile.apart == 0))
    return min(fitting, key=lambda tile: launch_cycles(tile, case))


@cache
def _of(tiles: tuple[Tile, ...], dtype: str, b_layout: str) -> tuple[Tile, ...]:
    """Those of these tiles that suit a type and a layout: by rows B is copied in pieces of 32 or 64 columns."""
    suiting = (tile for tile in tiles if b_layout == BY_COLUMNS or tile.columns % 32 == 0)
    return tuple(replace(tile, dtype=dtype, b_layout=b_layout) for tile in suiting)


class Form(NamedTuple):
    """A tile, the blocks that split its k, and the bytes of sums that a block sends to the others, at most."""

    tile: Tile
    split: int = 1
    sent: int = 0

    @property
    def cluster(self) -> int:
        """Blocks of a cluster, which split k or share B."""
        return self.split * self.tile.cluster

    def waves(self, case: Case) -> int:
        """Rounds in which the multiprocessors take all tiles."""
        return ceil_div(prod(self.tile.grid(case)), AT_ONCE[self.cluster])

    def cycles(self, case: Case) -> float:
        """Estimated cycles, with those at the end of each wave.

        Then the blocks exchange sums, and threads write results without buffers.
        """
        added = SPLIT_CYCLES + self.sent / EXCHANGE_BYTES if self.split > 1 else 0
        added += MEETING_CYCLES if self.tile.share_b > 1 else 0
        added += min(self.tile.rows, case.m) * self.tile.columns / self.split / BY_THREADS
        return cycles(self.tile, case, self.split) + self.waves(case) * added


def fewest(tiles: int, most: int) -> int:
    """The fewest blocks with which the tiles take as few waves as with ``most`` blocks."""
    return ceil_div(tiles, ceil_div(tiles, most))


def clusters_at_once(multiprocessors: int, blocks: int) -> int:
    """Clusters of ``blocks`` blocks, each of which takes a multiprocessor, that run at once."""
    return max(1, multiprocessors * AT_ONCE[blocks] // SM90_MULTIPROCESSORS)


def in_order(tile: Tile, case: Case) -> Callable[[int], tuple[int, int]]:
    """``tile_of(number)``: which tile of a case, across and down, has a number in the order of ``placing``."""
    place_of, (tiles_across, tiles_down) = placing(replace(tile.of(case), rows=1, columns=1)), tile.grid(case)

    def tile_of(number: int) -> tuple[int, int]:
        place = place_of(number, tiles_down, tiles_across, case.k)
        return int(place.col), int(place.row)

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
