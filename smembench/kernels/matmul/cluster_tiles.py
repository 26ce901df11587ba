"""Tiles of clusters whose blocks share A or B, and those of wgmmaClustered for ragged sizes and unaligned rows.

1. Swapped operands: a thread's neighbouring accumulators are of one column of C. A warp group has 64 columns at a time.
   It stores some of their rows in a buffer in shared memory, swizzled and so without bank conflicts; barrier. Then one
   of its threads starts to write the buffer into C, while the warp group goes on to its other buffer.
2. Rows apart: a tile has every second, fourth or eighth row of C, and more of its rows of A begin at the same place in
   a line of 128 bytes. Its copies along k begin where its first row's line does.
"""

from __future__ import annotations

from dataclasses import replace

from smembench.kernels.intrinsics.bulk_copy import ROW_BYTES, arrive, expect_bytes, place_in_tile, start_copy
from smembench.kernels.intrinsics.bulk_store import commit_stores, finish_stores, publish_tile
from smembench.kernels.intrinsics.clusters import arrive_at, start_copy_to_all
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


@device
def inwards(first: Index, size: Index, end: Index) -> Index:
    """Where a side of a tile begins; one that would reach beyond ``end`` ends there, if the matrix is large enough.

    Copies of zeros are slow. Two tiles then compute some results, both in the same order and so to the same bits.
    """
    return end - size if first < end and first + size > end and size <= end else first


