"""fewRowsClustered: wgmmaSpecialized for products of few rows, in tiles that occupy nearly all multiprocessors at once.

Reading B takes the time, and so does copying A, which every block needs whole.

1. A tile has any multiple of 8 columns, so that one wave of blocks takes all of them, and as many rows as A needs: the
   rows up to 64 that ``wgmma`` multiplies beside them are whatever follows in shared memory, and are not written.
2. Where tiles are few, a cluster's blocks share out a tile's steps along k. At the end a thread has sums of all
   columns, four per part. Each block adds up some parts: the others send theirs there by ``st.async``, and they arrive
   at its barrier. In shared memory they lie by thread, as in registers, so neither side has bank conflicts, and no
   barrier of the cluster is waited for.
3. Where rows are many, two or four blocks, one below the other, share a tile of B: they take turns to copy it to all of
   them by multicast.

Findings: results/reference/notes/few_rows.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from smembench.kernels.common.grids import ceil_div
from smembench.kernels.intrinsics.bulk_copy import (
    ROW_BYTES,
    TILE_ALIGNMENT,
    expect_bytes,
    prefetch_map,
    publish_barriers,
    set_barrier,
    wait_for_phase,
)
from smembench.kernels.intrinsics.clusters import (
    arrive_at_cluster,
    meet_cluster,
    send_vector,
    wait_for_cluster,
)
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
from smembench.kernels.matmul.cluster_tiles import copying, inwards, releasing
from smembench.kernels.matmul.tile_choice import AT_ONCE, SHARED_BYTES, Form, unsupported
from smembench.kernels.matmul.warp_groups import Member, PipelineState, Stages, Tile, next_state, products_of
from smembench.kernels.numba_cuda import SIMULATED, cuda, number, uint32
from smembench.kernels.program import NumbaKernel
from smembench.kernels.types import Array, Index, Map, Place
from smembench.model.case import BY_COLUMNS, BY_ROWS, Case
from smembench.model.formats import NARROW, produced
from smembench.model.hardware import WARP
from smembench.model.problem import ITEMSIZE

PART = 4
"""Sums of a thread that go together: two rows, and two columns."""
LEAST_STAGES, MOST_STAGES = 6, 12
"""Fewer stages took longer, more no less."""
EIGHT, PIECE_BYTES = 8, 64
"""Rows and columns of a tile are multiples of eight; by rows, columns of pieces of B."""
MOST_ROWS, MOST_COLUMNS = 128, 256
WIDTHS = (64, 128)
"""Columns that are tried beside those that one wave or two call for."""
CLUSTERS = ((1, 1), (2, 1), (3, 1), (4, 1), (1, 2), (1, 4))
"""Blocks of a cluster that split k, and that share B."""


@cache
def form_of(case: Case) -> Form:
    """The form with the fewest cycles."""
    return min(_forms(case), key=lambda form: form.cycles(case))


def _forms(case: Case) -> Iterator[Form]:
    most = ceil_div(case.depth, ROW_BYTES // ITEMSIZE[case.dtype])
    for split, shared in ((1, 1),) if SIMULATED else CLUSTERS:
        heights = {EIGHT * ceil_div(case.m, EIGHT * shared * down) for down in _counts(case.m, shared)}
        # Up to 64 rows tiles below each other take no fewer instructions.
        for rows in heights if split <= most and (shared == 1 or case.m > ROWS) else ():
            down = ceil_div(case.m, shared * rows)
            least = max(-rows % ROWS, ROWS if split * shared == 1 else EIGHT)  # narrow tiles are better split
            for columns in _widths(case, least, AT_ONCE[split * shared] // down):
                form = filled(Tile(rows, columns, share_b=shared).of(case), split)
                if form.waves(case) > 1:
                    half = filled(form.tile, split, SHARED_BYTES // 2)  # so that two blocks run on a multiprocessor
                    form = half if half.tile.stages >= LEAST_STAGES else form
                if form.tile.stages >= LEAST_STAGES:
                    yield form


def _counts(m: int, shared: int) -> set[int]:
    """Numbers of tiles, or clusters of them, below each other: the fewest, and up to four times as many."""
    fewest = ceil_div(m, shared * MOST_ROWS)
    return {fewest * factor for factor in (1, 2, 4)}


def _widths(case: Case, least: int, at_once: int) -> set[int]:
    """Columns of a tile, ``least`` or more: as many as one wave or two call for, and others."""
    step = PIECE_BYTES // ITEMSIZE[case.dtype] if case.b_layout == BY_ROWS else EIGHT
    fitting = (ceil_div(case.n, waves * at_once) for waves in (1, 2) if at_once)
    widths = {step * ceil_div(max(columns, least), step) for columns in (*fitting, *WIDTHS)}
    return {columns for columns in widths if columns <= MOST_COLUMNS}


def filled(tile: Tile, split: int, memory: int = SHARED_BYTES) -> Form:
    """The form with as many stages as fit beside the sums that the other blocks of a cluster send."""
    sent = (split - 1) * ceil_div(tile.sums // PART, split) * tile.consumers * GROUP * PART * 4
    fit = (memory - sent) // replace(tile, stages=1).shared_bytes
    return Form(replace(tile, stages=min(MOST_STAGES, fit)), split, sent)


def build(case: Case) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc, a_map, b_map)``."""
    form = form_of(case)
    tile, split, cluster = form.tile, form.split, form.cluster
    element, float32, barrier = number(case.dtype), number("float32"), number("uint64")
    rows, columns, depth, stage_count, sums = tile.rows, tile.columns, tile.depth, tile.stages, tile.sums
    shared, consumers, elements = tile.share_b, tile.consumers, tile.elements
    copy, release, multiply, after = copying(tile), releasing(shared), products_of(tile), next_state(stage_count)
    parts, others, workers = sums // PART, split - 1, consumers * GROUP
    own_parts = ceil_div(parts, split)
    own_sums, part_bytes = own_parts * PART, others * workers * PART * 4
    received = max(1, form.sent // 4)
    store = store_pair(produced(case.dtype))

    def few_rows_clustered(
        c: Array, a: Array, b: Array, m: Index, n: Index, k: Index, lda: Index, ldb: Index, ldc: Index,
        a_map: Map, b_map: Map,
    ) -> None:  # fmt: skip
        # (stages, rows of A and then columns of B, 128 bytes along k)
        tiles = cuda.shared.array(0, element, alignment=TILE_ALIGNMENT)
        # (other blocks, own parts, threads of the consumers, 4)
        of_others = cuda.shared.array(received, float32, alignment=ALIGNMENT)
        full = cuda.shared.array(stage_count, barrier)
        empty = cuda.shared.array(stage_count, barrier)
        complete = cuda.shared.array(1, barrier)
        stages = Stages(tiles, full, empty)
        accumulators = cuda.local.array(sums, float32)  # of a consumer's thread: (columns / 8, 2, 2)
        own = cuda.local.array(own_sums, float32)  # (own parts, 2, 2)
        rank = cuda.blockIdx.x % cluster
        row, column = (cuda.blockIdx.y * shared + rank % shared) * rows, cuda.blockIdx.x // cluster * columns
        place = Place(inwards(row, uint32(rows), m), inwards(column, uint32(columns), n))
        group, thread = own_group(), cuda.threadIdx.x % GROUP
        if cuda.threadIdx.x == 0:
            prefetch_map(a_map)
            prefetch_map(b_map)
            for stage in range(stage_count):
                set_barrier(full, stage, 1)
                set_barrier(empty, stage, shared * consumers)
            if others > 0:
                set_barrier(complete, 0, 1)
                expect_bytes(complete, 0, (parts + others - rank) // split * part_bytes)
            publish_barriers()
        if shared > 1:
            meet_cluster()
        else:
            cuda.syncthreads()
            if others > 0:
                arrive_at_cluster()
        steps = (k + (depth - 1)) // depth
        share = rank // shared  # of k
        first, end = share * steps // split * depth, (share + 1) * steps // split * depth
        state = PipelineState(uint32(0), uint32(0))
        if group == 0:
            if thread == 0:
                for k0 in range(first, end, depth):
                    wait_for_phase(empty, state.stage, 1 - state.phase)
                    copy(stages, state.stage, a_map, b_map, place, k0, Place(m, n))
                    state = after(state)
                if shared > 1:
                    # A block's barriers end with it: wait until both have read all stages.
                    for _ in range(stage_count):
                        wait_for_phase(empty, state.stage, 1 - state.phase)
                        state = after(state)
            if others > 0:
                wait_for_cluster()
        else:
            for i in range(sums):
                accumulators[i] = 0
            member, before = Member(group - 1, thread), state.stage
            for k0 in range(first, end, depth):
                wait_for_phase(full, state.stage, state.phase)
                begin_products()
                multiply(accumulators, tiles, state.stage * elements, member)
                commit_products()
                finish_products(1)  # all but the newest: the stage before has been read
                if k0 > first:
                    release(empty, before, thread)
                before, state = state.stage, after(state)
            finish_products(0)
            release(empty, before, thread)
            worker = (group - 1) * GROUP + thread
            if others > 0:
                wait_for_cluster()  # the other blocks have set up their barriers
                for i in range(parts):
                    to = i % split
                    if to != rank:
                        block = (rank + (others - to)) % split  # this one, among those that send there
                        at = ((block * own_parts + uint32(i // split)) * workers + worker) * PART
                        send_vector(accumulators, i * PART, of_others, at, complete, 0, uint32(to))
            for i in range(parts):
                if i % split == share:
                    for j in range(PART):
                        own[i // split * PART + j] = accumulators[i * PART + j]
            if others > 0:
                wait_for_phase(complete, 0, uint32(0))
                for i in range(own_parts):
                    if uint32(i * split) + share < parts:
                        for block in range(others):
                            added = load_vector(of_others, ((block * own_parts + i) * workers + worker) * PART)
                            for j in range(PART):
                                own[i * PART + j] += added[j]
            lane = thread % WARP
            row, col = place.row + worker // WARP * 16 + lane // 4, place.col + lane % 4 * 2
            end_row = min(m, place.row + rows)
            for i in range(own_parts):
                part = uint32(i * split) + share
                at_col = col + part * 8
                for side in range(2):
                    at_row = row + uint32(side * 8)
                    if part < parts and at_row < end_row and at_col < n:
                        store(c, at_row * ldc + at_col, own[i * PART + side * 2], own[i * PART + side * 2 + 1])

    across, down = tile.grid(case)
    threads = (1 + consumers) * GROUP
    return NumbaKernel(
        few_rows_clustered,
        grid=(across * cluster, down),
        block=(threads, 1),
        cluster=cluster,
        dynamic_bytes=tile.shared_bytes,
        tensor_maps=tile.maps(case),
        launch_bounds=(threads, 1),
        variant=f"{rows}x{columns} by {split}{tile.sharing}, {stage_count} stages",
    )


def elements_of(case: Case) -> int:
    """Elements of A's type in all stages."""
    return form_of(case).tile.tile_elements(case)


KERNEL = Kernel(
    problem="matmul",
    name="fewRowsClustered",
    kind="cuda",
    summary="products of few rows: one wave of tiles, whose k or tiles of B a cluster's blocks share",
    build=build,
    blocks=False,
    results=(128, 4),
    tile_elements=elements_of,
    dynamic_elements=elements_of,
    dtypes=NARROW,
    b_layouts=(BY_ROWS, BY_COLUMNS),
    unsupported=unsupported,
    needs="9.0a",
    standard=False,
    ladder="one wave of tiles, whose k or tiles of B a cluster's blocks share",
    few=128,
)
