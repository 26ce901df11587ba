"""wgmmaOverlapped: wgmmaStored whose epilogue overlaps the main loop: tensor cores multiply while results are written.

1. A consumer multiplies the two halves of the tile's columns separately.
2. In a tile's last two steps along k it starts the left half's products first, and writes that half's results while
   the tensor cores compute the right half.
3. Then it starts the left half of the next tile's first two steps, and writes the right half's results meanwhile.
4. A block multiplies every second tile from its last step along k to its first, so that it begins with what the tile
   before has left in the L2.

So two stages of one tile and two of the next are in use at a time. Unlike in wgmmaClustered, blocks share no tiles.
Products of fewer than four steps along k are padded with zeros. A consumer fills a buffer with 128 bytes of each of its
64 rows; then one of its threads starts to write it. Findings: results/reference/notes/tensor_cores.md.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import lcm, prod

from smembench.kernels.intrinsics.bulk_copy import ROW_BYTES, TILE_ALIGNMENT, prefetch_map, wait_for_phase
from smembench.kernels.intrinsics.bulk_store import commit_stores, finish_stores, start_store
from smembench.kernels.intrinsics.warp_group import (
    GROUP,
    ROWS,
    add_registers,
    begin_products,
    commit_products,
    finish_products,
    give_registers,
    own_group,
    settling,
)
from smembench.kernels.matmul.cuda import wgmma_stored
from smembench.kernels.matmul.cuda.wgmma_persistent import fewest, in_order, placing
from smembench.kernels.matmul.cuda.wgmma_specialized import (
    CONSUMER_REGISTERS,
    CONSUMERS,
    PRODUCER_REGISTERS,
    THREADS,
    PipelineState,
    next_state,
    release,
    setting_up,
    starting_step,
)
from smembench.kernels.matmul.cuda.wgmma_stored import HEIGHT, TILES, buffering, quickest
from smembench.kernels.matmul.warp_groups import (
    BUFFERS,
    Maps,
    Member,
    Stages,
    Tile,
    hand_over,
    part_of_products,
    shared_elements,
)
from smembench.kernels.numba_cuda import DeviceFunction, cuda, device, number, uint32
from smembench.kernels.program import NumbaKernel, TensorMap
from smembench.kernels.types import Array, Index, Place
from smembench.model.case import Case
from smembench.model.formats import produced
from smembench.model.hardware import WARP
from smembench.model.problem import ITEMSIZE

EDGE = 2
"""Steps along k at either end of a tile that are done half by half; there are at least twice as many stages."""
HALVED = tuple(replace(tile, halved=True) for tile in TILES if tile.columns in (256, 128))
"""Tiles whose halves are one or two copies of 128 bytes wide."""


def tile_of(case: Case) -> Tile:
    """The one with the fewest cycles."""
    return quickest(case, (tile.of(case) for tile in HALVED))


def copying_back_and_forth(tile: Tile) -> DeviceFunction:
    """``(stages, state, maps, place, back, k)``: all copies along k, the last one first if ``back``, by one thread.

    Returns the next state.
    """
    copy, depth, after = tile.copies(), tile.depth, next_state(tile.stages)

    def producer_loop(
        stages: Stages, state: PipelineState, maps: Maps, place: Place, back: Index, k: Index
    ) -> PipelineState:
        last = (k - 1) // depth * depth
        for k0 in range(0, k, depth):
            wait_for_phase(stages.empty, state.stage, 1 - state.phase)
            copy(stages, state.stage, maps, place, uint32(last - k0) if back else uint32(k0))
            state = after(state)
        return state

    return device(producer_loop)


def starting(tile: Tile, half: int, *, fresh: bool) -> DeviceFunction:
    """``(accumulators, stages, state, member)``: start a half's products of ``EDGE`` steps.

    ``state`` is that of the first of them. If they are ``fresh`` they are a tile's first ones.
    """
    begin, go_on = part_of_products(tile, half, fresh=fresh), part_of_products(tile, half)
    elements, after = tile.elements, next_state(tile.stages)

    def start(accumulators: Array, stages: Stages, state: PipelineState, member: Member) -> None:
        wait_for_phase(stages.full, state.stage, state.phase)
        begin_products()
        begin(accumulators, stages.tiles, state.stage * elements, member)
        for _ in range(1, EDGE):
            state = after(state)
            wait_for_phase(stages.full, state.stage, state.phase)
            go_on(accumulators, stages.tiles, state.stage * elements, member)
        commit_products()

    return device(start)


def skipping(tile: Tile) -> DeviceFunction:
    """``(state)``: the state ``EDGE`` stages on."""
    after = next_state(tile.stages)

    def skip(state: PipelineState) -> PipelineState:
        for _ in range(EDGE):
            state = after(state)
        return state

    return device(skip)


def releasing(tile: Tile) -> DeviceFunction:
    """``(empty, state, count, thread)``: release ``count`` stages from this one on; returns the state after them."""
    after = next_state(tile.stages)

    def release_all(empty: Array, state: PipelineState, count: Index, thread: Index) -> PipelineState:
        for _ in range(count):
            release(empty, state.stage, thread)
            state = after(state)
        return state

    return device(release_all)


def multiplying(tile: Tile) -> DeviceFunction:
    """``(accumulators, stages, state, member, k)``: main loop of a tile whose first left products have been started.

    On return the left half's results are complete and the right half's last products are still in flight. Returns the
    state of the last ``EDGE`` steps, whose stages are not yet released.
    """
    begin_right = starting(tile, 1, fresh=True)
    end_left, end_right = (starting(tile, half, fresh=False) for half in (0, 1))
    start_step, release_all, skip = starting_step(tile), releasing(tile), skipping(tile)
    settle_left = settling(tile.sums // 2)
    after, depth = next_state(tile.stages), tile.depth

    def main_loop(accumulators: Array, stages: Stages, state: PipelineState, member: Member, k: Index) -> PipelineState:
        begin_right(accumulators, stages, state, member)
        unread, count = state, uint32(EDGE)
        state = skip(state)
        for _ in range(2 * EDGE * depth, k, depth):
            start_step(accumulators, stages, state, member)
            finish_products(1)
            unread = release_all(stages.empty, unread, count, member.thread)
            count = uint32(1)
            state = after(state)
        end_left(accumulators, stages, state, member)
        finish_products(1)
        release_all(stages.empty, unread, count, member.thread)
        end_right(accumulators, stages, state, member)
        finish_products(1)
        settle_left(accumulators)
        return state

    return device(main_loop)


def storing(tile: Tile, half: int) -> DeviceFunction:
    """``(shared, accumulators, c_map, place, member)``: start to write half of a thread's results of the tile.

    ``shared``: shared memory as elements of C. There is a barrier per buffer, when it is full and the other one, which
    is filled next, has been read. A tile has an even number of them.
    """
    dtype, begin = produced(tile.dtype), tile.after_stages
    fill, width = buffering(dtype, ROW_BYTES), ROW_BYTES // ITEMSIZE[dtype]
    parts, size, of_warp = tile.columns // width // 2, ROWS * width, HEIGHT * width

    def write(shared: Array, accumulators: Array, c_map: Index, place: Place, member: Member) -> None:
        for part in range(half * parts, (half + 1) * parts):
            at = begin + (member.group * BUFFERS + part % BUFFERS) * size
            fill(shared, at + member.thread // WARP * of_warp, accumulators, part, member.thread % WARP)
            hand_over(member)
            if member.thread == 0:
                start_store(c_map, place.col + uint32(part * width), place.row + member.group * ROWS, shared, at)
                commit_stores()

    return device(write)


def build(case: Case) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc, a_map, b_map, c_map)``."""
    element, result, barrier = number(case.dtype), number(produced(case.dtype)), number("uint64")
    float32 = number("float32")
    tile = tile_of(case)
    rows, columns, depth, stage_count, sums = tile.rows, tile.columns, tile.depth, tile.stages, tile.sums
    set_up_barriers, producer_loop, place_of = setting_up(stage_count), copying_back_and_forth(tile), placing(tile)
    begin_left, main_loop, release_all = starting(tile, 0, fresh=True), multiplying(tile), releasing(tile)
    write_left, write_right, skip = storing(tile, 0), storing(tile, 1), skipping(tile)
    least, settle_right = 2 * EDGE * depth, settling(sums // 2, sums // 2)

    def wgmma_overlapped(
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
        k = max(k, uint32(least))  # beyond k tiles are zeros
        tile_index = cuda.blockIdx.x
        if group == 0:
            give_registers(PRODUCER_REGISTERS)
            while thread == 0 and tile_index < tiles_down * tiles_across:
                back = tile_index // cuda.gridDim.x % 2
                state = producer_loop(stages, state, maps, place_of(tile_index, tiles_down, tiles_across, k), back, k)
                tile_index += cuda.gridDim.x
        else:
            add_registers(CONSUMER_REGISTERS)
            member = Member(group - 1, thread)
            if tile_index < tiles_down * tiles_across:
                begin_left(accumulators, stages, state, member)
            while tile_index < tiles_down * tiles_across:
                place = place_of(tile_index, tiles_down, tiles_across, k)
                state = main_loop(accumulators, stages, state, member, k)
                write_left(buffers, accumulators, c_map, place, member)
                unread = state
                state = skip(state)
                tile_index += cuda.gridDim.x
                if tile_index < tiles_down * tiles_across:
                    begin_left(accumulators, stages, state, member)
                    finish_products(1)
                else:
                    finish_products(0)
                settle_right(accumulators)
                release_all(empty, unread, EDGE, thread)
                write_right(buffers, accumulators, c_map, place, member)
            finish_products(0)  # none is left; without this wait ptxas adds one elsewhere (C7517)
            finish_stores(0)

    grid = tile.grid(case)
    return NumbaKernel(
        wgmma_overlapped,
        grid=grid,
        block=(THREADS, 1),
        dynamic_bytes=tile.shared_bytes,
        tensor_maps=(*tile.maps(case), TensorMap(0, case.m, case.n, case.n, ROWS)),
        launch_bounds=(THREADS, 1),
        variant=str(columns),
        persistent_blocks=partial(fewest, prod(grid)),
        grid_dependent=True,
        tile_of=in_order(tile, case),
        edge_steps=2 * EDGE,
    )


KERNEL = replace(
    wgmma_stored.KERNEL,
    name="wgmmaOverlapped",
    summary="wgmmaStored, whose tensor cores multiply while results are written",
    build=build,
    results=(lcm(*(tile.columns for tile in HALVED)), wgmma_stored.WIDE.rows),
    tile_elements=shared_elements(tile_of),
    dynamic_elements=shared_elements(tile_of),
    ladder="tensor cores multiply while results are written",
)
