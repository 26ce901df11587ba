"""Copies of a square tile by 128-bit accesses, as device functions: each moves a thread's share of it.

Vector v of row r is stored as vector v XOR (r / vector width modulo 8) of that row. Elements beyond the edge of the
matrix are neither read nor written. Each function is cached by its arguments, since Numba keeps every function it
meets.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple, TypeAlias

from smembench.kernels.intrinsics.vector import ALIGNMENT, load_vector, vector_width
from smembench.kernels.numba_cuda import cuda, device, number
from smembench.kernels.transpose.tile_geometry import ACROSS, WARP_ROWS
from smembench.kernels.types import Array, Index, Vector
from smembench.model.case import Block
from smembench.model.hardware import WARP


class Sides(NamedTuple):
    """Columns and rows of the input."""

    nx: Index
    ny: Index


class Corner(NamedTuple):
    """Column and row of the input at which a tile begins."""

    x: Index
    y: Index


class Share(NamedTuple):
    """A thread's share of a tile: the vectors of one column, in row ``top`` and every ``block.y`` rows below it."""

    vector: Index
    top: Index


CopyVector: TypeAlias = Callable[[Array, Index, Array, Index], None]
"""``(target, place, source, index)``: one vector, as copy_vector."""

StoreVector: TypeAlias = Callable[[Array, Index, Vector], None]
"""``(array, index, values)``: one vector, as store_vector."""

ShareOf: TypeAlias = Callable[[Index, Index], Share]
"""``(x, y)``: the share of a block's thread."""


class TileOrder(NamedTuple):
    """The order in which blocks take tiles, if the GPU starts them in the order of their index.

    ``turned``: whether the grid is as wide as the tiles are high. ``tile_of(x, y)``: the tile (across, down) of a
    block. ``label`` tells programs of one kernel apart.
    """

    turned: bool
    tile_of: Callable[[Index, Index], tuple[Index, Index]]
    label: str = ""

    def grid(self, columns: int, rows: int) -> tuple[int, int]:
        """The grid for ``columns`` × ``rows`` tiles."""
        return (rows, columns) if self.turned else (columns, rows)


@device
def across_then_down(x: Index, y: Index) -> tuple[Index, Index]:
    """The tile of a block in row after row of tiles."""
    return x, y


@device
def down_then_across(x: Index, y: Index) -> tuple[Index, Index]:
    """The tile of a block in column after column of tiles."""
    return y, x


IN_ROWS = TileOrder(False, across_then_down)
IN_COLUMNS = TileOrder(True, down_then_across)


@cache
def in_pairs(apart: int) -> TileOrder:
    """Column after column, alternating between two that are ``apart`` tiles from each other.

    The number of tiles across must be a multiple of twice ``apart``.
    """

    def alternating(x: Index, y: Index) -> tuple[Index, Index]:
        within = y % (2 * apart)
        column = within // 2 + within % 2 * apart
        return y - within + column, x

    return TileOrder(True, device(alternating), "in pairs")


@cache
def in_lines(block: Block) -> ShareOf:
    """A warp covers 8 vectors by 4 rows of the tile."""
    width, warps_across = block.x, block.x // ACROSS

    def line_share(x: Index, y: Index) -> Share:
        thread = y * width + x
        warp = thread // WARP
        left = warp % warps_across * ACROSS
        above = warp // warps_across * WARP_ROWS
        line = thread // ACROSS % WARP_ROWS
        return Share(thread % ACROSS + left, line + above)

    return device(line_share)


@device
def _block_share(x: Index, y: Index) -> Share:
    return Share(x, y)


def as_in_block(_block: Block) -> ShareOf:
    """A warp covers the tile as it does the block."""
    return _block_share


@cache
def swizzled_place(block: Block, dtype: str) -> Callable[[Index, Index], Index]:
    """``(row, vector)``: where in the tile a vector begins, in elements."""
    wide = vector_width(dtype)
    side = wide * block.x

    def place_of(row: Index, vector: Index) -> Index:
        swizzled = vector ^ row // wide % ACROSS
        return row * side + swizzled * wide

    return device(place_of)


@cache
def tile_load(block: Block, dtype: str, copy: CopyVector) -> Callable[[Array, Array, Corner, Sides, Share], None]:
    """``(tile, inp, corner, sides, share)``: global to shared memory, by ``copy``."""
    wide = vector_width(dtype)
    side, by, place_of = wide * block.x, block.y, swizzled_place(block, dtype)

    def load_tile(tile: Array, inp: Array, corner: Corner, sides: Sides, share: Share) -> None:
        ix = corner.x + share.vector * wide
        for first in range(0, side, by):
            row = share.top + first
            iy = corner.y + row
            if ix < sides.nx and iy < sides.ny:
                copy(tile, place_of(row, share.vector), inp, iy * sides.nx + ix)

    return device(load_tile)


@cache
def tile_write(block: Block, dtype: str, store: StoreVector) -> Callable[[Array, Array, Corner, Sides, Share], None]:
    """``(out, tile, corner, sides, share)``: shared to global memory by ``store``, transposed.

    Elements of a column of the tile are packed into a vector in registers.
    """
    wide, element = vector_width(dtype), number(dtype)
    side, by = wide * block.x, block.y

    def write_tile(out: Array, tile: Array, corner: Corner, sides: Sides, share: Share) -> None:
        packed = cuda.local.array(wide, element, alignment=ALIGNMENT)
        ox = corner.y + share.vector * wide
        for first in range(0, side, by):
            row = share.top + first
            oy = corner.x + row
            swizzled = row // wide ^ share.vector % ACROSS
            start = swizzled * wide + row % wide
            if ox < sides.ny and oy < sides.nx:
                for lane in range(wide):
                    below = share.vector * wide + lane
                    packed[lane] = tile[below * side + start]
                store(out, oy * sides.ny + ox, load_vector(packed, 0))

    return device(write_tile)
