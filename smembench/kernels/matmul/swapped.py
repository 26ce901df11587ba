"""Epilogue of tiles with swapped operands: a thread's neighbouring accumulators are of one column of C.

A warp group has 64 columns of C at a time. It stores some of their rows in a buffer in shared memory, swizzled and so
without bank conflicts; barrier. Then one of its threads starts to write the buffer into C, while the warp group goes on
to its other buffer.
"""

from __future__ import annotations

from smembench.kernels.intrinsics.bulk_copy import ROW_BYTES, place_in_tile
from smembench.kernels.intrinsics.bulk_store import commit_stores
from smembench.kernels.intrinsics.matrix import store_matrices_transposed
from smembench.kernels.intrinsics.rows_apart import storing_rows
from smembench.kernels.intrinsics.warp_group import ROWS
from smembench.kernels.matmul.warp_groups import BUFFERS, Member, Tile, hand_over
from smembench.kernels.numba_cuda import DeviceFunction, device, uint32
from smembench.kernels.program import TensorMap
from smembench.kernels.types import Array, Index, Place
from smembench.model.case import Case
from smembench.model.formats import produced
from smembench.model.hardware import WARP
from smembench.model.problem import ITEMSIZE


def boxes_across(tile: Tile) -> int:
    """Boxes of 128 bytes per row in which a buffer's 64 columns are written."""
    return ROWS * ITEMSIZE[produced(tile.dtype)] // ROW_BYTES


def box_rows(tile: Tile) -> int:
    """Rows of a buffer."""
    return tile.buffers // (tile.consumers * BUFFERS * boxes_across(tile))


def map_of_c(case: Case, tile: Tile) -> TensorMap:
    """The tensor map by which the boxes of a buffer are written."""
    return TensorMap(0, case.m, case.n, case.n, box_rows(tile), apart=tile.apart)


def storing(tile: Tile) -> DeviceFunction:
    """``(shared, accumulators, c_map, place, member)``: start to write a thread's results of the tile at ``place``.

    ``shared``: shared memory as elements of C.
    """
    left, right = _storing_columns(tile, 0), _storing_columns(tile, 1)

    def write(shared: Array, accumulators: Array, c_map: Index, place: Place, member: Member) -> None:
        col = place.col + member.group * (2 * ROWS)
        left(shared, accumulators, c_map, Place(place.row, col), member)
        right(shared, accumulators, c_map, Place(place.row, col + ROWS), member)

    return device(write)


def _storing_columns(tile: Tile, half: int) -> DeviceFunction:
    """As ``storing``, of the first or second 64 columns of a group, at their place.

    There is a barrier per buffer, when it is full and the other one, which is filled next, has been read. Both halves
    take equally many buffers, so that the next tile goes on with the other one, too.
    """
    height, across, apart = box_rows(tile), boxes_across(tile), tile.apart
    down, width = tile.rows // height, ROWS // across
    box, begin = height * width, tile.after_stages
    fill, start_store = filling(produced(tile.dtype), height), storing_rows(apart)

    def write(shared: Array, accumulators: Array, c_map: Index, place: Place, member: Member) -> None:
        for part in range(half * down, (half + 1) * down):
            at = begin + (member.group * BUFFERS + part % BUFFERS) * (across * box)
            fill(shared, at, accumulators, part * (height // 2), member.thread)
            hand_over(member)
            if member.thread == 0:
                row = place.row + uint32((part - half * down) * height * apart)
                for number in range(across):
                    start_store(c_map, place.col + uint32(number * width), row, shared, at + number * box)
                commit_stores()

    return device(write)


def filling(dtype: str, height: int) -> DeviceFunction:
    """``(shared, at, accumulators, first, thread)``: store results from ``first`` on in the warp group's buffer."""
    return (_filling_words if ITEMSIZE[dtype] == 4 else _filling_halves)(dtype, height)


def _filling_halves(dtype: str, height: int) -> DeviceFunction:
    """By matrices, of which a warp stores two across and two down at once."""
    store, place_of = store_matrices_transposed(dtype), place_in_tile(ITEMSIZE[dtype])

    def fill(shared: Array, at: Index, accumulators: Array, first: Index, thread: Index) -> None:
        lane = thread % WARP
        row, col = lane // 16 * 8 + lane % 8, thread // WARP * 16 + lane // 8 % 2 * 8
        for step in range(height // 16):
            store(shared, at + place_of(row + uint32(step * 16), col), accumulators, first + step * 8, lane)

    return device(fill)


def _filling_words(dtype: str, height: int) -> DeviceFunction:
    """One by one: of each eight rows, two below each other, and two beside them. A group's 64 columns are two boxes."""
    place_of, width = place_in_tile(ITEMSIZE[dtype]), ROW_BYTES // ITEMSIZE[dtype]

    def fill(shared: Array, at: Index, accumulators: Array, first: Index, thread: Index) -> None:
        lane, warp = thread % WARP, thread // WARP
        row, col = lane % 4 * 2, warp % 2 * 16 + lane // 4
        box = at + warp // 2 * (height * width)
        for corner in range(4):
            place = box + place_of(row + uint32(corner % 2), col + uint32(corner // 2 * 8))
            for down in range(height // 8):
                shared[place + uint32(down * 8 * width)] = accumulators[first + down * 4 + corner]

    return device(fill)
