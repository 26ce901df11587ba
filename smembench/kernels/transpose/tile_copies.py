"""Copies of a square tile by 128-bit accesses, as device functions: each moves a thread's share of it.

A thread has column ``vector`` of the tile's vectors, of which there are as many side by side as threads, and row
``top`` and every row a block's height below it. In shared memory vector v of row r lies at v XOR (r / vector width
modulo 8), counted from ``base``. ``x0`` and ``y0`` are the tile's column and row in the input. What lies over the edge
is neither read nor written. Each function is cached by its arguments, since Numba keeps every function it meets.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from smembench.kernels.intrinsics.vector import copy_vector, load_vector, store_vector, vector_width
from smembench.kernels.numba_cuda import DeviceFunction, device
from smembench.kernels.transpose.tile_geometry import ACROSS, WARP_ROWS
from smembench.model.case import Block
from smembench.model.hardware import WARP


class TileOrder(NamedTuple):
    """The order in which blocks take tiles, if the GPU starts them in the order of their index.

    ``turned``: whether the grid is as wide as the tiles are high. ``tile_of(x, y)``: the tile (across, down) of a
    block. ``label`` tells programs of one kernel apart.
    """

    turned: bool
    tile_of: DeviceFunction
    label: str = ""

    def grid(self, columns: int, rows: int) -> tuple[int, int]:
        """The grid for ``columns`` × ``rows`` tiles."""
        return (rows, columns) if self.turned else (columns, rows)


@device
def _itself(x: Any, y: Any) -> tuple[Any, Any]:
    return x, y


@device
def _turned(x: Any, y: Any) -> tuple[Any, Any]:
    return y, x


IN_ROWS = TileOrder(False, _itself)
"""Row after row of tiles."""

IN_COLUMNS = TileOrder(True, _turned)
"""Column after column of tiles."""


@cache
def in_pairs(apart: int) -> TileOrder:
    """Column after column, alternating between two that are ``apart`` tiles from each other.

    The number of tiles across must be a multiple of twice ``apart``.
    """

    def tile_of(x: Any, y: Any) -> tuple[Any, Any]:
        within = y % (2 * apart)
        column = within // 2 + within % 2 * apart
        return y - within + column, x

    return TileOrder(True, device(tile_of), "in pairs")


@cache
def in_lines(block: Block) -> DeviceFunction:
    """``(x, y)``: the ``vector`` and ``top`` of a block's thread; a warp covers 8 vectors by 4 rows of the tile."""
    width, warps_across = block.x, block.x // ACROSS

    def position_of(x: Any, y: Any) -> tuple[Any, Any]:
        thread = y * width + x
        warp = thread // WARP
        left = warp % warps_across * ACROSS
        above = warp // warps_across * WARP_ROWS
        line = thread // ACROSS % WARP_ROWS
        return thread % ACROSS + left, line + above

    return device(position_of)


def as_in_block(_block: Block) -> DeviceFunction:
    """``(x, y)``: the ``vector`` and ``top`` of a block's thread; a warp covers the tile as it does the block."""
    return _itself


@cache
def swizzled_place(block: Block, dtype: str) -> DeviceFunction:
    """``(row, vector)``: where in the tile a vector begins, in elements."""
    wide = vector_width(dtype)
    side = wide * block.x

    def place_of(row: Any, vector: Any) -> Any:
        swizzled = vector ^ row // wide % ACROSS
        return row * side + swizzled * wide

    return device(place_of)


@cache
def tile_load(block: Block, dtype: str, copy: DeviceFunction) -> DeviceFunction:
    """``(tile, base, inp, x0, y0, nx, ny, vector, top)``: global to shared memory, by ``copy``.

    ``copy(tile, place, inp, index)`` moves one vector.
    """
    wide = vector_width(dtype)
    side, by, place_of = wide * block.x, block.y, swizzled_place(block, dtype)

    def load_tile(tile: Any, base: Any, inp: Any, x0: Any, y0: Any, nx: Any, ny: Any, vector: Any, top: Any) -> None:
        ix = x0 + vector * wide
        for first in range(0, side, by):
            row = top + first
            if ix < nx and y0 + row < ny:
                copy(tile, base + place_of(row, vector), inp, (y0 + row) * nx + ix)

    return device(load_tile)


@cache
def tile_prefetch(block: Block, dtype: str) -> DeviceFunction:
    """``(held, inp, x0, y0, nx, ny, vector, top)``: global memory to registers, for ``tile_store``."""
    wide = vector_width(dtype)
    by, count = block.y, wide * block.x // block.y

    def prefetch_tile(held: Any, inp: Any, x0: Any, y0: Any, nx: Any, ny: Any, vector: Any, top: Any) -> None:
        ix = x0 + vector * wide
        for i in range(count):
            iy = y0 + top + i * by
            if ix < nx and iy < ny:
                copy_vector(held, i * wide, inp, iy * nx + ix)

    return device(prefetch_tile)


@cache
def tile_store(block: Block, dtype: str) -> DeviceFunction:
    """``(tile, base, held, vector, top)``: registers to shared memory; beyond the edge whatever they hold."""
    wide = vector_width(dtype)
    by, count, place_of = block.y, wide * block.x // block.y, swizzled_place(block, dtype)

    def store_tile(tile: Any, base: Any, held: Any, vector: Any, top: Any) -> None:
        for i in range(count):
            row = top + i * by
            copy_vector(tile, base + place_of(row, vector), held, i * wide)

    return device(store_tile)


@cache
def tile_write(block: Block, dtype: str, store: DeviceFunction = store_vector) -> DeviceFunction:
    """``(out, tile, base, packed, x0, y0, nx, ny, vector, top)``: shared to global memory, transposed.

    Elements of a column of the tile are packed into the vector ``packed``, which ``store(out, index, values)``
    writes.
    """
    wide = vector_width(dtype)
    side, by = wide * block.x, block.y

    def write_tile(
        out: Any, tile: Any, base: Any, packed: Any, x0: Any, y0: Any, nx: Any, ny: Any, vector: Any, top: Any
    ) -> None:
        ox = y0 + vector * wide
        for first in range(0, side, by):
            row = top + first
            swizzled = row // wide ^ vector % ACROSS
            start = swizzled * wide + row % wide
            if ox < ny and x0 + row < nx:
                for lane in range(wide):
                    below = vector * wide + lane
                    packed[lane] = tile[base + (below * side + start)]
                store(out, (x0 + row) * ny + ox, load_vector(packed, 0))

    return device(write_tile)
