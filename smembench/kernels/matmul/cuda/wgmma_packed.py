"""wgmmaPacked: wgmmaStored for rows that the Tensor Memory Accelerator (TMA) cannot copy: they are first packed.

1. All threads copy A, B or both into rows that begin at multiples of 128 bytes (packing.py).
2. When all blocks have done so, each computes tile after tile from the copies.
3. Results are staged in buffers, as in wgmmaStored, and written by the warp's lanes, neighbours next to each other.

A matrix is read and written once for its copy, and its tiles are read many times. Predicted accesses leave out the
copies. Findings: results/reference/notes/tensor_cores.md.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import prod

from smembench.kernels.common.grids import ceil_div
from smembench.kernels.intrinsics.bulk_copy import (
    ROW_BYTES,
    TILE_ALIGNMENT,
    arrive,
    place_in_tile,
    prefetch_map,
    publish_barriers,
    row_bytes_of,
    set_barrier,
    wait_for_phase,
)
from smembench.kernels.intrinsics.bulk_store import see_stores
from smembench.kernels.intrinsics.halves import store_pair
from smembench.kernels.intrinsics.scratch import meet, scratch
from smembench.kernels.intrinsics.warp_group import (
    GROUP,
    add_registers,
    begin_products,
    commit_products,
    finish_products,
    give_registers,
    own_group,
)
from smembench.kernels.matmul.cuda import wgmma_stored
from smembench.kernels.matmul.packing import copied, height, packing
from smembench.kernels.matmul.tile_choice import fewest, in_order, quickest, shared_elements, unsupported
from smembench.kernels.matmul.warp_groups import (
    TILES,
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
from smembench.kernels.program import NumbaKernel, TensorMap
from smembench.kernels.types import Array, Index, Map, Matrix, Place
from smembench.model.case import BY_ROWS, Case
from smembench.model.formats import HALVES, produced
from smembench.model.hardware import WARP
from smembench.model.problem import ITEMSIZE

CONSUMERS, THREADS, HEIGHT = 2, 3 * GROUP, 16
PRODUCER_REGISTERS, CONSUMER_REGISTERS = 56, 224


def tile_of(case: Case) -> Tile:
    """The one with the fewest cycles, where rows of A and B are as long as those of their copies.

    That of 224 columns takes more than counted: results/reference/notes/tensor_cores.md.
    """
    width = ROW_BYTES // ITEMSIZE[case.dtype]
    n, k = (ceil_div(side, width) * width for side in (case.n, case.depth))
    return quickest(replace(case, n=n, k=k), tuple(tile for tile in TILES if tile.columns != 224))


def maps_of(case: Case, tile: Tile) -> tuple[TensorMap, TensorMap]:
    """The tensor maps of A and B, or of their copies."""
    of_a, of_b = tile.maps(case)
    return copied(of_a, ITEMSIZE[case.dtype]), copied(of_b, ITEMSIZE[case.dtype])


def build(case: Case) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc, a_map, b_map, a_copy, b_copy)``."""
    element, float32, barrier = number(case.dtype), number("float32"), number("uint64")
    tile, dtype = tile_of(case), produced(case.dtype)
    rows, columns, depth, stage_count, sums = tile.rows, tile.columns, tile.depth, tile.stages, tile.sums
    stage_elements, result = tile.elements, number(dtype)
    # A warp's buffer has 128 bytes, or 64, of each of its 16 rows.
    row_bytes, begin, store = row_bytes_of(columns, ITEMSIZE[dtype]), tile.after_stages, store_pair(dtype)
    width, place_in = row_bytes // ITEMSIZE[dtype], place_in_tile(ITEMSIZE[dtype], row_bytes)
    parts, buffer_elements, pairs = columns // width, HEIGHT * width, width // 4
    turns = buffer_elements // WARP
    of_a, of_b = maps_of(case, tile)
    packed_maps = (of._replace(tile_rows=height(case.dtype), row_bytes=ROW_BYTES) for of in (of_a, of_b))
    packs_a, packs_b, by_rows = of_a.copied, of_b.copied, case.b_layout == BY_ROWS
    pack, counts = packing(case.dtype, THREADS), scratch("packed", "uint32", 2)
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
    def write(shared: Array, accumulators: Array, C: Matrix, place: Place, member: Member) -> None:
        """Write a thread's results of the tile at ``place``; ``shared``: shared memory as elements of C."""
        lane, warp = member.thread % WARP, member.group * (GROUP // WARP) + member.thread // WARP
        at = begin + warp * buffer_elements
        for part in range(parts):
            cuda.syncwarp()
            for pair in range(pairs):  # two neighbours of every second 8 × 8 results
                row, col = lane // 4 + uint32(pair % 2 * 8), uint32(pair // 2 * 8) + lane % 4 * 2
                first = part * (width // 2) + pair * 2
                store(shared, at + place_in(row, col), accumulators[first], accumulators[first + 1])
            cuda.syncwarp()
            for i in range(turns):  # 32 neighbours of a row at a time
                in_row, in_col = uint32(i * WARP // width), uint32(i * WARP % width) + lane
                row, col = place.row + warp * HEIGHT + in_row, place.col + uint32(part * width) + in_col
                if row < C.rows and col < C.columns:
                    C.elements[row * C.stride + col] = shared[at + place_in(in_row, in_col)]

    def wgmma_packed(
        c: Array, a: Array, b: Array, m: Index, n: Index, k: Index, lda: Index, ldb: Index, ldc: Index,
        a_map: Map, b_map: Map, a_copy: Map, b_copy: Map,
    ) -> None:  # fmt: skip
        # (stages, 128 rows of A and then columns of B, 128 bytes along k)
        tiles = cuda.shared.array(0, element, alignment=TILE_ALIGNMENT)
        buffers = cuda.shared.array(0, result, alignment=TILE_ALIGNMENT)  # the same memory; buffers follow the stages
        full = cuda.shared.array(stage_count, barrier)
        empty = cuda.shared.array(stage_count, barrier)
        stages = Stages(tiles, full, empty)
        accumulators = cuda.local.array(sums, float32)  # of a consumer's thread: (columns / 8, 2 rows, 2 columns)
        group, thread = own_group(), cuda.threadIdx.x % GROUP
        tiles_down, tiles_across = (m + (rows - 1)) // rows, (n + (columns - 1)) // columns
        # All threads of all blocks pack A, B or both, in shared memory that is free yet; then the blocks meet.
        if packs_a:
            pack(tiles, Matrix(a, m, k, lda), a_copy)
        if packs_b:
            pack(tiles, Matrix(b, k, n, ldb) if by_rows else Matrix(b, n, k, ldb), b_copy)
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            prefetch_map(a_map)
            prefetch_map(b_map)
            for stage in range(stage_count):
                set_barrier(full, stage, 1)  # the thread that copies; the bytes are counted beside
                set_barrier(empty, stage, CONSUMERS)
            publish_barriers()
            meet(counts(), cuda.gridDim.x)
        cuda.syncthreads()
        # Stages go round without a break from tile to tile: the producer is ahead while consumers still write.
        state, tile_index = PipelineState(uint32(0), uint32(0)), cuda.blockIdx.x
        if group == 0:
            give_registers(PRODUCER_REGISTERS)
            see_stores()
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
                write(buffers, accumulators, Matrix(c, m, n, ldc), place, member)
                tile_index += cuda.gridDim.x

    grid = tile.grid(case)
    return NumbaKernel(
        wgmma_packed,
        grid=grid,
        block=(THREADS, 1),
        dynamic_bytes=tile.shared_bytes,
        tensor_maps=(of_a, of_b, *packed_maps),
        launch_bounds=(THREADS, 1),
        variant=f"{columns}{', A packed' * packs_a}{', B packed' * packs_b}",
        persistent_blocks=partial(fewest, prod(grid)),
        tile_of=in_order(tile, case),
    )


def needless(case: Case) -> str | None:
    """The refusal of a case that the kernel does not take or of which no row needs a copy, or None."""
    if case.b_layout == BY_ROWS and case.dtype not in HALVES:
        return unsupported(case)
    if any(tensor_map.copied for tensor_map in maps_of(case, tile_of(case))) or case.n % 2:
        return None
    others = "wgmmaPersistent" if unsupported(case, stored=True) else "wgmmaStored or wgmmaPersistent"
    return f"{case.kernel} is only for rows that the TMA does not take; use {others}"


KERNEL = replace(
    wgmma_stored.KERNEL,
    name="wgmmaPacked",
    summary="wgmmaStored for rows that the TMA does not take, after copies of A or B",
    build=build,
    tile_elements=shared_elements(tile_of),
    dynamic_elements=shared_elements(tile_of),
    unsupported=needless,
    ladder="",
)
