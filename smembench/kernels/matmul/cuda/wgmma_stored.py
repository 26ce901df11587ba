"""wgmmaStored: wgmmaPersistent whose epilogue goes through shared memory and the Tensor Memory Accelerator (TMA).

1. A warp stores 128 bytes of each of its 16 rows (64 where the tile's width requires it) in a buffer in shared memory,
   swizzled and so without bank conflicts.
2. One of its lanes starts the TMA's store of the buffer into C. Meanwhile the warp fills its other buffer, and then
   goes on to the next tile's products.

Small products get narrower tiles, so that no multiprocessor is left idle.

Stored directly, a warp's 16-bit results cover 16 bytes of each of eight rows, half a sector. The TMA writes whole rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from math import lcm, prod

from smembench.kernels.common.grids import ceil_div
from smembench.kernels.intrinsics.bulk_copy import ROW_BYTES, TILE_ALIGNMENT, place_in_tile, prefetch_map
from smembench.kernels.intrinsics.bulk_store import commit_stores, finish_stores, publish_tile
from smembench.kernels.intrinsics.halves import store_pair
from smembench.kernels.intrinsics.rows_apart import storing_rows
from smembench.kernels.intrinsics.warp_group import GROUP, ROWS, add_registers, give_registers, own_group
from smembench.kernels.matmul.cuda import wgmma_persistent
from smembench.kernels.matmul.cuda.wgmma_persistent import fewest, in_order, placing
from smembench.kernels.matmul.cuda.wgmma_specialized import (
    CONSUMER_REGISTERS,
    CONSUMERS,
    PRODUCER_REGISTERS,
    THREADS,
    PipelineState,
    multiplying,
    producing,
    release,
    setting_up,
)
from smembench.kernels.matmul.warp_groups import BUFFERS, Maps, Member, Stages, Tile, shared_elements, unsupported
from smembench.kernels.numba_cuda import DeviceFunction, cuda, device, number, uint32
from smembench.kernels.program import NumbaKernel, TensorMap
from smembench.kernels.types import Array, Index, Place
from smembench.model.case import BY_COLUMNS, Case
from smembench.model.formats import produced
from smembench.model.hardware import SM90_MULTIPROCESSORS, WARP
from smembench.model.problem import ITEMSIZE

HEIGHT = ROWS // (GROUP // WARP)
"""Rows of a warp's results."""
WIDE = Tile(rows=128, columns=256, stages=4, buffers=CONSUMERS * ROWS * BUFFERS)
STAGES = {256: 4, 224: 4, 192: 4, 160: 5, 128: 5, 96: 6, 64: 7}
TILES = tuple(replace(WIDE, columns=columns, stages=stages) for columns, stages in STAGES.items())


