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

from smembench.kernels.intrinsics.bulk_copy import (
    ROW_BYTES,
    TILE_ALIGNMENT,
    arrive,
    place_in_tile,
    prefetch_map,
    publish_barriers,
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
    meet_group,
    own_group,
    settling,
)
from smembench.kernels.matmul.cuda import wgmma_stored
from smembench.kernels.matmul.tile_choice import fewest, in_order, quickest, shared_elements
from smembench.kernels.matmul.warp_groups import (
    BUFFERS,
    TILES,
    Member,
    PipelineState,
    Stages,
    Tile,
    copies,
    next_state,
    part_of_products,
    placing,
    products_of,
)
from smembench.kernels.numba_cuda import DeviceFunction, cuda, device, number, uint32
from smembench.kernels.program import NumbaKernel, TensorMap
from smembench.kernels.types import Array, Index, Map, Place
from smembench.model.case import Case
from smembench.model.formats import produced
from smembench.model.hardware import WARP
from smembench.model.problem import ITEMSIZE

EDGE = 2
"""Steps along k at either end of a tile that are done half by half; there are at least twice as many stages."""
HALVED = tuple(replace(tile, halved=True) for tile in TILES if tile.columns in (256, 128))
"""Tiles whose halves are one or two copies of 128 bytes wide."""
CONSUMERS, THREADS, PRODUCER_REGISTERS, CONSUMER_REGISTERS = 2, 3 * GROUP, 56, 224


def tile_of(case: Case) -> Tile:
    """The one with the fewest cycles."""
    return quickest(case, HALVED)


