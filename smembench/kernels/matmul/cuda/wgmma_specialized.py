"""wgmmaSpecialized: a producer warp group copies while two consumer warp groups multiply, through four stages of tiles.

1. The producer, one thread of the first warp group, waits until a stage is empty and starts the copies of its tiles.
2. Each consumer, a warp group for 64 of the tile's 128 rows, waits until a stage is full, starts to multiply 64 × 256
   results, waits for the products of the stage before, and releases that stage.
3. The producer's warp group gives registers to the consumers (``setmaxnreg``), whose threads hold 128 results each.

Copies run up to four stages ahead of the products, so neither waits for the other. Tiles are twice as wide as wgmma's:
two consumers hold the results, which do not fit the registers of one warp group
(results/reference/notes/tried_and_lost.md).
"""

from __future__ import annotations

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
from smembench.kernels.kernel import Kernel
from smembench.kernels.matmul.tile_choice import unsupported
from smembench.kernels.matmul.warp_groups import Member, PipelineState, Stages, Tile, copies, next_state, products_of
from smembench.kernels.numba_cuda import cuda, device, number, uint32
from smembench.kernels.program import NumbaKernel
from smembench.kernels.types import Array, Index, Map, Matrix, Place
from smembench.model.case import BY_COLUMNS, BY_ROWS, Case
from smembench.model.formats import NARROW, produced
from smembench.model.hardware import WARP

TILE = Tile(rows=128, columns=256, stages=4)
CONSUMERS, THREADS = 2, 3 * GROUP
PRODUCER_REGISTERS, CONSUMER_REGISTERS = 56, 224
"""Registers per thread. Together 128 · (56 + 2 · 224) = 64,512 of a multiprocessor's 65,536."""


def build(case: Case) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc, a_map, b_map)``."""
    element, float32, barrier = number(case.dtype), number("float32"), number("uint64")
    tile = TILE.of(case)
    rows, columns, depth, stage_count, sums = tile.rows, tile.columns, tile.depth, tile.stages, tile.sums
    stage_elements, eights, store = tile.elements, columns // 8, store_pair(produced(case.dtype))
    copy, multiply, after = copies(tile), products_of(tile), next_state(tile.stages)

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

    def wgmma_specialized(
        c: Array, a: Array, b: Array, m: Index, n: Index, k: Index, lda: Index, ldb: Index, ldc: Index,
        a_map: Map, b_map: Map,
    ) -> None:  # fmt: skip
        # (4 stages, 128 rows of A and then 256 columns of B, 128 bytes along k)
        tiles = cuda.shared.array(0, element, alignment=TILE_ALIGNMENT)
        full = cuda.shared.array(stage_count, barrier)
        empty = cuda.shared.array(stage_count, barrier)
        stages = Stages(tiles, full, empty)
        accumulators = cuda.local.array(sums, float32)  # of a consumer's thread: (256 / 8, 2 rows, 2 columns)
        place = Place(cuda.blockIdx.y * rows, cuda.blockIdx.x * columns)
        group, thread = own_group(), cuda.threadIdx.x % GROUP
        if cuda.threadIdx.x == 0:
            prefetch_map(a_map)
            prefetch_map(b_map)
            for stage in range(stage_count):
                set_barrier(full, stage, 1)  # the thread that copies; the bytes are counted beside
                set_barrier(empty, stage, CONSUMERS)
            publish_barriers()
        cuda.syncthreads()
        state = PipelineState(uint32(0), uint32(0))
        if group == 0:
            give_registers(PRODUCER_REGISTERS)
            if thread == 0:
                for k0 in range(0, k, depth):
                    # The phase before the first has ended: a new barrier lets the first round pass.
                    wait_for_phase(empty, state.stage, 1 - state.phase)
                    copy(stages, state.stage, a_map, b_map, place, k0, n)
                    state = after(state)
        else:
            add_registers(CONSUMER_REGISTERS)
            member = Member(group - 1, thread)
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
            write(Matrix(c, m, n, ldc), accumulators, Place(place.row + member.group * ROWS, place.col), thread)

    return NumbaKernel(
        wgmma_specialized,
        grid=tile.grid(case),
        block=(THREADS, 1),
        dynamic_bytes=tile.shared_bytes,
        tensor_maps=tile.maps(case),
        launch_bounds=(THREADS, 1),
    )


KERNEL = Kernel(
    problem="matmul",
    name="wgmmaSpecialized",
    kind="cuda",
    summary="wgmma with a producer and two consumers, four stages of tiles between them",
    build=build,
    blocks=False,
    results=(TILE.columns, TILE.rows),
    tile_elements=TILE.tile_elements,
    dynamic_elements=TILE.tile_elements,
    dtypes=NARROW,
    b_layouts=(BY_ROWS, BY_COLUMNS),
    unsupported=unsupported,
    needs="9.0a",
    standard=False,
    ladder="a warp group copies while two multiply",
)
