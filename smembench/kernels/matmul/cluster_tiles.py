"""Tiles of clusters whose blocks share B, and those of wgmmaClustered for ragged sizes and unaligned rows.

1. Swapped operands: a thread's neighbouring accumulators are of one column of C. A warp group has 64 columns at a time.
   It stores some of their rows in a buffer in shared memory, swizzled and so without bank conflicts; barrier. Then one
   of its threads starts to write the buffer into C, while the warp group goes on to its other buffer.
2. Rows apart: a tile has every second, fourth or eighth row of C, and more of its rows of A begin at the same place in
   a line of 128 bytes. Its copies along k begin where its first row's line does.
"""

from __future__ import annotations

from dataclasses import replace

from smembench.kernels.intrinsics.bulk_copy import ROW_BYTES, expect_bytes, place_in_tile, start_copy
from smembench.kernels.intrinsics.bulk_store import commit_stores, finish_stores, publish_tile
from smembench.kernels.intrinsics.clusters import start_copy_to_all
from smembench.kernels.intrinsics.matrix import store_matrices_transposed
from smembench.kernels.intrinsics.rows_apart import copying_rows, storing_rows
from smembench.kernels.intrinsics.warp_group import ROWS, meet_group
from smembench.kernels.matmul.warp_groups import BUFFERS, Member, Stages, Tile, placing
from smembench.kernels.numba_cuda import DeviceFunction, cuda, device, int64, uint32
from smembench.kernels.types import Array, Index, Map, Place
from smembench.model.case import BY_ROWS
from smembench.model.formats import produced
from smembench.model.hardware import WARP
from smembench.model.problem import ITEMSIZE


def placing_in_clusters(tile: Tile) -> DeviceFunction:
    """``(number, tiles_down, tiles_across, k)``: this block's place. Clusters go by first row, then down."""
    rows, apart, cluster, place_of_pair = tile.rows, tile.apart, tile.shared, placing(replace(tile, rows=1))

    def place_of(pair: Index, tiles_down: Index, tiles_across: Index, k: Index) -> Place:
        place = place_of_pair(pair, tiles_down, tiles_across, k)
        high = tiles_down // apart
        first, rank = place.row // high, uint32(cuda.blockIdx.x % cluster)
        return Place(first + apart * (rows * (cluster * (place.row - first * high) + rank)), place.col)

    return device(place_of)


def line_before(tile: Tile) -> DeviceFunction:
    """``(place, stride of A)``: where along k copies begin, 0 or less; what precedes a row is copied as zeros."""
    apart, depth = tile.apart, tile.depth

    def line_of(place: Place, stride: Index) -> Index:
        return -int64(place.row % apart * stride % depth)

    return device(line_of)


def copying(tile: Tile) -> DeviceFunction:
    """``(stages, stage, a_map, b_map, place, k0, end)``: copy a block's tile of A, and its part of the cluster's of B.

    The blocks of a cluster copy B's tile by turns, each its part to all: by rows pieces of up to 128 bytes of each row,
    by columns equal parts. The bytes of both tiles arrive at this block's barrier. What lies wholly beyond the ``end``
    of C is not copied, since copies of zeros are slow, and its results are not written.
    """
    columns, depth, at_b, elements = tile.columns, tile.depth, tile.a_elements, tile.elements
    cluster, by_rows, bytes_of_a = tile.shared, tile.b_layout == BY_ROWS, tile.rows * ROW_BYTES
    part_columns = tile.piece_bytes // ITEMSIZE[tile.dtype] if by_rows else columns // cluster
    part_bytes = part_columns * ROW_BYTES
    start_part, start_rows = start_copy_to_all if cluster > 1 else start_copy, copying_rows(tile.apart)

    def copy(stages: Stages, stage: Index, a_map: Map, b_map: Map, place: Place, k0: Index, end: Place) -> None:
        at, width = stage * elements, min(uint32(columns), end.col - place.col)
        of_a = uint32(bytes_of_a) if place.row < end.row else uint32(0)
        of_b = (width + (part_columns - 1)) // part_columns * part_bytes
        expect_bytes(stages.full, stage, of_a + of_b)
        first = uint32(cuda.blockIdx.x % cluster) * part_columns
        for part in range(0, columns, cluster * part_columns):
            within = uint32(part) + first
            if within < width:
                column, row = (place.col + within, k0) if by_rows else (k0, place.col + within)
                start_part(stages.tiles, at + at_b + within * depth, b_map, column, row, stages.full, stage)
        if of_a > 0:
            start_rows(stages.tiles, at, a_map, k0, place.row, stages.full, stage)

    return device(copy)


def box_rows(tile: Tile) -> int:
    """Rows of a buffer of a swapped tile."""
    return tile.buffers // (tile.consumers * BUFFERS * (ROWS * ITEMSIZE[produced(tile.dtype)] // ROW_BYTES))


def storing(tile: Tile) -> DeviceFunction:
    """``(shared, accumulators, c_map, place, member)``: start to write a thread's results of a swapped tile.

    ``shared``: shared memory as elements of C. A group's columns are written 64 at a time. All take an even number of
    buffers, so that the next tile goes on with the other one, too.
    """
    dtype, height, apart, begin = produced(tile.dtype), box_rows(tile), tile.apart, tile.after_stages
    across = ROWS * ITEMSIZE[dtype] // ROW_BYTES  # boxes of 128 bytes beside each other
    down, width = tile.rows // height, ROWS // across
    box, start_store = height * width, storing_rows(apart)
    fill = (_filling_words if ITEMSIZE[dtype] == 4 else _filling_halves)(dtype, height)

    def half(first: int) -> DeviceFunction:
        def write(shared: Array, accumulators: Array, c_map: Map, place: Place, member: Member) -> None:
            for part in range(first, first + down):
                at = begin + (member.group * BUFFERS + part % BUFFERS) * (across * box)
                fill(shared, at, accumulators, part * (height // 2), member.thread)
                publish_tile()
                if member.thread == 0:
                    finish_stores(0)
                # The buffer is full, and the other one, which is filled next, has been read.
                meet_group(member.group + 1)
                if member.thread == 0:
                    row = place.row + uint32((part - first) * height * apart)
                    for number in range(across):
                        start_store(c_map, place.col + uint32(number * width), row, shared, at + number * box)
                    commit_stores()

        return device(write)

    left, right, halves = half(0), half(down), tile.column_parts

    def write(shared: Array, accumulators: Array, c_map: Map, place: Place, member: Member) -> None:
        col = place.col + member.group * (halves * ROWS)
        left(shared, accumulators, c_map, Place(place.row, col), member)
        if halves > 1:
            right(shared, accumulators, c_map, Place(place.row, col + ROWS), member)

    return device(write)


def _filling_halves(dtype: str, height: int) -> DeviceFunction:
    """``(shared, at, accumulators, first, thread)``: store results from ``first`` on in the warp group's buffer.

    By matrices, of which a warp stores two across and two down at once.
    """
    store, place_of = store_matrices_transposed(dtype), place_in_tile(ITEMSIZE[dtype])

    def fill(shared: Array, at: Index, accumulators: Array, first: Index, thread: Index) -> None:
        lane = thread % WARP
        row, col = lane // 16 * 8 + lane % 8, thread // WARP * 16 + lane // 8 % 2 * 8
        for step in range(height // 16):
            store(shared, at + place_of(row + uint32(step * 16), col), accumulators, first + step * 8, lane)

    return device(fill)


def _filling_words(dtype: str, height: int) -> DeviceFunction:
    """The same one by one: of each eight rows two below each other and two beside them; 64 columns are two boxes."""
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
