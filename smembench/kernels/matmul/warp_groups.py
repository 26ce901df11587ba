"""Tiles of the kernels with warp groups: how they lie in shared memory, are copied, multiplied, and follow each other.

A block's tile of C is computed from tiles of A and B in shared memory, 128 bytes deep along k, which the Tensor Memory
Accelerator (TMA) copies; beyond the edges of a matrix it stores zeros, and writes nothing. Several pairs of them,
stages, follow each other in shared memory. Each stage has all rows of A's tile, then all columns of B's. By rows, B's
tile is a sequence of pieces, each 128 (or 64) bytes of columns wide.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, Self

from smembench.kernels.intrinsics.bulk_copy import ROW_BYTES, expect_bytes, row_bytes_of, start_copy
from smembench.kernels.intrinsics.operands import depth_of
from smembench.kernels.intrinsics.warp_group import GROUP, ROWS, products
from smembench.kernels.numba_cuda import DeviceFunction, device, uint32
from smembench.kernels.program import TensorMap
from smembench.kernels.types import Array, Index, Map, Place
from smembench.model.case import BY_COLUMNS, BY_ROWS, Case
from smembench.model.formats import produced
from smembench.model.hardware import SM90_MULTIPROCESSORS
from smembench.model.problem import ITEMSIZE

BUFFERS = 2  # for results, per warp or per warp group, whichever fills them
BAND, LONG_BAND, NARROW_BAND = 16, 12, 4  # rows of tiles in a band, where k is long, and where all tiles run at once
LONG_K = 12288  # the least k that is long: at 16384 bands of twelve rows were faster, at 8192 those of sixteen


class Stages(NamedTuple):
    """A ring of stages in shared memory; each has a barrier that says when it is full, and one when it is empty."""

    tiles: Array
    full: Array
    empty: Array


class PipelineState(NamedTuple):
    """The place of a producer or consumer in the ring of stages: a stage, and the parity of its barriers' phase."""

    stage: Index
    phase: Index


class Member(NamedTuple):
    """A thread of a consumer warp group: the consumer's number, and the thread's in its warp group."""

    group: Index
    thread: Index


