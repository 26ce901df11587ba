"""wgmmaClustered: wgmmaStored in clusters of two blocks, one below the other, which share their tiles of B.

1. Each block copies its own tile of A, and multicasts half of the tile of B to itself and the other block.
2. A stage is empty when the consumers of both blocks have read it: they arrive at the barriers of both.
3. A block ends when both have read all of its stages, since its barriers end with it.

So with tiles of 128 × 256 a block takes 32 KiB per stage from the L2, not 48. Tiles of 128 rows may leave most of the
last wave empty. So the operands can be swapped ("swap AB"): the 64 rows per instruction are then columns of B, and two
consumers take any multiple of 16 rows. Where rows of A and B begin within lines of 128 bytes, most copied rows
touch two lines. Then tiles may be taller, 192 rows by three consumers, with more products per line. Or they have every
second, fourth or eighth row of C: more of these begin at the same place in a line, and a tile's copies along k begin
where its first row's line does. Findings: results/reference/notes/tensor_cores.md.
"""

from __future__ import annotations

from dataclasses import replace
from math import gcd, prod

from smembench.kernels.common.grids import ceil_div
from smembench.kernels.intrinsics.bulk_copy import (
    ROW_BYTES,
    TILE_ALIGNMENT,
    expect_bytes,
    prefetch_map,
    wait_for_phase,
)
from smembench.kernels.intrinsics.bulk_store import finish_stores
from smembench.kernels.intrinsics.clusters import arrive_at, meet_cluster, start_copy_to_all
from smembench.kernels.intrinsics.rows_apart import copying_rows
from smembench.kernels.intrinsics.warp_group import GROUP, ROWS, add_registers, give_registers, own_group
from smembench.kernels.matmul import swapped
from smembench.kernels.matmul.cuda import wgmma_stored
from smembench.kernels.matmul.cuda.wgmma_persistent import fewest, in_order, placing
from smembench.kernels.matmul.cuda.wgmma_specialized import (
    CONSUMER_REGISTERS,
    PRODUCER_REGISTERS,
    PipelineState,
    multiplying,
    next_state,
    producing,
    setting_up,
)
from smembench.kernels.matmul.cuda.wgmma_stored import TILES, step_cycles
from smembench.kernels.matmul.warp_groups import BUFFERS, Maps, Member, Stages, Tile, shared_elements
from smembench.kernels.numba_cuda import SIMULATED, DeviceFunction, cuda, device, int64, number, uint32
from smembench.kernels.program import NumbaKernel
from smembench.kernels.types import Array, Index, Place
from smembench.model.case import BY_ROWS, Case
from smembench.model.formats import produced
from smembench.model.hardware import SM90_MULTIPROCESSORS
from smembench.model.problem import ITEMSIZE

CLUSTER = 1 if SIMULATED else 2
"""Blocks per cluster; the simulator runs one block after another."""
TALL = Tile(rows=192, columns=256, stages=3, buffers=3 * ROWS * BUFFERS)
"""With three consumers."""
BUFFER_ROWS = {80: 80, 144: 48, 160: 32}
"""Rows of a buffer with results of 16 bits, by the rows of a swapped tile."""
SWAPPED = tuple(
    Tile(rows=rows, columns=256, stages=4, buffers=2 * BUFFERS * written, swapped=True)
    for rows, written in BUFFER_ROWS.items()
)
SHARED = (*(tile for tile in TILES if tile.columns % 128 == 0), TALL, *SWAPPED)
"""Tiles of whose columns both blocks can copy half: multiples of 128."""
APART = (1, 2, 4, 8)
"""Distances between neighbouring rows of a tile, in rows of C, that are tried where they divide the number of these."""
REGISTERS = {2: (PRODUCER_REGISTERS, CONSUMER_REGISTERS), 3: (32, 160)}
"""Registers per thread of the producer's group and of a consumer's, by the number of consumers."""
LINE_CYCLES = 2.5
"""Cycles of a multiprocessor per line of 128 bytes that it copies; fitted to times of rows that begin within lines."""
SLOWDOWN = 1.05
"""By this factor a swapped tile is slower than counted, and one with fewer than four stages; fitted to times, too."""