def placing_in_clusters(tile: Tile) -> DeviceFunction:
    """``(number, tiles_down, tiles_across, k, end)``: this block's place. Clusters go by first row, then down."""
    rows, columns, apart, share_b, share_a = tile.rows, tile.columns, tile.apart, tile.share_b, tile.share_a
    place_of_cluster = placing(replace(tile, rows=1, columns=1))

    def place_of(number: Index, tiles_down: Index, tiles_across: Index, k: Index, end: Place) -> Place:
        place = place_of_cluster(number, tiles_down, tiles_across, k)
        high, rank = tiles_down // apart, uint32(cuda.blockIdx.x % (share_b * share_a))
        first = place.row // high if apart > 1 else uint32(0)
        row = inwards(rows * (share_b * (place.row - first * high) + rank % share_b), uint32(rows), end.row // apart)
        column = inwards(columns * (share_a * place.col + rank // share_b), uint32(columns), end.col)
        return Place(first + apart * row, column)

    return device(place_of)


def line_before(tile: Tile) -> DeviceFunction:
    """``(place, stride of A)``: where along k copies begin, 0 or less; what precedes a row is copied as zeros."""
    apart, depth = tile.apart, tile.depth

    def line_of(place: Place, stride: Index) -> Index:
        return -int64(place.row % apart * stride % depth)

    return device(line_of)


def copying(tile: Tile) -> DeviceFunction:
    """``(stages, stage, a_map, b_map, place, k0, end)``: copy a block's tiles of A and of B.

    Blocks of a cluster take turns to copy the tile that all of them need, step by step along k. The bytes of both tiles
    arrive at this block's barrier. A tile wholly beyond the ``end`` of C is not copied, and its results are not
    written.
    """
    columns, depth, at_b, elements = tile.columns, tile.depth, tile.a_elements, tile.elements
    cluster, share_b, share_a, by_rows = tile.cluster, tile.share_b, tile.share_a, tile.b_layout == BY_ROWS
    bytes_of_a, bytes_of_b = tile.rows * ROW_BYTES, columns * ROW_BYTES
    piece = tile.piece_bytes // ITEMSIZE[tile.dtype] if by_rows else columns
    start_a, start_b = copying_rows(tile.apart, to_all=share_a > 1), start_copy_to_all if share_b > 1 else start_copy

    def copy(stages: Stages, stage: Index, a_map: Map, b_map: Map, place: Place, k0: Index, end: Place) -> None:
        at = stage * elements
        of_a = uint32(bytes_of_a) if place.row < end.row else uint32(0)
        of_b = uint32(bytes_of_b) if place.col < end.col else uint32(0)
        expect_bytes(stages.full, stage, of_a + of_b)
        own_turn = k0 // depth % cluster == cuda.blockIdx.x % cluster
        if of_a > 0 and (share_a == 1 or own_turn):
            start_a(stages.tiles, at, a_map, k0, place.row, stages.full, stage)
        if of_b > 0 and (share_b == 1 or own_turn):
            for column in range(0, columns, piece):
                to, col = at + at_b + uint32(column * depth), place.col + uint32(column)
                across, down = (col, k0) if by_rows else (k0, col)
                start_b(stages.tiles, to, b_map, across, down, stages.full, stage)

    return device(copy)


def releasing(blocks: int) -> DeviceFunction:
    """``(empty, stage, thread)``: a consumer's thread arrives at the barriers of all blocks that fill its stage."""

    def release(empty: Array, stage: Index, thread: Index) -> None:
        if thread < blocks:
            if blocks > 1:
                arrive_at(empty, stage, thread)
            else:
                arrive(empty, stage)

    return device(release)


def box_rows(tile: Tile) -> int:
    """Rows of a buffer of a swapped tile: a multiple of 8, in which 64 columns take 128 bytes or twice as many."""
    return tile.buffers // (tile.groups * BUFFERS * (ROWS * ITEMSIZE[produced(tile.dtype)] // ROW_BYTES)) // 8 * 8


def storing(tile: Tile) -> DeviceFunction:
    """``(shared, accumulators, c_map, place, member)``: start to write a thread's results of a swapped tile.

    ``shared``: shared memory as elements of C. A group's columns are written 64 at a time. The last buffer begins
    earlier where the tile's rows are no multiple of a buffer's, and writes some of them again.
    """
    dtype, height, apart, begin = produced(tile.dtype), box_rows(tile), tile.apart, tile.after_stages
    across = ROWS * ITEMSIZE[dtype] // ROW_BYTES  # boxes of 128 bytes beside each other
    rows, parts, down, width = tile.rows, tile.parts, -(-tile.rows // height), ROWS // across
    box, start_store = height * width, storing_rows(apart)
    fill = (_filling_words if ITEMSIZE[dtype] == 4 else _filling_halves)(dtype, height)
    own_columns = 0 if tile.ping_pong else parts * ROWS

    def write(shared: Array, accumulators: Array, c_map: Map, place: Place, member: Member) -> None:
        if down * parts % BUFFERS:
            if member.thread == 0:
                finish_stores(0)  # the last tile ended with the buffer that this one begins with
            meet_group(member.group + 1)
        for part in range(parts):
            col = place.col + member.group * own_columns + uint32(part * ROWS)
            for number in range(down):
                first = min(number * height, rows - height)
                at = begin + (member.group * BUFFERS + (part * down + number) % BUFFERS) * (across * box)
                fill(shared, at, accumulators, (part * rows + first) // 2, member.thread)
                publish_tile()
                if member.thread == 0:
                    finish_stores(0)
                # The buffer is full, and the other one, which is filled next, has been read.
                meet_group(member.group + 1)
                if member.thread == 0:
                    row = place.row + uint32(first * apart)
                    for beside in range(across):
                        start_store(c_map, col + uint32(beside * width), row, shared, at + beside * box)
                    commit_stores()

    return device(write)


def _filling_halves(dtype: str, height: int) -> DeviceFunction:
    """``(shared, at, accumulators, first, thread)``: store results from ``first`` on in the warp group's buffer.

    By matrices, of which a warp stores two across and two down at once.
    """
    store, place_of = store_matrices_transposed(dtype), place_in_tile(ITEMSIZE[dtype])

    def fill(shared: Array, at: Index, accumulators: Array, first: Index, thread: Index) -> None:
        lane = thread % WARP
        row, col = lane // 16 * 8 + lane % 8, thread // WARP * 16 + lane // 8 % 2 * 8
        for step in range(-(-height // 16)):
            down = min(step * 16, height - 16)
            store(shared, at + place_of(row + uint32(down), col), accumulators, first + down // 2, lane)

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