@dataclass(frozen=True, slots=True)
class Tile:
    """A block's tile of C: its sides, what is in shared memory, and of what matrices.

    Consumers multiply 64 rows at a time, of a tile of 256 rows twice. A tile may have fewer if its columns make up for
    them: what follows A's rows in shared memory is multiplied, too, and the results are not written.

    Attributes:
        stages: pairs of tiles of A and B.
        buffers: rows of 128 bytes after them, through which results go.
        swapped: 0, or the consumers of a tile whose operands are swapped, so that it is computed as its transpose:
            each has an equal part of the columns and all rows, which may be any multiple of 8 then.
        ping_pong: whether two warp groups alternate, each as the one consumer of a swapped tile: while one writes its
            results, the other multiplies.
        halved: whether a consumer multiplies the two halves of its columns by separate instructions.
        apart: distance, in rows of C, between neighbouring rows of the tile; it divides the rows of C.
        share_b: blocks of a cluster, one below the other, that share a tile of B.
        share_a: blocks of a cluster, one beside the other, that share a tile of A.
    """

    rows: int
    columns: int
    stages: int = 1
    buffers: int = 0
    swapped: int = 0
    ping_pong: bool = False
    halved: bool = False
    apart: int = 1
    share_b: int = 1
    share_a: int = 1
    dtype: str = "bfloat16"
    b_layout: str = BY_ROWS

    def of(self, case: Case) -> Self:
        """The tile of a case's matrices."""
        return replace(self, dtype=case.dtype, b_layout=case.b_layout)

    @property
    def cluster(self) -> int:
        """Blocks of a cluster that share tiles, of A or of B."""
        return self.share_b * self.share_a

    @property
    def sharing(self) -> str:
        """What the blocks of a cluster share, as part of a variant's name."""
        return f", {self.cluster} share {'B' if self.share_b > 1 else 'A'}" if self.cluster > 1 else ""

    @property
    def consumers(self) -> int:
        """Consumer warp groups: each computes 64 or 128 of the rows, or its part of the columns of a swapped tile."""
        return self.swapped or (2 if self.rows == 4 * ROWS else -(-self.rows // ROWS))

    @property
    def groups(self) -> int:
        """Warp groups of a block that multiply."""
        return 2 if self.ping_pong else self.consumers

    @property
    def parts(self) -> int:
        """Parts that a consumer multiplies by instructions of their own.

        Of a swapped tile 64 columns each, otherwise 64 rows or, if ``halved``, half of the columns.
        """
        side = self.columns if self.swapped else self.rows
        return 2 if self.halved else -(-side // (ROWS * self.consumers))

    @property
    def width(self) -> int:
        """Columns of an instruction's product, which are rows of a swapped tile."""
        return self.rows if self.swapped else self.columns // (1 + self.halved)

    @property
    def sums(self) -> int:
        """Accumulators of a consumer's thread."""
        return self.parts * self.width * ROWS // GROUP

    @property
    def depth(self) -> int:
        """Elements of a stage along k."""
        return depth_of(self.dtype)

    @property
    def a_elements(self) -> int:
        """Elements of A in a stage; those of B follow."""
        return self.rows * self.depth

    @property
    def elements(self) -> int:
        """Elements of a stage."""
        return (self.rows + self.columns) * self.depth

    @property
    def piece_bytes(self) -> int:
        """Bytes of a row of B per copy, where B is stored by rows: 128, or 64."""
        return row_bytes_of(self.columns, ITEMSIZE[self.dtype])

    @property
    def shared_bytes(self) -> int:
        """Bytes of all stages and buffers, the same for every case."""
        return (self.stages * (self.rows + self.columns) + self.buffers) * ROW_BYTES

    @property
    def stored_bytes(self) -> int:
        """Bytes of a buffer's rows; without swapped operands each warp has two buffers of 16 rows."""
        return ROW_BYTES if self.swapped else self.buffers // self.groups

    @property
    def after_stages(self) -> int:
        """The place of the buffers in shared memory, in elements of C."""
        return self.stages * self.elements * ITEMSIZE[self.dtype] // ITEMSIZE[produced(self.dtype)]

    def tile_elements(self, case: Case) -> int:
        """Elements of A's type in all stages and buffers."""
        return self.shared_bytes // ITEMSIZE[case.dtype]

    def grid(self, case: Case) -> tuple[int, int]:
        """Tiles across and down, or clusters of them."""
        rows, columns = self.share_b * self.rows, self.share_a * self.columns
        return -(-case.n // columns), self.apart * -(-(case.m // self.apart) // rows)

    def maps(self, case: Case) -> tuple[TensorMap, TensorMap]:
        """The tensor maps of A and B."""
        of_b = TensorMap(2, case.depth, case.n, case.n, self.depth, row_bytes=self.piece_bytes)
        if self.b_layout == BY_COLUMNS:
            of_b = TensorMap(2, case.n, case.depth, case.depth, self.columns)
        return TensorMap(1, case.m, case.depth, case.depth, self.rows, apart=self.apart), of_b


TILES = tuple(
    Tile(rows=128, columns=columns, stages=stages, buffers=2 * ROWS * BUFFERS)
    for columns, stages in {256: 4, 224: 4, 192: 4, 160: 5, 128: 5, 96: 6, 64: 7}.items()
)
"""Tiles of two consumers."""


def copies(tile: Tile) -> DeviceFunction:
    """``(stages, stage, a_map, b_map, place, k0, n)``: start the copies of a stage from k0 on, by one thread.

    Pieces wholly beyond B's ``n`` columns are not copied: copies of zeros are slow, and their results are not written.
    The loop over them has constant bounds, so that it and the loop over stages are unrolled.
    """
    a_elements, elements, columns, depth = tile.a_elements, tile.elements, tile.columns, tile.depth
    rows, by_rows = tile.rows, tile.b_layout == BY_ROWS
    piece = tile.piece_bytes // ITEMSIZE[tile.dtype] if by_rows else columns

    def copy(stages: Stages, stage: Index, a_map: Map, b_map: Map, place: Place, k0: Index, n: Index) -> None:
        at, width = stage * elements, min(uint32(columns), n - place.col) if piece < columns else uint32(columns)
        expect_bytes(stages.full, stage, (rows + (width + (piece - 1)) // piece * piece) * ROW_BYTES)
        start_copy(stages.tiles, at, a_map, k0, place.row, stages.full, stage)
        at_b = at + a_elements
        if by_rows:
            for number in range(columns // piece):
                column = uint32(number) * piece
                if column < width:
                    to, col = at_b + column * depth, place.col + column
                    start_copy(stages.tiles, to, b_map, col, k0, stages.full, stage)
        else:
            start_copy(stages.tiles, at_b, b_map, k0, place.col, stages.full, stage)

    return device(copy)


def products_of(tile: Tile) -> DeviceFunction:
    """``(accumulators, tiles, at, member)``: start a consumer's products of a stage's tiles, which begin at ``at``."""
    multiply = part_of_products(tile, 0)
    for part in range(1, tile.parts):
        multiply = _both(multiply, part_of_products(tile, part))
    return multiply


def _both(first: DeviceFunction, second: DeviceFunction) -> DeviceFunction:
    def multiply(accumulators: Array, tiles: Array, at: Index, member: Member) -> None:
        first(accumulators, tiles, at, member)
        second(accumulators, tiles, at, member)

    return device(multiply)


def part_of_products(tile: Tile, part: int, *, fresh: bool = False) -> DeviceFunction:
    """``products_of`` one of the tile's ``parts``; ``fresh`` ones overwrite the accumulators."""
    swapped, width, a_elements, own = tile.swapped > 0, tile.width, tile.a_elements, ROWS * tile.depth
    start = products(width, tile.dtype, tile.b_layout, part * (width // 2), swapped=swapped, fresh=fresh)
    count, row_part, column_part = (1, 0, part) if tile.halved else (tile.parts, part, 0)
    at_left, at_right = row_part * own, a_elements + column_part * width * tile.depth

    def multiply(accumulators: Array, tiles: Array, at: Index, member: Member) -> None:
        left = member.group * (count * own) + at_left
        if swapped:
            start(accumulators, tiles, at + a_elements + left, tiles, at, member.thread)
        else:
            start(accumulators, tiles, at + left, tiles, at + at_right, member.thread)

    return device(multiply)


def next_state(stages: int) -> DeviceFunction:
    """``(state)``: the state after this one, in a ring of ``stages`` stages."""

    def after(state: PipelineState) -> PipelineState:
        last = state.stage + 1 == stages
        return PipelineState(uint32(0) if last else state.stage + 1, 1 - state.phase if last else state.phase)

    return device(after)


def later_state(stages: int) -> DeviceFunction:
    """``(state, steps)``: the state so many steps after this one."""

    def after(state: PipelineState, steps: Index) -> PipelineState:
        rounds = (state.stage + steps) // stages
        return PipelineState(state.stage + steps - rounds * stages, (state.phase + rounds) % 2)

    return device(after)


def placing(tile: Tile) -> DeviceFunction:
    """``(number, tiles_down, tiles_across, k)``: where the tile of this number begins, in a persistent grid.

    Tiles are numbered down a band of rows of tiles, then to the right. Blocks that share one are numbered as one.
    """
    rows, columns, at_once = tile.rows, tile.columns, SM90_MULTIPROCESSORS // tile.cluster
    narrow, wide = NARROW_BAND // tile.share_b, BAND // tile.share_b
    long = LONG_BAND if tile.share_b == 1 else wide

    def place_of(number: Index, tiles_down: Index, tiles_across: Index, k: Index) -> Place:
        many = long if k >= LONG_K else wide
        band = uint32(narrow if tiles_down * tiles_across <= at_once else many)
        size = tiles_across * band
        bands = number // size
        above, inside = bands * band, number - bands * size  # one division for both, and below
        high = min(band, tiles_down - above)
        column = inside // high
        return Place((above + inside - column * high) * rows, column * columns)

    return device(place_of)