def build(case: Case) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc, a_map, b_map, c_map)``."""
    element, float32, barrier = number(case.dtype), number("float32"), number("uint64")
    tile, dtype = tile_of(case), produced(case.dtype)
    rows, columns, depth, stage_count, sums = tile.rows, tile.columns, tile.depth, tile.stages, tile.sums
    stage_elements, result, least = tile.elements, number(dtype), 2 * EDGE * depth
    # A consumer's buffer has 128 bytes of each of its 64 rows; a half of the tile takes as many as ``half_parts``.
    width, begin, place_in = ROW_BYTES // ITEMSIZE[dtype], tile.after_stages, place_in_tile(ITEMSIZE[dtype])
    half_parts, buffer_elements, pairs, store = columns // width // 2, ROWS * width, width // 4, store_pair(dtype)
    copy, multiply, after, place_of = copies(tile), products_of(tile), next_state(tile.stages), placing(tile)
    settle_left, settle_right = settling(sums // 2), settling(sums // 2, sums // 2)

    def starting(half: int, *, fresh: bool) -> DeviceFunction:
        """Start a half's products of ``EDGE`` steps, ``state`` that of the first; ``fresh`` ones are a tile's first."""
        first, others = part_of_products(tile, half, fresh=fresh), part_of_products(tile, half)

        def start(accumulators: Array, stages: Stages, state: PipelineState, member: Member) -> None:
            wait_for_phase(stages.full, state.stage, state.phase)
            begin_products()
            first(accumulators, stages.tiles, state.stage * stage_elements, member)
            for _ in range(1, EDGE):
                state = after(state)
                wait_for_phase(stages.full, state.stage, state.phase)
                others(accumulators, stages.tiles, state.stage * stage_elements, member)
            commit_products()

        return device(start)

    begin_left, begin_right = starting(0, fresh=True), starting(1, fresh=True)
    end_left, end_right = starting(0, fresh=False), starting(1, fresh=False)

    @device
    def release(empty: Array, state: PipelineState, count: Index, thread: Index) -> PipelineState:
        """Release ``count`` stages that a consumer has read: one of its threads arrives at their empty barriers."""
        for _ in range(count):
            if thread == 0:
                arrive(empty, state.stage)
            state = after(state)
        return state

    def writing(half: int) -> DeviceFunction:
        """Start to write half of a thread's results; ``shared``: shared memory as elements of C."""

        def write(shared: Array, accumulators: Array, c_map: Map, place: Place, member: Member) -> None:
            lane, warp = member.thread % WARP, member.thread // WARP
            for part in range(half * half_parts, (half + 1) * half_parts):
                at = begin + (member.group * BUFFERS + part % BUFFERS) * buffer_elements
                at_warp = at + warp * (16 * width)
                for pair in range(pairs):  # two neighbours of every second 8 × 8 results
                    row, col = lane // 4 + uint32(pair % 2 * 8), uint32(pair // 2 * 8) + lane % 4 * 2
                    first = part * (width // 2) + pair * 2
                    store(shared, at_warp + place_in(row, col), accumulators[first], accumulators[first + 1])
                publish_tile()
                if member.thread == 0:
                    finish_stores(0)
                # The buffer is full, and the other one, which is filled next, has been read.
                meet_group(member.group + 1)
                if member.thread == 0:
                    start_store(c_map, place.col + uint32(part * width), place.row + member.group * ROWS, shared, at)
                    commit_stores()

        return device(write)

    write_left, write_right = writing(0), writing(1)

    def wgmma_overlapped(
        c: Array, a: Array, b: Array, m: Index, n: Index, k: Index, lda: Index, ldb: Index, ldc: Index,
        a_map: Map, b_map: Map, c_map: Map,
    ) -> None:  # fmt: skip
        # (stages, 128 rows of A and then columns of B, 128 bytes along k)
        tiles = cuda.shared.array(0, element, alignment=TILE_ALIGNMENT)
        buffers = cuda.shared.array(0, result, alignment=TILE_ALIGNMENT)  # the same memory; buffers follow the stages
        full = cuda.shared.array(stage_count, barrier)
        empty = cuda.shared.array(stage_count, barrier)
        stages = Stages(tiles, full, empty)
        accumulators = cuda.local.array(sums, float32)  # of a consumer's thread: (2 halves, columns / 16, 2 × 2)
        group, thread = own_group(), cuda.threadIdx.x % GROUP
        tiles_down, tiles_across = (m + (rows - 1)) // rows, (n + (columns - 1)) // columns
        if cuda.threadIdx.x == 0:
            prefetch_map(a_map)
            prefetch_map(b_map)
            prefetch_map(c_map)
            for stage in range(stage_count):
                set_barrier(full, stage, 1)
                set_barrier(empty, stage, CONSUMERS)
            publish_barriers()
        cuda.syncthreads()
        state, tile_index = PipelineState(uint32(0), uint32(0)), cuda.blockIdx.x
        k = max(k, uint32(least))  # beyond k tiles are zeros
        if group == 0:
            give_registers(PRODUCER_REGISTERS)
            while thread == 0 and tile_index < tiles_down * tiles_across:
                # Every second tile from its last step to its first: what the tile before read last is in the L2.
                back = tile_index // cuda.gridDim.x % 2
                place = place_of(tile_index, tiles_down, tiles_across, k)
                last = (k - 1) // depth * depth
                for k0 in range(0, k, depth):
                    wait_for_phase(empty, state.stage, 1 - state.phase)
                    copy(stages, state.stage, a_map, b_map, place, uint32(last - k0) if back else uint32(k0), n)
                    state = after(state)
                tile_index += cuda.gridDim.x
        else:
            add_registers(CONSUMER_REGISTERS)
            member = Member(group - 1, thread)
            if tile_index < tiles_down * tiles_across:
                begin_left(accumulators, stages, state, member)
            while tile_index < tiles_down * tiles_across:
                place = place_of(tile_index, tiles_down, tiles_across, k)
                # The left half of the first steps is in flight; the right half follows.
                begin_right(accumulators, stages, state, member)
                unread, count = state, uint32(EDGE)
                for _ in range(EDGE):
                    state = after(state)
                for _ in range(least, k, depth):  # the steps in between, both halves at once
                    wait_for_phase(full, state.stage, state.phase)
                    begin_products()
                    multiply(accumulators, tiles, state.stage * stage_elements, member)
                    commit_products()
                    finish_products(1)
                    unread = release(empty, unread, count, thread)
                    count = uint32(1)
                    state = after(state)
                end_left(accumulators, stages, state, member)
                finish_products(1)
                release(empty, unread, count, thread)
                end_right(accumulators, stages, state, member)
                finish_products(1)  # the left half's results are complete; the right half's are in flight
                settle_left(accumulators)
                write_left(buffers, accumulators, c_map, place, member)
                unread = state
                for _ in range(EDGE):
                    state = after(state)
                tile_index += cuda.gridDim.x
                if tile_index < tiles_down * tiles_across:
                    begin_left(accumulators, stages, state, member)
                    finish_products(1)  # the right half's results are complete
                else:
                    finish_products(0)
                settle_right(accumulators)
                release(empty, unread, EDGE, thread)
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
        tile_of=in_order(tile, case),
    )


KERNEL = replace(
    wgmma_stored.KERNEL,
    name="wgmmaOverlapped",
    summary="wgmmaStored, whose tensor cores multiply while results are written",
    build=build,
    results=(lcm(*(tile.columns for tile in HALVED)), HALVED[0].rows),
    tile_elements=shared_elements(tile_of),
    dynamic_elements=shared_elements(tile_of),
    ladder="tensor cores multiply while results are written",
)
