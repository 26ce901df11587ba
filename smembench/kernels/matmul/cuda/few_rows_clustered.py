"""fewRowsClustered: wgmmaSpecialized for up to 128 rows, whose few tiles are split along k among a cluster's blocks.

1. The operands are swapped ("swap AB"): the 64 rows per ``wgmma`` are columns of B, so a tile may have 16 rows of A.
2. A cluster of up to 3 blocks computes a tile: each has a part of k, so that nearly all multiprocessors read B at once,
   through as many stages as fit shared memory.
3. A block leaves its sums in shared memory, where its stages were. After a barrier of the cluster each block adds up a
   part of all blocks' sums, through distributed shared memory, rounds and writes it.
4. A block ends when all have read its sums.

Findings: results/reference/notes/few_rows.md.
"""

from __future__ import annotations

from smembench.kernels.common.grids import ceil_div
from smembench.kernels.intrinsics.bulk_copy import (
    ROW_BYTES,
    TILE_ALIGNMENT,
    acquire_map,
    arrive,
    expect_bytes,
    prefetch_map,
    start_copy,
    publish_barriers,
    set_barrier,
    wait_for_phase,
)
from smembench.kernels.intrinsics.clusters import arrive_at, arrive_at_cluster, meet_cluster, send_vector, start_copy_to_all, wait_for_cluster
from smembench.kernels.intrinsics.halves import store_pair
from smembench.kernels.intrinsics.vector import ALIGNMENT, load_vector
from smembench.kernels.intrinsics.warp_group import (
    GROUP,
    ROWS,
    begin_products,
    commit_products,
    finish_products,
    own_group,
)
from smembench.kernels.kernel import Kernel
from smembench.kernels.matmul.tile_choice import shared_elements, unsupported
from smembench.kernels.matmul.warp_groups import Member, PipelineState, Stages, Tile, next_state, products_of
from smembench.kernels.numba_cuda import SIMULATED, cuda, device, number, uint32
from smembench.kernels.program import NumbaKernel
from smembench.kernels.types import Array, Index, Place
from smembench.model.case import BY_COLUMNS, BY_ROWS, Case
from smembench.model.formats import NARROW, produced
from smembench.model.problem import ITEMSIZE
from smembench.model.hardware import SM90_MULTIPROCESSORS, WARP

ALL_LANES = 0xFFFFFFFF
STAGE_BYTES = 176 * 1024
"""Shared memory of all stages, at most."""
COLUMNS = 128
HEIGHTS = (16, 32, 64, 128)
"""Rows of a tile."""
MOST_BLOCKS = 3
"""Of a cluster: those of four were slower on an H200."""


def tile_of(case: Case) -> Tile:
    """The lowest one that has all rows, with as many stages as fit."""
    rows = next((rows for rows in HEIGHTS if rows >= case.m), max(HEIGHTS))
    stages = STAGE_BYTES // ((rows + COLUMNS) * ROW_BYTES)
    return Tile(rows=rows, columns=COLUMNS, stages=stages, swapped=True).of(case)


