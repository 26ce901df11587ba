"""fewRowsClustered: wgmmaSpecialized for few tiles, which are split along k among a cluster's blocks.

1. The operands are swapped ("swap AB"): the 64 rows per ``wgmma`` are columns of B, so a tile may have 16 rows of A.
2. A cluster of up to two blocks computes a tile: each has a part of k, so that nearly all multiprocessors read B. One
   thread copies a stage's columns of B, one of another warp its rows of A.
3. At the end a thread has sums of all rows and columns, four per part. Each block of the cluster adds up every second
   part: the other sends its sums there by ``st.async``, and they arrive at the block's barrier. In shared memory they
   lie by thread, as in registers, so neither side has bank conflicts, and no barrier of the cluster is waited for.
4. Neighbouring lanes exchange sums, so that each rounds and writes pairs of columns.

Findings: results/reference/notes/few_rows.md.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from smembench.kernels.common.grids import ceil_div
from smembench.kernels.intrinsics.bulk_copy import (
    ROW_BYTES,
    TILE_ALIGNMENT,
    acquire_map,
    arrive,
    expect_bytes,
    publish_barriers,
    set_barrier,
    start_copy,
    wait_for_phase,
)
from smembench.kernels.intrinsics.clusters import arrive_at_cluster, send_vector, wait_for_cluster
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
from smembench.kernels.matmul.tile_choice import AT_ONCE, Form, unsupported
from smembench.kernels.matmul.warp_groups import Member, PipelineState, Tile, next_state, products_of
from smembench.kernels.numba_cuda import SIMULATED, cuda, number, uint32
from smembench.kernels.program import NumbaKernel
from smembench.kernels.types import Array, Index, Place
from smembench.model.case import BY_COLUMNS, BY_ROWS, Case
from smembench.model.formats import NARROW, produced
from smembench.model.hardware import WARP
from smembench.model.problem import ITEMSIZE

ALL_LANES = 0xFFFFFFFF
PART = 4
"""Sums of a thread that go together: two rows, and two columns that are 8 apart."""
MOST_STAGES = 10
"""More stages took no less time."""
SHARED_BYTES = 226 * 1024
"""Of a block on capability 9.0, but for 1 KiB of barriers."""
HEIGHT = 16
"""Rows of a tile are a multiple of it."""
MOST_ROWS = 128
WIDTHS = (64, 128)
"""Columns of a tile."""


@cache
def fastest(case: Case) -> Form:
    """The form with the fewest cycles."""
    highest = min(ceil_div(case.m, HEIGHT) * HEIGHT, MOST_ROWS)
    most = 1 if SIMULATED else ceil_div(case.depth, ROW_BYTES // ITEMSIZE[case.dtype])
    tiles = [Tile(rows, columns, swapped=1) for rows in range(highest, 0, -HEIGHT) for columns in WIDTHS]
    forms = [_form(tile.of(case), blocks) for tile in tiles for blocks in AT_ONCE if blocks <= most]
    return min(forms, key=lambda form: form.cycles(case))


def form_of(case: Case) -> Form:
    """The fastest; of several waves with fewer stages, so that two blocks run on a multiprocessor."""
    form = fastest(case)
    return _form(form.tile, form.blocks, SHARED_BYTES // 2) if form.waves(case) > 1 else form


def _form(tile: Tile, blocks: int, memory: int = SHARED_BYTES) -> Form:
    """With as many stages as fit beside the sums that the other blocks of a cluster send."""
    parts = tile.rows * tile.columns // (GROUP * PART)
    sent = (blocks - 1) * ceil_div(parts, blocks) * GROUP * PART * 4
    fit = (memory - sent) // replace(tile, stages=1).shared_bytes
    return Form(replace(tile, stages=max(2, min(MOST_STAGES, fit))), blocks, sent)


def build(case: Case) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc, a_map, b_map)``."""
    tile, cluster, sent = form_of(case)
    element, float32, barrier = number(case.dtype), number("float32"), number("uint64")
    rows, columns, depth, stage_count, sums = tile.rows, tile.columns, tile.depth, tile.stages, tile.sums
    a_elements, elements, by_rows = tile.a_elements, tile.elements, tile.b_layout == BY_ROWS
    piece = tile.piece_bytes // ITEMSIZE[case.dtype] if by_rows else columns
    multiply, after = products_of(tile), next_state(stage_count)
    eights, parts, others = rows // 8, sums // PART, cluster - 1
    own_parts = ceil_div(parts, cluster)
    own_sums, part_bytes = own_parts * PART, others * GROUP * PART * 4
    received = max(1, sent // 4)
    store = store_pair(produced(case.dtype))

    def few_rows_clustered(
        c: Array, a: Array, b: Array, m: Index, n: Index, k: Index, lda: Index, ldb: Index, ldc: Index,
        a_map: Index, b_map: Index,
    ) -> None:  # fmt: skip
        # (stages, rows of A and then columns of B, 128 bytes along k)
        tiles = cuda.shared.array(0, element, alignment=TILE_ALIGNMENT)
        of_others = cuda.shared.array(received, float32, alignment=ALIGNMENT)  # (other blocks, own parts, threads, 4)
        full = cuda.shared.array(stage_count, barrier)
        empty = cuda.shared.array(stage_count, barrier)
        complete = cuda.shared.array(1, barrier)
        accumulators = cuda.local.array(sums, float32)  # of a consumer's thread: (columns / 64, rows / 8, 2, 2)
        own = cuda.local.array(own_sums, float32)  # (own parts, 2, 2)
        rank = cuda.blockIdx.x % cluster
        place = Place(cuda.blockIdx.y * rows, cuda.blockIdx.x // cluster * columns)
        group, thread = own_group(), cuda.threadIdx.x % GROUP
        if cuda.threadIdx.x == 0:
            for stage in range(stage_count):
                set_barrier(full, stage, 2)  # the threads that copy; the bytes are counted beside
                set_barrier(empty, stage, 1)
            if others > 0:
                set_barrier(complete, 0, 1)
                expect_bytes(complete, 0, (parts + others - rank) // cluster * part_bytes)
            publish_barriers()
            acquire_map(b_map)
        if cuda.threadIdx.x == WARP:
            acquire_map(a_map)
        cuda.syncthreads()
        if others > 0:
            arrive_at_cluster()
        steps = (k + (depth - 1)) // depth
        first, end = rank * steps // cluster * depth, (rank + 1) * steps // cluster * depth
        state = PipelineState(uint32(0), uint32(0))
        if group == 0:
            if thread == 0:
                width = min(uint32(columns), n - place.col) if piece < columns else uint32(columns)
                size = (width + (piece - 1)) // piece * (piece * ROW_BYTES)  # of pieces that have some of B
                for k0 in range(first, end, depth):
                    wait_for_phase(empty, state.stage, 1 - state.phase)
                    expect_bytes(full, state.stage, size)
                    at = state.stage * elements + a_elements
                    if by_rows:
                        for number in range(columns // piece):
                            column = uint32(number) * piece
                            if column < width:
                                start_copy(tiles, at + column * depth, b_map, place.col + column, k0, full, state.stage)
                    else:
                        start_copy(tiles, at, b_map, k0, place.col, full, state.stage)
                    state = after(state)
            elif thread == WARP:
                for k0 in range(first, end, depth):
                    wait_for_phase(empty, state.stage, 1 - state.phase)
                    expect_bytes(full, state.stage, rows * ROW_BYTES)
                    start_copy(tiles, state.stage * elements, a_map, k0, place.row, full, state.stage)
                    state = after(state)
            if others > 0:
                wait_for_cluster()
        else:
            for i in range(sums):
                accumulators[i] = 0
            member, before = Member(0, thread), state.stage
            for k0 in range(first, end, depth):
                wait_for_phase(full, state.stage, state.phase)
                begin_products()
                multiply(accumulators, tiles, state.stage * elements, member)
                commit_products()
                finish_products(1)  # all but the newest: the stage before has been read
                if k0 > first and thread == 0:
                    arrive(empty, before)
                before, state = state.stage, after(state)
            finish_products(0)
            if others > 0:
                wait_for_cluster()  # the other blocks have set up their barriers
                for i in range(parts):
                    to = i % cluster
                    if to != rank:
                        block = (rank + (others - to)) % cluster  # this one, among those that send there
                        at = ((block * own_parts + uint32(i // cluster)) * GROUP + thread) * PART
                        send_vector(accumulators, i * PART, of_others, at, complete, 0, uint32(to))
            for i in range(parts):
                if i % cluster == rank:
                    for j in range(PART):
                        own[i // cluster * PART + j] = accumulators[i * PART + j]
            if others > 0:
                wait_for_phase(complete, 0, uint32(0))
                for block in range(others):
                    for i in range(own_parts):
                        added = load_vector(of_others, ((block * own_parts + i) * GROUP + thread) * PART)
                        for j in range(PART):
                            own[i * PART + j] += added[j]
            lane, row, col = thread % WARP, thread % 4 * 2, thread // WARP * 16 + thread % WARP // 4
            odd = col % 2
            for i in range(own_parts):
                part = uint32(i * cluster) + rank
                at_row = place.row + part % eights * 8 + row + odd
                for side in range(2):
                    # The lane of an even column has two columns of the upper row, its neighbour those of the lower.
                    upper, lower = own[i * PART + side * 2], own[i * PART + side * 2 + 1]
                    other = cuda.shfl_sync(ALL_LANES, upper if odd else lower, lane ^ 4)
                    at_col = place.col + part // eights * ROWS + col - odd + uint32(side * 8)
                    if part < parts and at_row < m and at_col < n:
                        store(c, at_row * ldc + at_col, other if odd else upper, lower if odd else other)

    across, down = tile.grid(case)
    return NumbaKernel(
        few_rows_clustered,
        grid=(across * cluster, down),
        block=(2 * GROUP, 1),
        cluster=cluster,
        dynamic_bytes=tile.shared_bytes,
        tensor_maps=tile.maps(case),
        launch_bounds=(2 * GROUP, 1),
        variant=f"{rows}x{columns} by {cluster}, {stage_count} stages",
    )


def elements_of(case: Case) -> int:
    """Elements of A's type in all stages."""
    return form_of(case).tile.tile_elements(case)


KERNEL = Kernel(
    problem="matmul",
    name="fewRowsClustered",
    kind="cuda",
    summary="products of few rows: k split among a cluster's blocks, sums through distributed shared memory",
    build=build,
    blocks=False,
    results=(128, 16),
    tile_elements=elements_of,
    dynamic_elements=elements_of,
    dtypes=NARROW,
    b_layouts=(BY_ROWS, BY_COLUMNS),
    unsupported=unsupported,
    needs="9.0a",
    standard=False,
    ladder="swapped operands, and k split among a cluster's blocks",
    few=128,
)
