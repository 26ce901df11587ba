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
    publish_barriers,
    set_barrier,
    wait_for_phase,
)
from smembench.kernels.intrinsics.clusters import load_vector_of_block, meet_cluster, publish_to_cluster
from smembench.kernels.intrinsics.halves import store_pair
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
from smembench.kernels.matmul.warp_groups import Member, PipelineState, Stages, Tile, copies, next_state, products_of
from smembench.kernels.numba_cuda import SIMULATED, cuda, number, uint32
from smembench.kernels.program import NumbaKernel
from smembench.kernels.types import Array, Index, Place
from smembench.model.case import BY_COLUMNS, BY_ROWS, Case
from smembench.model.formats import NARROW, produced
from smembench.model.hardware import SM90_MULTIPROCESSORS, WARP

VECTOR = 4  # sums that are loaded at once
STAGE_BYTES = 200 * 1024
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


def build(case: Case) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc, a_map, b_map)``."""
    tile, cluster = tile_of(case), cluster_of(case)
    element, float32, barrier = number(case.dtype), number("float32"), number("uint64")
    rows, columns, depth, stage_count, sums = tile.rows, tile.columns, tile.depth, tile.stages, tile.sums
    consumers, stage_elements, eights = tile.consumers, tile.elements, rows // 8
    pitch, vectors, threads = columns + VECTOR, columns // VECTOR, GROUP * (1 + consumers)
    copy, multiply, after = copies(tile), products_of(tile), next_state(stage_count)
    store = store_pair(produced(case.dtype))
    zero = float32(0)

    def few_rows_clustered(
        c: Array, a: Array, b: Array, m: Index, n: Index, k: Index, lda: Index, ldb: Index, ldc: Index,
        a_map: Index, b_map: Index,
    ) -> None:  # fmt: skip
        # (stages, rows of A and then columns of B, 128 bytes along k); later (rows, columns and 4) of sums
        tiles = cuda.shared.array(0, element, alignment=TILE_ALIGNMENT)
        shared = cuda.shared.array(0, float32, alignment=TILE_ALIGNMENT)
        full = cuda.shared.array(stage_count, barrier)
        empty = cuda.shared.array(stage_count, barrier)
        stages = Stages(tiles, full, empty)
        accumulators = cuda.local.array(sums, float32)  # of a consumer's thread: (2 × 64 columns, rows / 8, 2, 2)
        rank = cuda.blockIdx.x % cluster
        place = Place(cuda.blockIdx.y * rows, cuda.blockIdx.x // cluster * columns)
        group, thread = own_group(), cuda.threadIdx.x % GROUP
        if cuda.threadIdx.x == 0:
            for stage in range(stage_count):
                set_barrier(full, stage, 1)  # the thread that copies; the bytes are counted beside
                set_barrier(empty, stage, consumers)
            publish_barriers()
            acquire_map(a_map)
            acquire_map(b_map)
        cuda.syncthreads()
        steps = (k + (depth - 1)) // depth
        first, end = rank * steps // cluster * depth, (rank + 1) * steps // cluster * depth
        state = PipelineState(uint32(0), uint32(0))
        for i in range(sums):
            accumulators[i] = zero
        if group == 0:
            if thread == 0:
                for k0 in range(first, end, depth):
                    wait_for_phase(empty, state.stage, 1 - state.phase)
                    copy(stages, state.stage, a_map, b_map, place, k0)
                    state = after(state)
        else:
            member, before = Member(group - 1, thread), state.stage
            for k0 in range(first, end, depth):
                wait_for_phase(full, state.stage, state.phase)
                begin_products()
                multiply(accumulators, tiles, state.stage * stage_elements, member)
                commit_products()
                finish_products(1)  # all but the newest: the stage before has been read
                if k0 > first and thread == 0:
                    arrive(empty, before)
                before, state = state.stage, after(state)
            finish_products(0)
        # All stages have been copied and read.
        cuda.syncthreads()
        if group > 0:
            col = (group - 1) * (2 * ROWS) + thread // WARP * 16 + thread % WARP // 4
            own = thread % 4 * (2 * pitch) + col
            for i in range(sums // 4):
                to = own + uint32(i % eights * 8 * pitch + i // eights * ROWS)
                shared[to] = accumulators[i * 4]
                shared[to + pitch] = accumulators[i * 4 + 1]
                shared[to + 8] = accumulators[i * 4 + 2]
                shared[to + (pitch + 8)] = accumulators[i * 4 + 3]
        publish_to_cluster()
        # Four columns per thread at a time, neighbours by neighbouring threads.
        for at in range(rank * threads + cuda.threadIdx.x, rows * vectors, cluster * threads):
            row, col = at // vectors, at % vectors * VECTOR
            at_row, at_col = place.row + row, place.col + col
            if at_row < m and at_col < n:
                for i in range(VECTOR):
                    accumulators[i] = zero
                for other in range(cluster):
                    parts = load_vector_of_block(shared, row * pitch + col, uint32(other))
                    for i in range(VECTOR):
                        accumulators[i] += parts[i]
                store(c, at_row * ldc + at_col, accumulators[0], accumulators[1])
                if at_col + 2 < n:
                    store(c, at_row * ldc + at_col + 2, accumulators[2], accumulators[3])
        meet_cluster()  # what a thread stores, it has loaded

    across, down = tile.grid(case)
    return NumbaKernel(
        few_rows_clustered,
        grid=(across * cluster, down),
        block=(threads, 1),
        cluster=cluster,
        dynamic_bytes=tile.shared_bytes,
        tensor_maps=tile.maps(case),
        launch_bounds=(threads, 1),
        variant=f"{rows}x{columns} by {cluster}",
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
