"""wgmmaOverlapped: wgmmaStored, whose tensor cores multiply while results are written.

1. A consumer multiplies by halves of the tile's columns.
2. In a tile's last two steps along k it starts the left half's products first, and writes that half's results while
   the tensor cores compute the right half.
3. Then it starts the left half of the next tile's first two steps, and writes the right half's results meanwhile.
4. Every second tile of a block is multiplied from its last step along k to its first, so that it begins with what the
   tile before has left in the L2.

So two stages of one tile and two of the next are in use at a time. Unlike in wgmmaClustered, blocks share no tiles.
Products of fewer than four steps along k are padded with zeros. A warp group fills a buffer with 128 bytes of each of
its 64 rows; then one of its threads starts to write it. Findings: results/reference/notes/tensor_cores.md.
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
    Turn,
    next_turn,
    opening,
    release,
    starting_step,
)
from smembench.kernels.matmul.cuda.wgmma_stored import HEIGHT, TILES, buffering, quickest
from smembench.kernels.matmul.structs import Place
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
from smembench.kernels.types import Array, Index
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
    """``(stages, turn, maps, place, back, k)``: for one thread, copy all steps along k, the last one first if ``back``.

    Returns the next turn.
    """
    copy, depth, after = tile.copies(), tile.depth, next_turn(tile.stages)

    def copy_all(stages: Stages, turn: Turn, maps: Maps, place: Place, back: Index, k: Index) -> Turn:
        last = (k - 1) // depth * depth
        for k0 in range(0, k, depth):
            wait_for_phase(stages.free, turn.stage, 1 - turn.phase)
            copy(stages, turn.stage, maps, place, uint32(last - k0) if back else uint32(k0))
            turn = after(turn)
        return turn

    return device(copy_all)


def starting(tile: Tile, half: int, *, fresh: bool) -> DeviceFunction:
    """``(results, stages, turn, member)``: start a half's products of ``EDGE`` steps from a turn on.

    If they are ``fresh`` they are a tile's first ones.
    """
    begin, go_on = part_of_products(tile, half, fresh=fresh), part_of_products(tile, half)
    elements, after = tile.elements, next_turn(tile.stages)

    def start(results: Array, stages: Stages, turn: Turn, member: Member) -> None:
        wait_for_phase(stages.arrived, turn.stage, turn.phase)
        begin_products()
        begin(results, stages.tiles, turn.stage * elements, member)
        for _ in range(1, EDGE):
            turn = after(turn)
            wait_for_phase(stages.arrived, turn.stage, turn.phase)
            go_on(results, stages.tiles, turn.stage * elements, member)
        commit_products()

    return device(start)


def skipping(tile: Tile) -> DeviceFunction:
    """``(turn)``: ``EDGE`` turns on."""
    after = next_turn(tile.stages)

    def skip(turn: Turn) -> Turn:
        for _ in range(EDGE):
            turn = after(turn)
        return turn

    return device(skip)


def releasing(tile: Tile) -> DeviceFunction:
    """``(free, turn, count, thread)``: release so many stages from a turn on; returns the turn after them."""
    after = next_turn(tile.stages)

    def release_all(free: Array, turn: Turn, count: Index, thread: Index) -> Turn:
        for _ in range(count):
            release(free, turn.stage, thread)
            turn = after(turn)
        return turn

    return device(release_all)


def multiplying(tile: Tile) -> DeviceFunction:
    """``(results, stages, turn, member, k)``: multiply a tile, whose first left products have been started.

    On return the left half's results are complete and the right half's last products are still in flight. Returns the
    turn of the last ``EDGE`` steps, whose stages are not yet released.
    """
    begin_right = starting(tile, 1, fresh=True)
    end_left, end_right = (starting(tile, half, fresh=False) for half in (0, 1))
    start_step, release_all, skip = starting_step(tile), releasing(tile), skipping(tile)
    settle_left = settling(tile.sums // 2)
    after, depth = next_turn(tile.stages), tile.depth

    def multiply_all(results: Array, stages: Stages, turn: Turn, member: Member, k: Index) -> Turn:
        begin_right(results, stages, turn, member)
        unread, count = turn, uint32(EDGE)
        turn = skip(turn)
        for _ in range(2 * EDGE * depth, k, depth):
            start_step(results, stages, turn, member)
            finish_products(1)
            unread = release_all(stages.free, unread, count, member.thread)
            count = uint32(1)
            turn = after(turn)
        end_left(results, stages, turn, member)
        finish_products(1)
        release_all(stages.free, unread, count, member.thread)
        end_right(results, stages, turn, member)
        finish_products(1)
        settle_left(results)
        return turn

    return device(multiply_all)


def storing(tile: Tile, half: int) -> DeviceFunction:
    """``(shared, results, c_map, place, member)``: start to write a half of a thread's results of the block's tile.

    ``shared``: shared memory as elements of C. A group meets once per buffer: when it is full, and the other one, which
    is filled next, has been read. A tile has an even number of them.
    """
    dtype, begin = produced(tile.dtype), tile.after_stages
    fill, width = buffering(dtype, ROW_BYTES), ROW_BYTES // ITEMSIZE[dtype]
    parts, size, of_warp = tile.columns // width // 2, ROWS * width, HEIGHT * width

    def write(shared: Array, results: Array, c_map: Index, place: Place, member: Member) -> None:
        for part in range(half * parts, (half + 1) * parts):
            at = begin + (member.group * BUFFERS + part % BUFFERS) * size
            fill(shared, at + member.thread // WARP * of_warp, results, part, member.thread % WARP)
            hand_over(member)
            if member.thread == 0:
                start_store(c_map, place.col + uint32(part * width), place.row + member.group * ROWS, shared, at)
                commit_stores()

    return device(write)


def build(case: Case) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc, a_map, b_map, c_map)``."""
    element, result, barrier = number(case.dtype), number(produced(case.dtype)), number("uint64")
    total = number("float32")
    tile = tile_of(case)
    rows, columns, depth, count, sums = tile.rows, tile.columns, tile.depth, tile.stages, tile.sums
    begin, copy_all, place_of = opening(count), copying_back_and_forth(tile), placing(tile)
    begin_left, multiply_all, release_all = starting(tile, 0, fresh=True), multiplying(tile), releasing(tile)
    write_left, write_right, skip = storing(tile, 0), storing(tile, 1), skipping(tile)
    least, settle_right = 2 * EDGE * depth, settling(sums // 2, sums // 2)

    def wgmma_overlapped(
        c: Array, a: Array, b: Array, m: Index, n: Index, k: Index, lda: Index, ldb: Index, ldc: Index,
        a_map: Index, b_map: Index, c_map: Index,
    ) -> None:  # fmt: skip
        tiles = cuda.shared.array(0, element, alignment=TILE_ALIGNMENT)
        buffers = cuda.shared.array(0, result, alignment=TILE_ALIGNMENT)  # the same memory
        arrived = cuda.shared.array(count, barrier)
        free = cuda.shared.array(count, barrier)
        stages, maps = Stages(tiles, arrived, free), Maps(a_map, b_map)
        results = cuda.local.array(sums, total)
        group, thread = own_group(), cuda.threadIdx.x % GROUP
        down, across = (m + (rows - 1)) // rows, (n + (columns - 1)) // columns
        if cuda.threadIdx.x == 0:
            begin(stages, maps, CONSUMERS)
            prefetch_map(c_map)
        cuda.syncthreads()
        turn = Turn(uint32(0), uint32(0))
        k = max(k, uint32(least))  # beyond k tiles are zeros
        tile_index = cuda.blockIdx.x
        if group == 0:
            give_registers(PRODUCER_REGISTERS)
            while thread == 0 and tile_index < down * across:
                back = tile_index // cuda.gridDim.x % 2
                turn = copy_all(stages, turn, maps, place_of(tile_index, down, across, k), back, k)
                tile_index += cuda.gridDim.x
        else:
            add_registers(CONSUMER_REGISTERS)
            member = Member(group - 1, thread)
            if tile_index < down * across:
                begin_left(results, stages, turn, member)
            while tile_index < down * across:
                place = place_of(tile_index, down, across, k)
                turn = multiply_all(results, stages, turn, member, k)
                write_left(buffers, results, c_map, place, member)
                unread = turn
                turn = skip(turn)
                tile_index += cuda.gridDim.x
                if tile_index < down * across:
                    begin_left(results, stages, turn, member)
                    finish_products(1)
                else:
                    finish_products(0)
                settle_right(results)
                release_all(free, unread, EDGE, thread)
                write_right(buffers, results, c_map, place, member)
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