def cluster_of(case: Case) -> int:
    """Blocks per tile: as many as find a multiprocessor each, and a step along k."""
    tile = tile_of(case)
    across, down = tile.grid(case)
    most = max(1, SM90_MULTIPROCESSORS // (across * down))
    return 1 if SIMULATED else min(MOST_BLOCKS, most, ceil_div(case.depth, tile.depth))


def maps(tile, case, shared_by):
    of_a, of_b = tile.maps(case)
    return of_a._replace(tile_rows=tile.rows // shared_by), of_b


def copies(tile: Tile, shared_by: int):
    a_elements, elements, columns, depth = tile.a_elements, tile.elements, tile.columns, tile.depth
    itemsize, by_rows = ITEMSIZE[tile.dtype], tile.b_layout == BY_ROWS
    size, piece, of_a, rows = elements * itemsize, tile.piece_bytes // itemsize, tile.a_elements // shared_by, tile.rows // shared_by

    def copy(stages, stage, a_map, b_map, place, k0) -> None:
        at = stage * elements
        expect_bytes(stages.full, stage, size)
        at_b = at + a_elements
        if by_rows:
            for column in range(0, columns, piece):
                to = at_b + uint32(column) * depth
                start_copy(stages.tiles, to, b_map, place.col + uint32(column), k0, stages.full, stage)
        else:
            start_copy(stages.tiles, at_b, b_map, k0, place.col, stages.full, stage)
        if shared_by > 1:
            rank = uint32(cuda.blockIdx.x % shared_by)
            start_copy_to_all(stages.tiles, at + rank * of_a, a_map, k0, place.row + rank * rows, stages.full, stage)
        else:
            start_copy(stages.tiles, at, a_map, k0, place.row, stages.full, stage)

    return device(copy)


def build(case: Case, tile: Tile | None = None, split: int = 0, shared_by: int = 1, early: bool = True, twice: bool = False) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc, a_map, b_map)``."""
    tile, split = tile.of(case) if tile else tile_of(case), split or cluster_of(case)
    if SIMULATED:
        split = shared_by = 1
    cluster = split * shared_by
    element, float32, barrier = number(case.dtype), number("float32"), number("uint64")
    rows, columns, depth, stage_count, sums = tile.rows, tile.columns, tile.depth, tile.stages, tile.sums
    stage_elements, eights, parts = tile.elements, rows // 8, sums // 4
    parts_per_block = ceil_div(parts, split)
    received_elements = max(1, (split - 1) * parts_per_block) * GROUP * 4
    own_sums = parts_per_block * 4
    part_bytes = (split - 1) * GROUP * 16
    at_once = 2 if twice else 1
    copy, multiply, after = copies(tile, shared_by), products_of(tile), next_state(stage_count)
    store = store_pair(produced(case.dtype))

    def few_rows_clustered(
        c: Array, a: Array, b: Array, m: Index, n: Index, k: Index, lda: Index, ldb: Index, ldc: Index,
        a_map: Index, b_map: Index,
    ) -> None:  # fmt: skip
        # (stages, rows of A and then columns of B, 128 bytes along k)
        tiles = cuda.shared.array(0, element, alignment=TILE_ALIGNMENT)
        received = cuda.shared.array(received_elements, float32, alignment=ALIGNMENT)  # (blocks, parts, threads, 4)
        full = cuda.shared.array(stage_count, barrier)
        empty = cuda.shared.array(stage_count, barrier)
        complete = cuda.shared.array(1, barrier)
        stages = Stages(tiles, full, empty)
        accumulators = cuda.local.array(sums, float32)  # of a consumer's thread: (columns / 64, rows / 8, 2, 2)
        own = cuda.local.array(own_sums, float32)  # of the block's share of these parts
        rank = cuda.blockIdx.x % cluster
        part_of_k = rank if split > 1 else uint32(0)
        place = Place(cuda.blockIdx.y * rows, cuda.blockIdx.x // split * columns)
        group, thread = own_group(), cuda.threadIdx.x % GROUP
        if early and cuda.threadIdx.x == 0:
            acquire_map(a_map)
            acquire_map(b_map)
            prefetch_map(b_map)
            prefetch_map(a_map)
        if cuda.threadIdx.x == (WARP if early else 0):
            for stage in range(stage_count):
                set_barrier(full, stage, 1)  # the thread that copies; the bytes are counted beside
                set_barrier(empty, stage, shared_by)
            if split > 1:
                set_barrier(complete, 0, 1)
                expect_bytes(complete, 0, (parts + (split - 1) - part_of_k) // split * part_bytes)
            publish_barriers()
            if not early:
                acquire_map(a_map)
                acquire_map(b_map)
        cuda.syncthreads()
        if cluster > 1:
            arrive_at_cluster()
        steps = (k + (depth - 1)) // depth
        first, end = part_of_k * steps // split * depth, (part_of_k + 1) * steps // split * depth
        state = PipelineState(uint32(0), uint32(0))
        if group == 0:
            if thread == 0:
                if shared_by > 1:
                    wait_for_cluster()
                if twice:
                    for k0 in range(first, end, 2 * depth):
                        wait_for_phase(empty, state.stage, 1 - state.phase)
                        if k0 + depth < end:
                            wait_for_phase(empty, after(state).stage, 1 - after(state).phase)
                        copy(stages, state.stage, a_map, b_map, place, k0)
                        state = after(state)
                        if k0 + depth < end:
                            copy(stages, state.stage, a_map, b_map, place, k0 + depth)
                            state = after(state)
                else:
                    for k0 in range(first, end, depth):
                        wait_for_phase(empty, state.stage, 1 - state.phase)
                        copy(stages, state.stage, a_map, b_map, place, k0)
                        state = after(state)
            if cluster > 1 and (shared_by == 1 or thread > 0):
                wait_for_cluster()
        else:
            for i in range(sums):
                accumulators[i] = 0
            member, before = Member(0, thread), state.stage
            for k0 in range(first, end, depth):
                wait_for_phase(full, state.stage, state.phase)
                begin_products()
                multiply(accumulators, tiles, state.stage * stage_elements, member)
                commit_products()
                finish_products(1)  # all but the newest: the stage before has been read
                if k0 > first and thread < shared_by:
                    if shared_by > 1:
                        arrive_at(empty, before, uint32(thread))
                    else:
                        arrive(empty, before)
                before, state = state.stage, after(state)
            finish_products(0)
            if cluster > 1:
                wait_for_cluster()  # the other blocks have set up their barriers
            for i in range(parts):
                if i % split != part_of_k:
                    slot = (part_of_k + (split - 1 - i % split)) % split
                    at = ((slot * parts_per_block + uint32(i // split)) * GROUP + thread) * 4
                    send_vector(accumulators, i * 4, received, at, complete, 0, uint32(i % split))
            if split > 1:
                wait_for_phase(complete, 0, uint32(0))
            for i in range(parts):
                if i % split == part_of_k:
                    for j in range(4):
                        own[i // split * 4 + j] = accumulators[i * 4 + j]
            for slot in range(split - 1):
                for i in range(parts_per_block):
                    added = load_vector(received, ((slot * parts_per_block + i) * GROUP + thread) * 4)
                    for j in range(4):
                        own[i * 4 + j] += added[j]
            row, col, lane = thread % 4 * 2, thread // WARP * 16 + thread % WARP // 4, thread % WARP
            odd = col % 2
            for i in range(parts_per_block):
                part = uint32(i * split) + part_of_k
                at_row = place.row + part % eights * 8 + row + odd
                for side in range(2):
                    upper, lower = own[i * 4 + side * 2], own[i * 4 + side * 2 + 1]
                    other = cuda.shfl_sync(ALL_LANES, upper if odd else lower, lane ^ 4)
                    at_col = place.col + part // eights * ROWS + col - odd + uint32(side * 8)
                    if at_row < m and at_col < n and part < parts:
                        store(c, at_row * ldc + at_col, other if odd else upper, lower if odd else other)
        if shared_by > 1:
            meet_cluster()  # the other block has arrived at this one's barriers

    across, down = tile.grid(case)
    return NumbaKernel(
        few_rows_clustered,
        grid=(ceil_div(across, shared_by) * cluster, down),
        block=(2 * GROUP, 1),
        cluster=cluster,
        dynamic_bytes=tile.shared_bytes,
        tensor_maps=maps(tile, case, shared_by),
        launch_bounds=(2 * GROUP, 1),
        variant=f"{rows}x{columns} by {split}, {shared_by}",
    )


KERNEL = Kernel(
    problem="matmul",
    name="fewRowsClustered",
    kind="cuda",
    summary="products of few rows: k split among a cluster's blocks, sums through distributed shared memory",
    build=build,
    blocks=False,
    results=(128, 16),
    tile_elements=shared_elements(tile_of),
    dynamic_elements=shared_elements(tile_of),
    dtypes=NARROW,
    b_layouts=(BY_ROWS, BY_COLUMNS),
    unsupported=unsupported,
    needs="9.0a",
    standard=False,
)
