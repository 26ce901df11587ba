"""wgmmaPersistent: wgmmaSpecialized with one block per multiprocessor, which computes tile after tile of C.

1. The producer goes on to the next tile's copies while the consumers still write the results of the last one.
2. Tiles are numbered down a band of sixteen rows of tiles, then to the right, so that blocks that run at the same time
   share tiles of A and B in the L2. Bands of four rows are faster where all tiles run at once, and bands of twelve
   where k is long, but not in clusters.
3. Where fewer blocks need no more waves, fewer run: with 132 multiprocessors 128 for 512 tiles, four each, since most
   of 132 would have four too. Findings: results/reference/notes/tensor_cores.md.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import prod

from smembench.kernels.intrinsics.bulk_copy import (
    TILE_ALIGNMENT,
    arrive,
    prefetch_map,
    publish_barriers,
    set_barrier,
    wait_for_phase,
)
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
from smembench.kernels.matmul.cuda import wgmma_specialized
from smembench.kernels.matmul.tile_choice import fewest, in_order
from smembench.kernels.matmul.warp_groups import (
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
from smembench.kernels.program import NumbaKernel
from smembench.kernels.types import Array, Index, Map, Matrix, Place
from smembench.model.case import Case
from smembench.model.formats import produced
from smembench.model.hardware import WARP

TILE = Tile(rows=128, columns=256, stages=4)
CONSUMERS, THREADS = 2, 3 * GROUP
PRODUCER_REGISTERS, CONSUMER_REGISTERS = 56, 224


def build(case: Case) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc, a_map, b_map)``."""
    element, float32, barrier = number(case.dtype), number("float32"), number("uint64")
    tile = TILE.of(case)
    rows, columns, depth, stage_count, sums = tile.rows, tile.columns, tile.depth, tile.stages, tile.sums
    stage_elements, eights, store = tile.elements, columns // 8, store_pair(produced(case.dtype))
    copy, multiply, after = copies(tile), products_of(tile), next_state(tile.stages)
    place_of = placing(tile)

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
    def write(C: Matrix, accumulators: Array, place: Place, thread: Index) -> None:
        """A warp has 16 rows; of each 8 × 8 results a thread has two neighbours."""
        row, col = place.row + thread // WARP * 16 + thread % WARP // 4, place.col + thread % 4 * 2
        for group in range(eights):
            for half in range(2):
                if row + uint32(half * 8) < C.rows and col + uint32(group * 8) < C.columns:
                    at = (row + uint32(half * 8)) * C.stride + col + uint32(group * 8)
                    store(C.elements, at, accumulators[group * 4 + half * 2], accumulators[group * 4 + half * 2 + 1])

    def wgmma_persistent(
        c: Array, a: Array, b: Array, m: Index, n: Index, k: Index, lda: Index, ldb: Index, ldc: Index,
        a_map: Map, b_map: Map,
    ) -> None:  # fmt: skip
        # (4 stages, 128 rows of A and then 256 columns of B, 128 bytes along k)
        tiles = cuda.shared.array(0, element, alignment=TILE_ALIGNMENT)
        full = cuda.shared.array(stage_count, barrier)
        empty = cuda.shared.array(stage_count, barrier)
        stages = Stages(tiles, full, empty)
        accumulators = cuda.local.array(sums, float32)  # of a consumer's thread: (256 / 8, 2 rows, 2 columns)
        group, thread = own_group(), cuda.threadIdx.x % GROUP
        tiles_down, tiles_across = (m + (rows - 1)) // rows, (n + (columns - 1)) // columns
        if cuda.threadIdx.x == 0:
            prefetch_map(a_map)
            prefetch_map(b_map)
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
                write(Matrix(c, m, n, ldc), accumulators, Place(place.row + member.group * ROWS, place.col), thread)
                tile_index += cuda.gridDim.x

    grid = tile.grid(case)
    return NumbaKernel(
        wgmma_persistent,
        grid=grid,
        block=(THREADS, 1),
        dynamic_bytes=tile.shared_bytes,
        tensor_maps=tile.maps(case),
        launch_bounds=(THREADS, 1),
        persistent_blocks=partial(fewest, prod(grid)),
        tile_of=in_order(tile, case),
    )


KERNEL = replace(
    wgmma_specialized.KERNEL,
    name="wgmmaPersistent",
    summary="wgmmaSpecialized with a persistent grid, whose blocks compute tile after tile",
    build=build,
    ladder="a block computes tile after tile, in bands",
)
