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
from smembench.kernels.numba_cuda import DeviceFunction, device, uint32
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
        within = uint32(y % uint32(2 * apart))
        column = uint32(uint32(within // uint32(2)) + uint32(uint32(within % uint32(2)) * uint32(apart)))
        return uint32(uint32(y - within) + column), x

    return TileOrder(True, device(tile_of), "in pairs")


@cache
def in_lines(block: Block) -> DeviceFunction:
    """``(x, y)``: the ``vector`` and ``top`` of a block's thread; a warp covers 8 vectors by 4 rows of the tile."""
    width, warps_across = block.x, block.x // ACROSS

    def position_of(x: Any, y: Any) -> tuple[Any, Any]:
        thread = uint32(uint32(y * uint32(width)) + x)
        warp = uint32(thread // uint32(WARP))
        left = uint32(uint32(warp % uint32(warps_across)) * uint32(ACROSS))
        above = uint32(uint32(warp // uint32(warps_across)) * uint32(WARP_ROWS))
        line = uint32(uint32(thread // uint32(ACROSS)) % uint32(WARP_ROWS))
        return uint32(uint32(thread % uint32(ACROSS)) + left), uint32(line + above)

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
        swizzled = uint32(vector ^ uint32(uint32(row // uint32(wide)) % uint32(ACROSS)))
        return uint32(uint32(row * uint32(side)) + uint32(swizzled * uint32(wide)))

    return device(place_of)


@cache
def tile_load(block: Block, dtype: str, copy: DeviceFunction) -> DeviceFunction:
    """``(tile, base, inp, x0, y0, nx, ny, vector, top)``: global to shared memory, by ``copy``.

    ``copy(tile, place, inp, index)`` moves one vector.
    """
    wide = vector_width(dtype)
    side, by, place_of = wide * block.x, block.y, swizzled_place(block, dtype)

    def load_tile(tile: Any, base: Any, inp: Any, x0: Any, y0: Any, nx: Any, ny: Any, vector: Any, top: Any) -> None:
        ix = uint32(x0 + uint32(vector * uint32(wide)))
        for first in range(0, side, by):
            row = uint32(top + uint32(first))
            if ix < nx and uint32(y0 + row) < ny:
                copy(tile, uint32(base + place_of(row, vector)), inp, uint32(uint32(y0 + row) * nx + ix))

    return device(load_tile)


@cache
def tile_prefetch(block: Block, dtype: str) -> DeviceFunction:
    """``(held, inp, x0, y0, nx, ny, vector, top)``: global memory to registers, for ``tile_store``."""
    wide = vector_width(dtype)
    by, count = block.y, wide * block.x // block.y

    def prefetch_tile(held: Any, inp: Any, x0: Any, y0: Any, nx: Any, ny: Any, vector: Any, top: Any) -> None:
        ix = uint32(x0 + uint32(vector * uint32(wide)))
        for i in range(count):
            iy = uint32(uint32(y0 + top) + uint32(i * by))
            if ix < nx and iy < ny:
                copy_vector(held, i * wide, inp, uint32(iy * nx + ix))

    return device(prefetch_tile)


@cache
def tile_store(block: Block, dtype: str) -> DeviceFunction:
    """``(tile, base, held, vector, top)``: registers to shared memory; beyond the edge whatever they hold."""
    wide = vector_width(dtype)
    by, count, place_of = block.y, wide * block.x // block.y, swizzled_place(block, dtype)

    def store_tile(tile: Any, base: Any, held: Any, vector: Any, top: Any) -> None:
        for i in range(count):
            row = uint32(top + uint32(i * by))
            copy_vector(tile, uint32(base + place_of(row, vector)), held, i * wide)

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
        ox = uint32(y0 + uint32(vector * uint32(wide)))
        for first in range(0, side, by):
            row = uint32(top + uint32(first))
            swizzled = uint32(uint32(row // uint32(wide)) ^ uint32(vector % uint32(ACROSS)))
            start = uint32(uint32(swizzled * uint32(wide)) + uint32(row % uint32(wide)))
            if ox < ny and uint32(x0 + row) < nx:
                for lane in range(wide):
                    below = uint32(uint32(vector * uint32(wide)) + uint32(lane))
                    packed[lane] = tile[uint32(base + uint32(uint32(below * uint32(side)) + start))]
                store(out, uint32(uint32(x0 + row) * ny + ox), load_vector(packed, 0))

    return device(write_tile)
