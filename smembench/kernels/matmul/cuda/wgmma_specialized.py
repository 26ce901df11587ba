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

from typing import NamedTuple

from smembench.kernels.intrinsics.bulk_copy import (
    TILE_ALIGNMENT,
    acquire_map,
    arrive,
    publish_barriers,
    set_barrier,
    wait_for_phase,
)
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
from smembench.kernels.matmul.warp_groups import Maps, Member, Stages, Tile, epilogue, products_of, unsupported
from smembench.kernels.numba_cuda import DeviceFunction, cuda, device, number, uint32
from smembench.kernels.program import NumbaKernel
from smembench.kernels.types import Array, Index, Matrix, Place
from smembench.model.case import BY_COLUMNS, BY_ROWS, Case
from smembench.model.formats import NARROW

TILE = Tile(rows=128, columns=256, stages=4)
CONSUMERS, THREADS = TILE.consumers, TILE.threads
PRODUCER_REGISTERS, CONSUMER_REGISTERS = 56, 224
"""Registers per thread. Together 128 · (56 + 2 · 224) = 64,512 of a multiprocessor's 65,536."""


class PipelineState(NamedTuple):
    """Where a producer or consumer is in the ring of stages: a stage, and the parity of the phase of its barriers."""

    stage: Index
    phase: Index


def next_state(stages: int) -> DeviceFunction:
    """``(state)``: the state after this one, in a ring of ``stages`` stages."""

    def after(state: PipelineState) -> PipelineState:
        last = state.stage + 1 == stages
        return PipelineState(uint32(0) if last else state.stage + 1, 1 - state.phase if last else state.phase)

    return device(after)


def producing(tile: Tile, copy: DeviceFunction) -> DeviceFunction:
    """``(stages, state, maps, place, first, k)``: all copies from ``first`` to k, by one thread; the next state."""
    depth, after = tile.depth, next_state(tile.stages)

    def producer_loop(
        stages: Stages, state: PipelineState, maps: Maps, place: Place, first: Index, k: Index
    ) -> PipelineState:
        for k0 in range(first, k, depth):
            wait_for_phase(stages.empty, state.stage, 1 - state.phase)
            copy(stages, state.stage, maps, place, k0)
            state = after(state)
        return state

    return device(producer_loop)


def starting_step(tile: Tile) -> DeviceFunction:
    """``(accumulators, stages, state, member)``: when a stage is full, start and commit its products."""
    multiply, elements = products_of(tile), tile.elements

    def start_step(accumulators: Array, stages: Stages, state: PipelineState, member: Member) -> None:
        wait_for_phase(stages.full, state.stage, state.phase)
        begin_products()
        multiply(accumulators, stages.tiles, state.stage * elements, member)
        commit_products()

    return device(start_step)


def multiplying(tile: Tile, release: DeviceFunction) -> DeviceFunction:
    """``(accumulators, stages, state, member, k)``: a consumer's main loop over all of k; returns the next state.

    ``release(empty, stage, thread)`` says that the consumer has read a stage. It is called when the products of the
    next one have begun, so there are at least two stages.
    """
    depth, sums = tile.depth, tile.sums
    start_step, after = starting_step(tile), next_state(tile.stages)

    def main_loop(accumulators: Array, stages: Stages, state: PipelineState, member: Member, k: Index) -> PipelineState:
        for i in range(sums):
            accumulators[i] = 0
        before = state.stage
        for k0 in range(depth, k, depth):
            start_step(accumulators, stages, state, member)
            finish_products(1)
            if k0 > depth:
                release(stages.empty, before, member.thread)
            before, state = state.stage, after(state)
        # The last step waits for all products at once.
        start_step(accumulators, stages, state, member)
        finish_products(0)
        if k > depth:
            release(stages.empty, before, member.thread)
        release(stages.empty, state.stage, member.thread)
        following: PipelineState = after(state)
        return following

    return device(main_loop)


@device
def release(empty: Array, stage: Index, thread: Index) -> None:
    """One thread of a consumer arrives at the stage's empty barrier."""
    if thread == 0:
        arrive(empty, stage)


def setting_up(count: int) -> DeviceFunction:
    """``(stages, maps, readers)``: set up the barriers, by one thread; ``readers`` consumers read each stage."""

    def set_up_barriers(stages: Stages, maps: Maps, readers: Index) -> None:
        for stage in range(count):
            set_barrier(stages.full, stage, 1)
            set_barrier(stages.empty, stage, readers)
        publish_barriers()
        acquire_map(maps.a)
        acquire_map(maps.b)

    return device(set_up_barriers)


def build(case: Case) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc, a_map, b_map)``."""
    element, float32, barrier = number(case.dtype), number("float32"), number("uint64")
    tile = TILE.of(case)
    rows, columns, stage_count, sums = tile.rows, tile.columns, tile.stages, tile.sums
    set_up_barriers, producer_loop = setting_up(tile.stages), producing(tile, tile.copies())
    main_loop, write = multiplying(tile, release), epilogue(tile.columns, case.dtype)

    def wgmma_specialized(
        c: Array, a: Array, b: Array, m: Index, n: Index, k: Index, lda: Index, ldb: Index, ldc: Index,
        a_map: Index, b_map: Index,
    ) -> None:  # fmt: skip
        tiles = cuda.shared.array(0, element, alignment=TILE_ALIGNMENT)
        full = cuda.shared.array(stage_count, barrier)
        empty = cuda.shared.array(stage_count, barrier)
        stages, maps = Stages(tiles, full, empty), Maps(a_map, b_map)
        accumulators = cuda.local.array(sums, float32)
        place = Place(cuda.blockIdx.y * rows, cuda.blockIdx.x * columns)
        group, thread = own_group(), cuda.threadIdx.x % GROUP
        if cuda.threadIdx.x == 0:
            set_up_barriers(stages, maps, CONSUMERS)
        cuda.syncthreads()
        first = PipelineState(uint32(0), uint32(0))
        if group == 0:
            give_registers(PRODUCER_REGISTERS)
            if thread == 0:
                producer_loop(stages, first, maps, place, 0, k)
        else:
            add_registers(CONSUMER_REGISTERS)
            member = Member(group - 1, thread)
            main_loop(accumulators, stages, first, member, k)
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
