"""wgmmaStored: wgmmaPersistent whose epilogue goes through shared memory and the Tensor Memory Accelerator (TMA).

1. A warp stores 128 bytes of each of its 16 rows (64 where the tile's width requires it) in a buffer in shared memory,
   swizzled and so without bank conflicts.
2. One of its lanes starts the TMA's store of the buffer into C. Meanwhile the warp fills its other buffer, and then
   goes on to the next tile's products.

Small products get narrower tiles, so that no multiprocessor is left idle.

Stored directly, a warp's 16-bit results cover 16 bytes of each of eight rows, half a sector. The TMA writes whole rows.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import lcm, prod

from smembench.kernels.intrinsics.bulk_copy import (
    TILE_ALIGNMENT,
    arrive,
    place_in_tile,
    prefetch_map,
    publish_barriers,
    row_bytes_of,
    set_barrier,
    wait_for_phase,
)
from smembench.kernels.intrinsics.bulk_store import commit_stores, finish_stores, publish_tile, start_store
from smembench.kernels.intrinsics.halves import store_pair
from smembench.kernels.intrinsics.warp_group import (
    GROUP,
    ROWS,
    add_registers,
    begin_products,
    commit_products,
    finish_products,
    give_registers,
    own_group,
)
from smembench.kernels.matmul.cuda import wgmma_persistent
from smembench.kernels.matmul.tile_choice import fewest, in_order, quickest, shared_elements, unsupported
from smembench.kernels.matmul.warp_groups import (
    BUFFERS,
    TILES,
    Member,
    PipelineState,
    Stages,
    Tile,
    copies,
    next_state,
    placing,
    products_of,
)
from smembench.kernels.numba_cuda import cuda, device, number, uint32
from smembench.kernels.program import NumbaKernel, TensorMap
from smembench.kernels.types import Array, Index, Map, Place
from smembench.model.case import Case
from smembench.model.formats import produced
from smembench.model.hardware import WARP
from smembench.model.problem import ITEMSIZE

CONSUMERS, THREADS = 2, 3 * GROUP
PRODUCER_REGISTERS, CONSUMER_REGISTERS = 56, 224
HEIGHT = ROWS // (GROUP // WARP)
"""Rows of a warp's results."""


def tile_of(case: Case) -> Tile:
    """The tile with the fewest counted cycles.

    It is narrow where wide tiles would leave multiprocessors idle, unless that costs another wave.
    """
    return quickest(case, TILES)