def step_cycles(tile: Tile) -> int:
    """How long a step along k takes, by what is counted, not timed.

    The products of 32 results take a cycle. In lines of 128 bytes, one per cycle, shared memory gets the rows of A and
    the columns of B once, and each instruction of a consumer reads 64 of those rows and its part of the columns, or of
    a swapped tile 64 of the columns and all rows.
    """
    width = tile.rows if tile.swapped else tile.columns // tile.column_parts
    lines = tile.rows + tile.columns + tile.consumers * tile.column_parts * (ROWS + width)
    return max(tile.rows * tile.columns // 32, lines)


def tile_of(case: Case) -> Tile:
    """The tile with the fewest counted cycles.

    It is narrow where wide tiles would leave multiprocessors idle, unless that costs another wave.

    Where rows of B begin within lines of 128 bytes it is one that copies 128 bytes of a row at a time, since copies of
    64 bytes touch more lines in all.
    """
    whole_lines = case.b_layout == BY_COLUMNS or case.n * ITEMSIZE[case.dtype] % ROW_BYTES == 0
    tiles = (tile.of(case) for tile in TILES)
    return quickest(case, (tile for tile in tiles if whole_lines or tile.piece_bytes == ROW_BYTES))


def quickest(case: Case, tiles: Iterable[Tile]) -> Tile:
    """Of a case's tiles the one with the fewest cycles."""
    return min(tiles, key=lambda tile: ceil_div(prod(tile.grid(case)), SM90_MULTIPROCESSORS) * step_cycles(tile))


def buffering(dtype: str, row_bytes: int) -> DeviceFunction:
    """``(shared, at, accumulators, part, lane)``: store ``row_bytes`` of each of a lane's rows in its warp's buffer.

    ``dtype`` is that of C. ``at``: where the buffer begins. ``part``: which bytes of the rows.
    """
    store, width, place_of = store_pair(dtype), row_bytes // ITEMSIZE[dtype], place_in_tile(ITEMSIZE[dtype], row_bytes)

    def fill(shared: Array, at: Index, accumulators: Array, part: Index, lane: Index) -> None:
        for pair in range(width // 4):
            row, col = lane // 4 + uint32(pair % 2 * 8), uint32(pair // 2 * 8) + lane % 4 * 2
            first = part * (width // 2) + pair * 2
            store(shared, at + place_of(row, col), accumulators[first], accumulators[first + 1])

    return device(fill)


def storing(tile: Tile) -> DeviceFunction:
    """``(shared, accumulators, c_map, place, member)``: start to write a thread's results of the tile at ``place``.

    ``shared``: shared memory as elements of C.
    """
    dtype, columns, row_bytes = produced(tile.dtype), tile.columns, tile.result_bytes
    fill, width = buffering(dtype, row_bytes), row_bytes // ITEMSIZE[dtype]
    size, others, begin = HEIGHT * width, BUFFERS - 1, tile.after_stages
    parts = columns // width
    odd = parts % BUFFERS > 0
    start_store, high = storing_rows(tile.apart), HEIGHT * tile.apart

    def write(shared: Array, accumulators: Array, c_map: Index, place: Place, member: Member) -> None:
        lane, warp = member.thread % WARP, member.group * (GROUP // WARP) + member.thread // WARP
        if odd and lane == 0:
            finish_stores(0)  # the last tile ended with the buffer that this one begins with
        for part in range(parts):
            at = begin + (warp * BUFFERS + part % BUFFERS) * size
            if lane == 0:
                finish_stores(others)
            cuda.syncwarp()
            fill(shared, at, accumulators, part, lane)
            publish_tile()
            cuda.syncwarp()
            if lane == 0:
                start_store(c_map, place.col + uint32(part * width), place.row + warp * high, shared, at)
                commit_stores()

    return device(write)


def map_of_c(case: Case, tile: Tile) -> TensorMap:
    """The tensor map by which a warp's buffers are written."""
    return TensorMap(0, case.m, case.n, case.n, HEIGHT, row_bytes=tile.result_bytes, apart=tile.apart)


def build(case: Case) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc, a_map, b_map, c_map)``."""
    element, result, barrier = number(case.dtype), number(produced(case.dtype)), number("uint64")
    float32 = number("float32")
    tile = tile_of(case)
    rows, columns, stage_count, sums = tile.rows, tile.columns, tile.stages, tile.sums
    set_up_barriers, producer_loop = setting_up(tile.stages), producing(tile, tile.copies())
    main_loop, write, place_of = multiplying(tile, release), storing(tile), placing(tile)

    def wgmma_stored(
        c: Array, a: Array, b: Array, m: Index, n: Index, k: Index, lda: Index, ldb: Index, ldc: Index,
        a_map: Index, b_map: Index, c_map: Index,
    ) -> None:  # fmt: skip
        tiles = cuda.shared.array(0, element, alignment=TILE_ALIGNMENT)
        buffers = cuda.shared.array(0, result, alignment=TILE_ALIGNMENT)  # the same memory
        full = cuda.shared.array(stage_count, barrier)
        empty = cuda.shared.array(stage_count, barrier)
        stages, maps = Stages(tiles, full, empty), Maps(a_map, b_map)
        accumulators = cuda.local.array(sums, float32)
        group, thread = own_group(), cuda.threadIdx.x % GROUP
        tiles_down, tiles_across = (m + (rows - 1)) // rows, (n + (columns - 1)) // columns
        if cuda.threadIdx.x == 0:
            set_up_barriers(stages, maps, CONSUMERS)
            prefetch_map(c_map)
        cuda.syncthreads()
        state = PipelineState(uint32(0), uint32(0))
        tile_index = cuda.blockIdx.x
        if group == 0:
            give_registers(PRODUCER_REGISTERS)
            while thread == 0 and tile_index < tiles_down * tiles_across:
                state = producer_loop(stages, state, maps, place_of(tile_index, tiles_down, tiles_across, k), 0, k)
                tile_index += cuda.gridDim.x
        else:
            add_registers(CONSUMER_REGISTERS)
            member = Member(group - 1, thread)
            while tile_index < tiles_down * tiles_across:
                place = place_of(tile_index, tiles_down, tiles_across, k)
                state = main_loop(accumulators, stages, state, member, k)
                write(buffers, accumulators, c_map, place, member)
                tile_index += cuda.gridDim.x
            finish_stores(0)

    grid = tile.grid(case)
    return NumbaKernel(
        wgmma_stored,
        grid=grid,
        block=(THREADS, 1),
        dynamic_bytes=tile.shared_bytes,
        tensor_maps=(*tile.maps(case), map_of_c(case, tile)),
        launch_bounds=(THREADS, 1),
        variant=str(columns),
        persistent_blocks=partial(fewest, prod(grid)),
        grid_dependent=True,
        tile_of=in_order(tile, case),
    )


KERNEL = replace(
    wgmma_persistent.KERNEL,
    name="wgmmaStored",
    summary="wgmmaPersistent, whose results the TMA writes from shared memory",
    build=build,
    results=(lcm(*STAGES), WIDE.rows),
    tile_elements=shared_elements(tile_of),
    dynamic_elements=shared_elements(tile_of),
    unsupported=partial(unsupported, stored=True),
    ladder="results go through shared memory, written by the TMA",
)