def cycles(tile: Tile, case: Case) -> float:
    """How long a multiprocessor's tiles take per step along k: ``step_cycles`` of ``wgmma_stored``, and what was timed.

    A block copies its rows of A and half of B's. Where those of a tile begin at multiples of fewer than 128 bytes most
    of them, 128 bytes each, lie in two lines.
    """
    of_b = case.n if case.b_layout == BY_ROWS else case.depth
    rows = ((tile.rows, tile.apart * case.depth), (tile.columns // CLUSTER, of_b))
    lines = sum(count * (2 - gcd(ROW_BYTES, ITEMSIZE[case.dtype] * stride) / ROW_BYTES) for count, stride in rows)
    waves = ceil_div(prod(pair_of(tile).grid(case)), SM90_MULTIPROCESSORS // CLUSTER)
    more = SLOWDOWN ** (tile.swapped + (tile.stages < 4))
    return waves * more * max(step_cycles(tile), LINE_CYCLES * lines)


def tile_of(case: Case) -> Tile:
    """The one with the fewest ``cycles``.

    It is a tall one for rows in two lines, since it has more products per copy, or one of rows that lie apart, since
    fewer lie in two lines, and a swapped one where its rows fill waves that others leave half empty.
    """
    tiles = [replace(tile, apart=apart) for apart in APART for tile in SHARED if case.m % apart == 0]
    return min(tiles, key=lambda tile: cycles(tile, case)).of(case)


def pair_of(tile: Tile) -> Tile:
    """The tile that a cluster's blocks compute together."""
    return replace(tile, rows=CLUSTER * tile.rows)


@device
def rank() -> Index:
    """This block's number in its cluster."""
    return uint32(cuda.blockIdx.x % CLUSTER)


def sharing(tile: Tile) -> DeviceFunction:
    """``(stages, stage, maps, place, k0)``: for one thread, start a block's part of the copies of a stage."""
    elements, at_b, depth = tile.elements, tile.a_elements, tile.depth
    by_rows, size = tile.b_layout == BY_ROWS, elements * ITEMSIZE[tile.dtype]
    width = depth if by_rows else tile.columns // CLUSTER  # columns of B per copy
    copies = tile.columns // width // CLUSTER
    start_copy = copying_rows(tile.apart)

    def copy(stages: Stages, stage: Index, maps: Maps, place: Place, k0: Index) -> None:
        at = stage * elements
        expect_bytes(stages.full, stage, size)
        start_copy(stages.tiles, at, maps.a, k0, place.row, stages.full, stage)
        mine = rank() * (copies * width)
        for part in range(copies):
            to, col = at + at_b + (mine + part * width) * depth, place.col + mine + part * width
            column, row = (col, k0) if by_rows else (k0, col)
            start_copy_to_all(stages.tiles, to, maps.b, column, row, stages.full, stage)

    return device(copy)


@device
def release_in_all(empty: Array, stage: Index, thread: Index) -> None:
    """A thread of a group arrives at each block's barrier."""
    if thread < CLUSTER:
        arrive_at(empty, stage, thread)


def waiting(count: int) -> DeviceFunction:
    """``(stages, state)``: for the thread that copies, wait until both blocks' consumers have read all stages."""
    after = next_state(count)

    def wait_for_readers(stages: Stages, state: PipelineState) -> None:
        for _ in range(count):
            wait_for_phase(stages.empty, state.stage, 1 - state.phase)
            state = after(state)

    return device(wait_for_readers)


def line_before(tile: Tile) -> DeviceFunction:
    """``(place, stride)``: where along k a tile's copies begin: at the line of memory in which its first row begins.

    ``place``: the tile's. ``stride``: of A. The result is 0 or negative; what precedes a row is copied as zeros.
    """
    apart, depth = tile.apart, tile.depth

    def line_of(place: Place, stride: Index) -> Index:
        return -int64(place.row % apart * stride % depth)

    return device(line_of)


def placing_in_pairs(tile: Tile) -> DeviceFunction:
    """``(pair, tiles_down, tiles_across, k)``: where this block's tile of a pair begins.

    Pairs are ordered by the first of the rows that lie ``apart``, and then one below the other.
    """
    rows, apart, place_of_pair = tile.rows, tile.apart, placing(replace(tile, rows=1), CLUSTER)

    def place_of(pair: Index, tiles_down: Index, tiles_across: Index, k: Index) -> Place:
        place = place_of_pair(pair, tiles_down, tiles_across, k)
        high = tiles_down // apart
        first = place.row // high
        return Place(first + apart * (rows * (CLUSTER * (place.row - first * high) + rank())), place.col)

    return device(place_of)


def build(case: Case) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc, a_map, b_map, c_map)``."""
    element, result, barrier = number(case.dtype), number(produced(case.dtype)), number("uint64")
    float32 = number("float32")
    tile = tile_of(case)
    rows, columns, stage_count, sums, apart = tile.rows, tile.columns, tile.stages, tile.sums, tile.apart
    consumers, (fewer, more) = tile.consumers, REGISTERS[tile.consumers]
    set_up_barriers, producer_loop = setting_up(tile.stages), producing(tile, sharing(tile))
    wait_for_readers = waiting(tile.stages)
    main_loop, place_of, line_of = multiplying(tile, release_in_all), placing_in_pairs(tile), line_before(tile)
    results_of = swapped if tile.swapped else wgmma_stored
    write, of_c = results_of.storing(tile), results_of.map_of_c(case, tile)

    def wgmma_clustered(
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
        tiles_down = apart * ((m // apart + (CLUSTER * rows - 1)) // (CLUSTER * rows))
        tiles_across = (n + (columns - 1)) // columns
        if cuda.threadIdx.x == 0:
            set_up_barriers(stages, maps, CLUSTER * consumers)
            prefetch_map(c_map)
        meet_cluster()
        state = PipelineState(uint32(0), uint32(0))
        pair_index = cuda.blockIdx.x // CLUSTER
        if group == 0:
            give_registers(fewer)
            if thread == 0:
                while pair_index < tiles_down * tiles_across:
                    place = place_of(pair_index, tiles_down, tiles_across, k)
                    state = producer_loop(stages, state, maps, place, line_of(place, lda), k)
                    pair_index += cuda.gridDim.x // CLUSTER
                wait_for_readers(stages, state)
        else:
            add_registers(more)
            member = Member(group - 1, thread)
            while pair_index < tiles_down * tiles_across:
                place = place_of(pair_index, tiles_down, tiles_across, k)
                state = main_loop(accumulators, stages, state, member, k - line_of(place, lda))
                write(buffers, accumulators, c_map, place, member)
                pair_index += cuda.gridDim.x // CLUSTER
            finish_stores(0)

    pair = pair_of(tile)
    across, high = pair.grid(case)
    place_of_pair = in_order(pair, case, CLUSTER)

    def of_block(block: int) -> tuple[int, int]:
        column, row = place_of_pair(block // CLUSTER)
        return column, CLUSTER * row + block % CLUSTER

    a_map, b_map = tile.maps(case)
    if tile.b_layout != BY_ROWS:
        b_map = b_map._replace(tile_rows=columns // CLUSTER)
    return NumbaKernel(
        wgmma_clustered,
        grid=(across, CLUSTER * high),
        block=(tile.threads, 1),
        cluster=CLUSTER,
        dynamic_bytes=tile.shared_bytes,
        tensor_maps=(a_map, b_map, of_c),
        launch_bounds=(tile.threads, 1),
        variant=f"{rows}x{columns}{', swapped' * tile.swapped}{f', rows {apart} apart' if apart > 1 else ''}",
        persistent_blocks=lambda multiprocessors: fewest(across * high, max(1, multiprocessors // CLUSTER)) * CLUSTER,
        grid_dependent=True,
        tile_of=of_block,
        parts=apart,
    )


KERNEL = replace(
    wgmma_stored.KERNEL,
    name="wgmmaClustered",
    summary="wgmmaStored in clusters of two blocks, which share tiles of B",
    build=build,
    tile_elements=shared_elements(tile_of),
    dynamic_elements=shared_elements(tile_of),
    ladder="two blocks share their tiles of B",
)