def build(case: Case) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc, a_map, b_map, c_map)``."""
    element, float32, barrier = number(case.dtype), number("float32"), number("uint64")
    tile, dtype = tile_of(case), produced(case.dtype)
    rows, columns, depth, stage_count, sums = tile.rows, tile.columns, tile.depth, tile.stages, tile.sums
    stage_elements, result = tile.elements, number(dtype)
    # A buffer has 16 rows of 128 bytes, or 64: of each, results of a warp.
    row_bytes, begin, store = row_bytes_of(columns, ITEMSIZE[dtype]), tile.after_stages, store_pair(dtype)
    width, place_in = row_bytes // ITEMSIZE[dtype], place_in_tile(ITEMSIZE[dtype], row_bytes)
    parts, buffer_elements, pairs = columns // width, HEIGHT * width, width // 4
    copy, multiply, after = copies(tile), products_of(tile), next_state(tile.stages)
    place_of, others = placing(tile), BUFFERS - 1

    @device
    def start_step(accumulators: Array, stages: Stages, state: PipelineState, member: Member) -> None:
        """Wait for a full stage, start its products and commit them."""
        wait_for_phase(stages.full, state.stage, state.phase)
        begin_products()
        multiply(accumulators, stages.tiles, state.stage * stage_elements, member)
        commit_products()

    @device
    def release(empty: Array, stage: Index, thread: Index) -> None:
        """Release a stage that a consumer has read: one of its threads arrives at its empty barrier."""
        if thread == 0:
            arrive(empty, stage)

    @device
    def write(shared: Array, accumulators: Array, c_map: Map, place: Place, member: Member) -> None:
        """Start to write a thread's results of the tile at ``place``; ``shared``: shared memory as elements of C."""
        lane, warp = member.thread % WARP, member.group * (GROUP // WARP) + member.thread // WARP
        if parts % BUFFERS and lane == 0:
            finish_stores(0)  # the last tile ended with the buffer that this one begins with
        for part in range(parts):
            at = begin + (warp * BUFFERS + part % BUFFERS) * buffer_elements
            if lane == 0:
                finish_stores(others)  # the buffer has been read
            cuda.syncwarp()
            for pair in range(pairs):  # two neighbours of every second 8 × 8 results
                row, col = lane // 4 + uint32(pair % 2 * 8), uint32(pair // 2 * 8) + lane % 4 * 2
                first = part * (width // 2) + pair * 2
                store(shared, at + place_in(row, col), accumulators[first], accumulators[first + 1])
            publish_tile()
            cuda.syncwarp()
            if lane == 0:
                start_store(c_map, place.col + uint32(part * width), place.row + warp * HEIGHT, shared, at)
                commit_stores()

    def wgmma_stored(
        c: Array, a: Array, b: Array, m: Index, n: Index, k: Index, lda: Index, ldb: Index, ldc: Index,
        a_map: Map, b_map: Map, c_map: Map,
    ) -> None:  # fmt: skip
        # (stages, 128 rows of A and then columns of B, 128 bytes along k)
        tiles = cuda.shared.array(0, element, alignment=TILE_ALIGNMENT)
        buffers = cuda.shared.array(0, result, alignment=TILE_ALIGNMENT)  # the same memory; buffers follow the stages
        full = cuda.shared.array(stage_count, barrier)
        empty = cuda.shared.array(stage_count, barrier)
        stages = Stages(tiles, full, empty)
        accumulators = cuda.local.array(sums, float32)  # of a consumer's thread: (columns / 8, 2 rows, 2 columns)
        group, thread = own_group(), cuda.threadIdx.x % GROUP
        tiles_down, tiles_across = (m + (rows - 1)) // rows, (n + (columns - 1)) // columns
        if cuda.threadIdx.x == 0:
            prefetch_map(a_map)
            prefetch_map(b_map)
            prefetch_map(c_map)
            for stage in range(stage_count):
                set_barrier(full, stage, 1)  # the thread that copies; the bytes are counted beside
                set_barrier(empty, stage, CONSUMERS)
            publish_barriers()
        cuda.syncthreads()
        # Stages go round without a break from tile to tile: the producer is ahead while consumers still write.
        state, tile_index = PipelineState(uint32(0), uint32(0)), cuda.blockIdx.x
        if group == 0:
            give_registers(PRODUCER_REGISTERS)
            while thread == 0 and tile_index < tiles_down * tiles_across:
                place = place_of(tile_index, tiles_down, tiles_across, k)
                for k0 in range(0, k, depth):
                    wait_for_phase(empty, state.stage, 1 - state.phase)
                    copy(stages, state.stage, a_map, b_map, place, k0, n)
                    state = after(state)
                tile_index += cuda.gridDim.x
        else:
            add_registers(CONSUMER_REGISTERS)
            member = Member(group - 1, thread)
            while tile_index < tiles_down * tiles_across:
                place = place_of(tile_index, tiles_down, tiles_across, k)
                for i in range(sums):
                    accumulators[i] = 0
                before = state.stage
                for k0 in range(depth, k, depth):
                    start_step(accumulators, stages, state, member)
                    finish_products(1)  # all but the newest: those of the stage before are complete
                    if k0 > depth:
                        release(empty, before, thread)
                    before, state = state.stage, after(state)
                # The last step waits for all products at once.
                start_step(accumulators, stages, state, member)
                finish_products(0)
                if k > depth:
                    release(empty, before, thread)
                release(empty, state.stage, thread)
                state = after(state)
                write(buffers, accumulators, c_map, place, member)
                tile_index += cuda.gridDim.x
            finish_stores(0)

    grid, of_c = tile.grid(case), TensorMap(0, case.m, case.n, case.n, HEIGHT, row_bytes=row_bytes)
    return NumbaKernel(
        wgmma_stored,
        grid=grid,
        block=(THREADS, 1),
        dynamic_bytes=tile.shared_bytes,
        tensor_maps=(*tile.maps(case), of_c),
        launch_bounds=(THREADS, 1),
        variant=str(columns),
        persistent_blocks=partial(fewest, prod(grid)),
        tile_of=in_order(tile, case),
    )


KERNEL = replace(
    wgmma_persistent.KERNEL,
    name="wgmmaStored",
    summary="wgmmaPersistent, whose results the TMA writes from shared memory",
    build=build,
    results=(lcm(*(tile.columns for tile in TILES)), TILES[0].rows),
    tile_elements=shared_elements(tile_of),
    dynamic_elements=shared_elements(tile_of),
    unsupported=partial(unsupported, stored=True),
    ladder="results go through shared memory, written by the TMA",
)
