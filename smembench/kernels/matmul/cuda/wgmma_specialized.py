"""wgmmaSpecialized: one warp group copies while two multiply, with four stages of tiles between them.

1. The producer, one thread of the first warp group, waits until a stage is free and starts the copies of its tiles.
2. Each consumer, a warp group for 64 of the tile's 128 rows, waits until a stage has arrived, starts to multiply
   64 × 256 results, waits for the products of the stage before, and releases that stage.
3. The producer's group gives registers to the consumers, whose threads hold 128 results each.

Copies run up to four stages ahead of the products, so neither waits for the other. Two groups hold the results that
wgmmaSpilled has no room for in one.
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
from smembench.kernels.matmul.structs import Matrix, Place
from smembench.kernels.matmul.warp_groups import Maps, Member, Stages, Tile, epilogue, products_of, unsupported
from smembench.kernels.numba_cuda import DeviceFunction, cuda, device, number, uint32
from smembench.kernels.program import NumbaKernel
from smembench.kernels.types import Array, Index
from smembench.model.case import BY_COLUMNS, BY_ROWS, Case
from smembench.model.formats import NARROW

TILE = Tile(rows=128, columns=256, stages=4)
CONSUMERS, THREADS = TILE.consumers, TILE.threads
PRODUCER_REGISTERS, CONSUMER_REGISTERS = 56, 224
"""Per thread. Together 128 · (56 + 2 · 224) = 64,512 of a multiprocessor's 65,536."""


class Turn(NamedTuple):
    """A stage, and the parity of the phase in which its barriers are."""

    stage: Index
    phase: Index


def next_turn(stages: int) -> DeviceFunction:
    """``(turn)``: the stage after this one, of so many in a ring."""

    def after(turn: Turn) -> Turn:
        last = turn.stage + 1 == stages
        return Turn(uint32(0) if last else turn.stage + 1, 1 - turn.phase if last else turn.phase)

    return device(after)


def copying(tile: Tile, copy: DeviceFunction) -> DeviceFunction:
    """``(stages, turn, maps, place, first, k)``: for one thread, copy all steps from ``first`` to k; the next turn."""
    depth, after = tile.depth, next_turn(tile.stages)

    def copy_all(stages: Stages, turn: Turn, maps: Maps, place: Place, first: Index, k: Index) -> Turn:
        for k0 in range(first, k, depth):
            wait_for_phase(stages.free, turn.stage, 1 - turn.phase)
            copy(stages, turn.stage, maps, place, k0)
            turn = after(turn)
        return turn

    return device(copy_all)


def starting_step(tile: Tile) -> DeviceFunction:
    """``(results, stages, turn, member)``: start a group's products of a stage when it has arrived, and commit them."""
    multiply, elements = products_of(tile), tile.elements

    def start_step(results: Array, stages: Stages, turn: Turn, member: Member) -> None:
        wait_for_phase(stages.arrived, turn.stage, turn.phase)
        begin_products()
        multiply(results, stages.tiles, turn.stage * elements, member)
        commit_products()

    return device(start_step)


def multiplying(tile: Tile, release: DeviceFunction) -> DeviceFunction:
    """``(results, stages, turn, member, k)``: a group's sums over all of k; returns the next turn.

    ``release(free, stage, thread)`` says that the group, of which this is a thread, has read a stage: when the products
    of the next one have begun, so it needs at least two stages.
    """
    depth, sums = tile.depth, tile.sums
    start_step, after = starting_step(tile), next_turn(tile.stages)

    def multiply_all(results: Array, stages: Stages, turn: Turn, member: Member, k: Index) -> Turn:
        for i in range(sums):
            results[i] = 0
        before = turn.stage
        for k0 in range(depth, k, depth):
            start_step(results, stages, turn, member)
            finish_products(1)
            if k0 > depth:
                release(stages.free, before, member.thread)
            before, turn = turn.stage, after(turn)
        # The last step waits for all products at once.
        start_step(results, stages, turn, member)
        finish_products(0)
        if k > depth:
            release(stages.free, before, member.thread)
        release(stages.free, turn.stage, member.thread)
        following: Turn = after(turn)
        return following

    return device(multiply_all)


@device
def release(free: Array, stage: Index, thread: Index) -> None:
    """One thread of a group arrives."""
    if thread == 0:
        arrive(free, stage)


def opening(count: int) -> DeviceFunction:
    """``(stages, maps, readers)``: for one thread, set up the barriers; ``readers`` groups read each stage."""

    def begin(stages: Stages, maps: Maps, readers: Index) -> None:
        for stage in range(count):
            set_barrier(stages.arrived, stage, 1)
            set_barrier(stages.free, stage, readers)
        publish_barriers()
        acquire_map(maps.a)
        acquire_map(maps.b)

    return device(begin)


def build(case: Case) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc, a_map, b_map)``."""
    element, total, barrier = number(case.dtype), number("float32"), number("uint64")
    tile = TILE.of(case)
    rows, columns, count, sums = tile.rows, tile.columns, tile.stages, tile.sums
    begin, copy_all = opening(tile.stages), copying(tile, tile.copies())
    multiply_all, write = multiplying(tile, release), epilogue(tile.columns, case.dtype)

    def wgmma_specialized(
        c: Array, a: Array, b: Array, m: Index, n: Index, k: Index, lda: Index, ldb: Index, ldc: Index,
        a_map: Index, b_map: Index,
    ) -> None:  # fmt: skip
        tiles = cuda.shared.array(0, element, alignment=TILE_ALIGNMENT)
        arrived = cuda.shared.array(count, barrier)
        free = cuda.shared.array(count, barrier)
        stages, maps = Stages(tiles, arrived, free), Maps(a_map, b_map)
        results = cuda.local.array(sums, total)
        place = Place(cuda.blockIdx.y * rows, cuda.blockIdx.x * columns)
        group, thread = own_group(), cuda.threadIdx.x % GROUP
        if cuda.threadIdx.x == 0:
            begin(stages, maps, CONSUMERS)
        cuda.syncthreads()
        first = Turn(uint32(0), uint32(0))
        if group == 0:
            give_registers(PRODUCER_REGISTERS)
            if thread == 0:
                copy_all(stages, first, maps, place, 0, k)
        else:
            add_registers(CONSUMER_REGISTERS)
            member = Member(group - 1, thread)
            multiply_all(results, stages, first, member, k)
            write(Matrix(c, m, n, ldc), results, Place(place.row + member.group * ROWS, place.col), thread)

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
