"""wgmmaClustered: wgmmaStored in clusters of two or four blocks, which share tiles of B or of A, or without clusters.

1. Blocks one below the other need the same tile of B, blocks beside each other the same tile of A. They take turns to
   copy it to all of them by multicast, step by step along k; the tile of the other matrix each copies for itself.
2. A stage is empty when the consumers of all blocks have read it: they arrive at the barriers of all.
3. A block ends when all have read all of its stages, since its barriers end with it.
4. A tile that would reach beyond an edge of C is moved inwards, since copies of zeros are slow.
5. Two warp groups may alternate ("ping-pong"): while one writes its results, the other multiplies the next tile. It
   starts when the first has started all steps of its own, so that no phase of a barrier is taken for another.

So with tiles of 128 × 256 two blocks take 32 KiB each per stage from the L2, not 48. Tiles of 128 rows may leave most
of the last wave empty, so the operands can be swapped ("swap AB"): the 64 rows per instruction are then columns of B,
and one to three consumers take any multiple of 8 rows. Without a swap they take 128, 192 or 256 rows and, with B by
columns, any multiple of 8 columns. Small products are faster without clusters. Where rows of A begin within lines of
128 bytes, most copied rows touch two lines, so a tile's rows may lie apart (cluster_tiles.py).
Findings: results/reference/notes/tensor_cores.md and few_rows.md.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from smembench.kernels.intrinsics.bulk_copy import (
    TILE_ALIGNMENT,
    arrive,
    place_in_tile,
    prefetch_map,
    publish_barriers,
    set_barrier,
    wait_for_phase,
)
from smembench.kernels.intrinsics.bulk_store import commit_stores, finish_stores, publish_tile
from smembench.kernels.intrinsics.clusters import meet_cluster
from smembench.kernels.intrinsics.halves import store_pair
from smembench.kernels.intrinsics.rows_apart import storing_rows
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
from smembench.kernels.matmul import cluster_tiles
from smembench.kernels.matmul.cuda import wgmma_stored
from smembench.kernels.matmul.tile_choice import SHARED, clusters_at_once, fewest, in_order, quickest, shared_elements
from smembench.kernels.matmul.warp_groups import (
    BUFFERS,
    Member,
    PipelineState,
    Stages,
    Tile,
    later_state,
    next_state,
    products_of,
)
from smembench.kernels.numba_cuda import cuda, device, number, uint32
from smembench.kernels.program import NumbaKernel, TensorMap
from smembench.kernels.types import Array, Index, Map, Place
from smembench.model.case import Case
from smembench.model.formats import produced
from smembench.model.hardware import WARP
from smembench.model.problem import ITEMSIZE

APART = (1, 2, 4, 8)
"""Distances between neighbouring rows of a tile, in rows of C, that are tried where they divide the number of these."""
REGISTERS = {1: (56, 240), 2: (56, 224), 3: (32, 160)}
"""Registers per thread of the producer's group and of a consumer's, by the number of consumers."""


@cache
def tile_of(case: Case) -> Tile:
    """The one with the fewest cycles.

    It is one of rows that lie apart where rows begin within a sector, since of these more begin at a sector's start. It
    is a swapped one where its rows fill waves that others leave half empty.
    """
    return quickest(case, _tiles())


@cache
def _tiles() -> tuple[Tile, ...]:
    """Made when they are first needed, which takes milliseconds.

    Ping-pong tiles have neighbouring rows, so that all of them have as many steps.
    """
    return tuple(replace(tile, apart=apart) for apart in APART for tile in SHARED if apart == 1 or not tile.ping_pong)


def build(case: Case) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc, a_map, b_map, c_map)``."""
    tile, dtype = tile_of(case), produced(case.dtype)
    element, result, barrier, float32 = number(case.dtype), number(dtype), number("uint64"), number("float32")
    rows, columns, depth, stage_count, sums = tile.rows, tile.columns, tile.depth, tile.stages, tile.sums
    consumers, groups, (fewer, more), apart = tile.consumers, tile.groups, REGISTERS[tile.groups], tile.apart
    stage_elements, share_b, share_a, cluster = tile.elements, tile.share_b, tile.share_a, tile.cluster
    multiply, after, others = products_of(tile), next_state(stage_count), BUFFERS - 1
    takers, later = groups // consumers, later_state(stage_count)  # takers: tiles at once
    place_of, line_of = cluster_tiles.placing_in_clusters(tile), cluster_tiles.line_before(tile)
    copy, release, start_store = cluster_tiles.copying(tile), cluster_tiles.releasing(cluster), storing_rows(apart)
    # A warp's buffer has 128 or 64 bytes of each of 16 rows; the last one across may have some columns again.
    row_bytes, begin = tile.stored_bytes, tile.after_stages
    width, place_in = row_bytes // ITEMSIZE[dtype], place_in_tile(ITEMSIZE[dtype], row_bytes)
    boxes, parts, buffer_elements = -(-columns // width), tile.parts, 16 * width
    pairs, store = width // 4, store_pair(dtype)

    @device
    def start_step(accumulators: Array, stages: Stages, state: PipelineState, member: Member) -> None:
        """Wait for a full stage, start its products and commit them."""
        wait_for_phase(stages.full, state.stage, state.phase)
        begin_products()
        multiply(accumulators, stages.tiles, state.stage * stage_elements, member)
        commit_products()

    @device
    def write(shared: Array, accumulators: Array, c_map: Map, place: Place, member: Member) -> None:
        """Start to write a thread's results, as in wgmmaStored; ``shared``: shared memory as elements of C."""
        lane, warp = member.thread % WARP, member.group * (GROUP // WARP) + member.thread // WARP
        if boxes * parts % BUFFERS and lane == 0:
            finish_stores(0)  # the last tile ended with the buffer that this one begins with
        for part in range(parts):
            first_row = place.row + (warp * 16 + (member.group * (parts - 1) + uint32(part)) * ROWS) * apart
            for box in range(boxes):
                start = min(box * width, columns - width)
                at = begin + (warp * BUFFERS + (part * boxes + box) % BUFFERS) * buffer_elements
                if lane == 0:
                    finish_stores(others)  # the buffer has been read
                cuda.syncwarp()
                for pair in range(pairs):
                    row, col = lane // 4 + uint32(pair % 2 * 8), uint32(pair // 2 * 8) + lane % 4 * 2
                    first = (part * columns + start) // 2 + pair * 2
                    store(shared, at + place_in(row, col), accumulators[first], accumulators[first + 1])
                publish_tile()
                cuda.syncwarp()
                if lane == 0:
                    start_store(c_map, place.col + uint32(start), first_row, shared, at)
                    commit_stores()

    write_tile = cluster_tiles.storing(tile) if tile.swapped else write

    def wgmma_clustered(
        c: Array, a: Array, b: Array, m: Index, n: Index, k: Index, lda: Index, ldb: Index, ldc: Index,
        a_map: Map, b_map: Map, c_map: Map,
    ) -> None:  # fmt: skip
        # (stages, rows of A and then columns of B, 128 bytes along k)
        tiles = cuda.shared.array(0, element, alignment=TILE_ALIGNMENT)
        buffers = cuda.shared.array(0, result, alignment=TILE_ALIGNMENT)  # the same memory; buffers follow the stages
        full = cuda.shared.array(stage_count, barrier)
        empty = cuda.shared.array(stage_count, barrier)
        turns = cuda.shared.array(takers, barrier)  # by group: the other one has started all steps of its tile
        stages = Stages(tiles, full, empty)
        accumulators = cuda.local.array(sums, float32)
        group, thread = own_group(), cuda.threadIdx.x % GROUP
        tiles_down = apart * ((m // apart + (share_b * rows - 1)) // (share_b * rows))
        tiles_across = (n + (share_a * columns - 1)) // (share_a * columns)
        if cuda.threadIdx.x == 0:
            prefetch_map(a_map)
            prefetch_map(b_map)
            prefetch_map(c_map)
            for stage in range(stage_count):
                set_barrier(full, stage, 1)
                set_barrier(empty, stage, cluster * consumers)
            if takers > 1:
                for taker in range(takers):
                    set_barrier(turns, taker, 1)
            publish_barriers()
        if cluster > 1:
            meet_cluster()
        else:
            cuda.syncthreads()
        state, cluster_index = PipelineState(uint32(0), uint32(0)), cuda.blockIdx.x // cluster
        clusters = cuda.gridDim.x // cluster
        if group == 0:
            give_registers(fewer)
            if thread == 0:
                while cluster_index < tiles_down * tiles_across:
                    place = place_of(cluster_index, tiles_down, tiles_across, k, Place(m, n))
                    for k0 in range(line_of(place, lda), k, depth):
                        wait_for_phase(empty, state.stage, 1 - state.phase)
                        copy(stages, state.stage, a_map, b_map, place, k0, Place(m, n))
                        state = after(state)
                    cluster_index += clusters
                # A block's barriers end with it: wait until both have read all stages.
                for _ in range(stage_count):
                    wait_for_phase(empty, state.stage, 1 - state.phase)
                    state = after(state)
        else:
            add_registers(more)
            turn = (group - 1) % takers
            member, consumer = Member(group - 1, thread), Member(group - 1 - turn, thread)
            if takers > 1:
                cluster_index += turn * clusters
                state = later(state, turn * ((k + (depth - 1)) // depth))
            waited = 1 - turn  # nobody precedes the first group's first tile: that phase is over
            while cluster_index < tiles_down * tiles_across:
                place = place_of(cluster_index, tiles_down, tiles_across, k, Place(m, n))
                along = k - line_of(place, lda)
                for i in range(sums):
                    accumulators[i] = 0
                if takers > 1:
                    wait_for_phase(turns, turn, waited % 2)
                    waited += 1
                before = state.stage
                for k0 in range(depth, along, depth):
                    start_step(accumulators, stages, state, consumer)
                    finish_products(1)
                    if k0 > depth:
                        release(empty, before, thread)
                    before, state = state.stage, after(state)
                start_step(accumulators, stages, state, consumer)
                if takers > 1 and thread == 0:
                    arrive(turns, 1 - turn)
                finish_products(0)
                if along > depth:
                    release(empty, before, thread)
                release(empty, state.stage, thread)
                state = after(state)
                write_tile(buffers, accumulators, c_map, place, member)
                cluster_index += takers * clusters
                if takers > 1:
                    state = later(state, (along + (depth - 1)) // depth)  # the other group's steps
            finish_stores(0)

    (across, high), order = tile.grid(case), in_order(tile, case)

    def of_block(block: int) -> tuple[int, int]:
        (column, row), rank = order(block // cluster), block % cluster
        return share_a * column + rank // share_b, share_b * row + rank % share_b

    (a_map, b_map), threads = tile.maps(case), (1 + groups) * GROUP
    height = cluster_tiles.box_rows(tile) if tile.swapped else 16
    c_map = TensorMap(0, case.m, case.n, case.n, height, apart=apart, row_bytes=row_bytes)
    return NumbaKernel(
        wgmma_clustered,
        grid=(share_a * across, share_b * high),
        block=(threads, 1),
        cluster=cluster,
        dynamic_bytes=tile.shared_bytes,
        tensor_maps=(a_map, b_map, c_map),
        launch_bounds=(threads, 1),
        variant=f"{rows}x{columns}{', swapped' * (tile.swapped > 0)}{', ping-pong' * tile.ping_pong}"
        f"{f', rows {apart} apart' * (apart > 1)}" + tile.sharing,
        persistent_blocks=lambda units: fewest(across * high, clusters_at_once(units, cluster)) * cluster,
        tile_of=of_block,
        parts=apart,
    )


KERNEL = replace(
    wgmma_stored.KERNEL,
    name="wgmmaClustered",
    summary="wgmmaStored in clusters of two or four blocks, which share tiles of B or of A",
    build=build,
    tile_elements=shared_elements(tile_of),
    dynamic_elements=shared_elements(tile_of),
    ladder="two or four blocks share their tiles of B or of A",
)
