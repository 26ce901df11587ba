"""What the kernels with warp groups share: their tiles, tensor maps, products and epilogue.

A block's tile of C is computed from tiles of A and B in shared memory, 128 bytes deep along k, which the Tensor Memory
Accelerator copies. Several pairs of them, stages, follow each other in shared memory. Each stage has all rows of A's
tile, then all columns of B's. By rows, B's tile is a sequence of pieces, each 128 (or 64) bytes of columns wide.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

from smembench.kernels.common.grids import ceil_div
from smembench.kernels.intrinsics.bulk_copy import ROW_BYTES, expect_bytes, row_bytes_of, start_copy
from smembench.kernels.intrinsics.bulk_store import finish_stores, publish_tile
from smembench.kernels.intrinsics.halves import store_pair
from smembench.kernels.intrinsics.operands import depth_of
from smembench.kernels.intrinsics.warp_group import GROUP, ROWS, meet_group, products
from smembench.kernels.numba_cuda import DeviceFunction, device, uint32
from smembench.kernels.program import TensorMap
from smembench.kernels.types import Array, Index, Matrix, Place
from smembench.model.case import BY_COLUMNS, BY_ROWS, Case
from smembench.model.formats import HALVES, produced
from smembench.model.problem import ITEMSIZE

BUFFERS = 2
"""Buffers for results per warp, or per warp group, whichever fills them."""
ALIGNED_BYTES = 16
"""A row of a matrix with a tensor map begins at a multiple of this."""


class Maps(NamedTuple):
    """The tensor maps of A and B."""

    a: Index
    b: Index


class Stages(NamedTuple):
    """A ring of stages in shared memory; each has a barrier that says when it is full, and one when it is empty."""

    tiles: Array
    full: Array
    empty: Array


class Member(NamedTuple):
    """A thread of a consumer warp group: the consumer's number, and the thread's in its warp group."""

    group: Index
    thread: Index


@dataclass(frozen=True, slots=True)
class Tile:
    """A block's tile of C: its sides, what is in shared memory, and of what matrices.

    Attributes:
        stages: pairs of tiles of A and B.
        buffers: rows of 128 bytes after them, through which results go.
        swapped: whether the operands are swapped, so that it is computed as its transpose: each warp group that
            multiplies has 128 of the columns, and all rows, which may be any multiple of 16 then.
        halved: whether a consumer multiplies the two halves of its columns by separate instructions.
        apart: distance, in rows of C, between neighbouring rows of the tile; it divides the rows of C.
    """

    rows: int
    columns: int
    stages: int = 1
    buffers: int = 0
    swapped: bool = False
    halved: bool = False
    apart: int = 1
    dtype: str = "bfloat16"
    b_layout: str = BY_ROWS

    def of(self, case: Case) -> Self:
        """The tile of a case's matrices."""
        return replace(self, dtype=case.dtype, b_layout=case.b_layout)

    @property
    def consumers(self) -> int:
        """Consumer warp groups: each computes 64 of the rows, or 128 of the columns of a swapped tile."""
        return self.columns // (2 * ROWS) if self.swapped else self.rows // ROWS

    @property
    def column_parts(self) -> int:
        """Into how many ranges of columns a consumer divides its tile, each with wgmma instructions of its own: 1 or 2.

        With more than two consumers the results of all columns do not fit the registers that a thread has at launch, as
        an instruction's have to.
        """
        return 2 if self.swapped or self.halved or self.consumers > 2 else 1

    @property
    def sums(self) -> int:
        """Accumulators of a consumer's thread."""
        return self.rows * self.columns // (self.consumers * GROUP)

    @property
    def threads(self) -> int:
        """Threads of the block: those of the producer's warp group and of the consumers."""
        return (1 + self.consumers) * GROUP

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
    def result_bytes(self) -> int:
        """Bytes of a row of C that are written at a time: 128, or 64."""
        return row_bytes_of(self.columns, ITEMSIZE[produced(self.dtype)])

    @property
    def shared_bytes(self) -> int:
        """Bytes of all stages and buffers, the same for every case."""
        return (self.stages * (self.rows + self.columns) + self.buffers) * ROW_BYTES

    @property
    def after_stages(self) -> int:
        """Where buffers begin in shared memory, in elements of C."""
        return self.stages * self.elements * ITEMSIZE[self.dtype] // ITEMSIZE[produced(self.dtype)]

    def tile_elements(self, case: Case) -> int:
        """Elements of A's type in all stages and buffers."""
        return self.shared_bytes // ITEMSIZE[case.dtype]

    def grid(self, case: Case) -> tuple[int, int]:
        """Tiles across and down, a block for each."""
        return ceil_div(case.n, self.columns), self.apart * ceil_div(case.m // self.apart, self.rows)

    def maps(self, case: Case) -> tuple[TensorMap, TensorMap]:
        """The tensor maps of A and B."""
        of_b = TensorMap(2, case.depth, case.n, case.n, self.depth, row_bytes=self.piece_bytes)
        if self.b_layout == BY_COLUMNS:
            of_b = TensorMap(2, case.n, case.depth, case.depth, self.columns)
        return TensorMap(1, case.m, case.depth, case.depth, self.rows, apart=self.apart), of_b

    def copies(self) -> DeviceFunction:
        """``(stages, stage, maps, place, k0)``: start the copies of a stage from k0 on, by one thread."""
        a_elements, elements, columns, depth = self.a_elements, self.elements, self.columns, self.depth
        itemsize = ITEMSIZE[self.dtype]
        size, piece = elements * itemsize, self.piece_bytes // itemsize

        def by_rows(stages: Stages, stage: Index, at: Index, b_map: Index, col: Index, k0: Index) -> None:
            for column in range(0, columns, piece):
                to = at + uint32(column) * depth
                start_copy(stages.tiles, to, b_map, col + uint32(column), k0, stages.full, stage)

        def by_columns(stages: Stages, stage: Index, at: Index, b_map: Index, col: Index, k0: Index) -> None:
            start_copy(stages.tiles, at, b_map, k0, col, stages.full, stage)

        copy_b = device(by_rows if self.b_layout == BY_ROWS else by_columns)

        def copy(stages: Stages, stage: Index, maps: Maps, place: Place, k0: Index) -> None:
            at = stage * elements
            expect_bytes(stages.full, stage, size)
            start_copy(stages.tiles, at, maps.a, k0, place.row, stages.full, stage)
            copy_b(stages, stage, at + a_elements, maps.b, place.col, k0)

        return device(copy)


def products_of(tile: Tile) -> DeviceFunction:
    """``(accumulators, tiles, at, member)``: start a consumer's products of a stage's tiles, which begin at ``at``."""
    left = part_of_products(tile, 0)
    if tile.column_parts == 1:
        return left
    right = part_of_products(tile, 1)

    def both_parts(accumulators: Array, tiles: Array, at: Index, member: Member) -> None:
        left(accumulators, tiles, at, member)
        right(accumulators, tiles, at, member)

    return device(both_parts)


def part_of_products(tile: Tile, part: int, *, fresh: bool = False) -> DeviceFunction:
    """As ``products_of``, of one of the tile's ``column_parts``.

    If they are ``fresh`` the accumulators are overwritten, not added to.
    """
    own, count = ROWS * tile.depth, tile.column_parts
    if tile.swapped:
        rows, a_elements = tile.rows, tile.a_elements
        of_rows = products(rows, tile.dtype, tile.b_layout, part * (rows // 2), swapped=True, fresh=fresh)

        def swapped(accumulators: Array, tiles: Array, at: Index, member: Member) -> None:
            at_b = at + a_elements + (member.group * count + part) * own
            of_rows(accumulators, tiles, at_b, tiles, at, member.thread)

        return device(swapped)
    columns = tile.columns // count
    of_columns = products(columns, tile.dtype, tile.b_layout, part * (columns // 2), fresh=fresh)
    at_b = tile.a_elements + part * columns * tile.depth

    def straight(accumulators: Array, tiles: Array, at: Index, member: Member) -> None:
        of_columns(accumulators, tiles, at + member.group * own, tiles, at + at_b, member.thread)

    return device(straight)


def epilogue(columns: int, dtype: str) -> DeviceFunction:
    """``(C, accumulators, place, thread)``: write a warp group's 64 rows of ``columns`` columns to C at ``place``.

    ``dtype`` is that of A and B.
    """
    store, groups = store_pair(produced(dtype)), columns // 8

    def write(C: Matrix, accumulators: Array, place: Place, thread: Index) -> None:
        row = place.row + thread // 32 * 16 + thread % 32 // 4
        col = place.col + thread % 4 * 2
        for group in range(groups):
            for half in range(2):
                if row + uint32(half * 8) < C.rows and col + uint32(group * 8) < C.columns:
                    at = (row + uint32(half * 8)) * C.stride + col + uint32(group * 8)
                    store(C.elements, at, accumulators[group * 4 + half * 2], accumulators[group * 4 + half * 2 + 1])

    return device(write)


@device
def hand_over(member: Member) -> None:
    """After a warp group has filled a buffer: let one of its threads write it, and all fill the other buffer.

    The barrier orders the stores before the write, and comes after the write before has read the other buffer.
    """
    publish_tile()
    if member.thread == 0:
        finish_stores(0)
    meet_group(member.group + 1)


def shared_elements(tile_of: Callable[[Case], Tile]) -> Callable[[Case], int]:
    """``tile_elements`` of a case's tile, all in dynamic shared memory, as a function of the case."""
    return lambda case: tile_of(case).tile_elements(case)


def unsupported(case: Case, *, stored: bool = False) -> str | None:
    """Why the TMA cannot copy rows of A, or rows or columns of B, or why rows of C are odd; None if a case suits.

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
