"""streamK: serpentine with a persistent grid whose blocks share all steps along k of all tiles evenly.

1. All steps along k are numbered, tile after tile, and each block gets an equal range of them.
2. A block computes its range from the last tile to the first. Where it has only the first steps of a tile, it writes
   its partial sums to C and raises its flag; that tile is the first that it computes.
3. The block that has the last steps of a tile waits for the flag, adds the partial sums and writes the results.

A thread has 8 × 8 results again, half as many as in serpentine16x8.

After Osama, Merrill, Cecka, Garland and Owens, "Stream-K", PPoPP 2023. Copies of the next tile are asynchronous
(capability 8.0 or newer) and interleaved with the main loop. Where rows of B and C are not aligned, results go through
shared memory so that whole sectors are written, and partial sums are added in the L2. Without a GPU, predicted accesses
are for blocks of whole tiles without partial sums. Findings: results/reference/notes/stream_k.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import prod

from smembench.kernels.intrinsics.async_copy import commit_copies, wait_for_copies
from smembench.kernels.intrinsics.block_flags import MOST_BLOCKS, raise_flag, wait_for_flag
from smembench.kernels.intrinsics.fragments import scheduling_barrier
from smembench.kernels.matmul.cuda.serpentine import Variant
from smembench.kernels.matmul.epilogue import Window, add_within, staging, write_within
from smembench.kernels.matmul.interleaved_copies import steps_with_copies
from smembench.kernels.matmul.predication import predication
from smembench.kernels.matmul.register_pipelining import ResultOrder, load_fragments, outer_product, pipelined_steps
from smembench.kernels.matmul.remainder import remainder, small_remainder
from smembench.kernels.matmul.structs import Offsets, Share
from smembench.kernels.matmul.tile_steps import tile_steps
from smembench.kernels.matmul.tiling import Tiling, kernel_of_tiling
from smembench.kernels.numba_cuda import cuda, device, uint32, uint64
from smembench.kernels.program import NumbaKernel
from smembench.kernels.types import Array, Index, Matrix, Place
from smembench.model.case import Block, Case

FEWEST = 16
"""Fewest steps per block where there are more blocks than tiles; fewer were not tried."""

EVEN = 16
"""At most one multiprocessor in EVEN is left idle, so that all tiles have equally many blocks."""

VARIANT = Variant(8, 8, ResultOrder(by_rows=False))


def blocks_on(tiles: int, steps: int, resident: int, multiprocessors: int) -> int:
    """Blocks that share ``tiles`` of ``steps`` along k on a device that runs ``resident`` blocks per multiprocessor.

    With no more tiles than multiprocessors, one block on each: with two, partial sums would be passed on twice as
    often. Each tile gets equally many blocks where that leaves no more than one multiprocessor in EVEN idle.
    """
    most = min(max(tiles, tiles * steps // FEWEST), MOST_BLOCKS)
    if tiles > multiprocessors:
        return min(most, resident * multiprocessors)
    blocks = min(most, multiprocessors)
    idle = blocks % tiles
    return blocks - idle if idle * EVEN <= blocks else blocks


def segments_on(tiles: int, steps: int, resident: int, multiprocessors: int) -> Sequence[int]:
    """Blocks that compute a part of each tile, where no chunks are left over: a range can end within a tile."""
    blocks = blocks_on(tiles, steps, resident, multiprocessors)
    begins = (block * tiles * steps // blocks for block in range(1, blocks))
    cuts = Counter(begin // steps for begin in begins if begin % steps)
    return [1 + cuts[tile] for tile in range(tiles)]


CHUNKS_PER_TILE = 32
"""Chunks of the remainder that take as long as a tile, inferred from whole products (notes/remainder.md)."""

COPYING = 8
"""Steps of a tile that are followed by copies of the next one: the first half."""


@device
def first_step(block: Index, blocks: Index, steps: Index, chunks: Index, steps_per_chunk: Index) -> Index:
    """A block's first step, where all blocks share the steps evenly; the end for the block after the last.

    Chunks, which blocks take in turn, count as ``steps_per_chunk`` steps each, or fewer where a block would be left
    without a step and never raise its flag. ``blocks_on`` makes no more blocks than steps.
    """
    cost = min(steps_per_chunk, max(steps // blocks, 1) - 1)
    all_before = uint32(uint64(block) * (steps + uint64(cost) * chunks) // blocks)
    chunks_before = block * (chunks // blocks) + min(block, chunks % blocks)
    return all_before - cost * chunks_before


def program(case: Case, tiling: Tiling) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)`` on a tiling of an even depth, all steps unrolled."""
    _, b_width = tiling.widths(case)
    few = small_remainder(case, tiling)
    # Chosen by timing: by the model of register bank conflicts B's fragment should come first for aligned rows too.
    order = replace(VARIANT.order, b_early=few or b_width == 1)
    functions = tile_steps(case, tiling, fragment_buffers=2)
    allocate, position, first_tiles = functions.allocate, functions.position, functions.first_tiles
    load_tiles, store_tiles = functions.load_tiles, functions.store_tiles
    add, write = add_within(tiling, b_width), write_within(tiling, b_width)
    width, rows, columns, depth = tiling.block.x, tiling.rows, tiling.columns, tiling.depth
    a_elements, b_elements = tiling.a_elements, tiling.b_elements
    load_first = load_fragments(tiling, order, 0)
    all_but_last = pipelined_steps(tiling, order, 0, depth - 1)
    multiply_last = outer_product(tiling, order, 1)
    bounds = predication(tiling, case)
    origin, short_of, first, inside = bounds.origin, bounds.short, bounds.first, bool(bounds.label)
    copies = steps_with_copies(tiling, b_width, order, COPYING)
    copy_ends, steps_with_copying = copies.ends, copies.steps
    staged = staging(tiling, 2 * b_elements)
    parts, stage, write_staged = staged.parts, staged.stage, staged.write
    over_rows, over_columns = (0, 0) if few else (rows - 1, columns - 1)
    left_over = remainder(tiling, tiles_follow=True)
    chunk_count, compute_remainder = left_over.chunks, left_over.compute

    def stream_k(
        c: Array, a: Array, b: Array, m: Index, n: Index, k: Index, lda: Index, ldb: Index, ldc: Index
    ) -> None:
        C, A, B = Matrix(c, m, n, ldc), Matrix(a, m, k, lda), Matrix(b, k, n, ldb)
        memory = allocate()
        thread = cuda.threadIdx.y * width + cuda.threadIdx.x
        block = cuda.blockIdx.y * cuda.gridDim.x + cuda.blockIdx.x
        blocks = cuda.gridDim.x * cuda.gridDim.y
        row, col = position(thread)
        short = short_of(k)
        steps_per_tile = (k + (depth - 1)) // depth
        tiles_across = (n + over_columns) // columns
        tiles = tiles_across * ((m + over_rows) // rows)
        chunks = chunk_count(m, n) if few else uint32(0)
        steps_per_chunk = steps_per_tile // CHUNKS_PER_TILE
        begins = first_step(block, blocks, tiles * steps_per_tile, chunks, steps_per_chunk)
        end = first_step(block + 1, blocks, tiles * steps_per_tile, chunks, steps_per_chunk)
        if few:
            compute_remainder(C, A, B, memory, thread)
        while end > begins:
            tile = (end - 1) // steps_per_tile
            base = tile * steps_per_tile
            since = max(begins, base) - base
            until = end - base
            top, left = tile // tiles_across * rows, tile % tiles_across * columns
            row0 = top if few else origin(tile // tiles_across, rows, m)
            col0 = left if few else origin(tile % tiles_across, columns, n)
            share = Share(thread, Place(row0, col0), short)
            k0 = since * depth
            last = until * depth
            buffer = uint32(0)
            from_k = k0 - short if since > 0 else uint32(0)
            to_k = k if since > 0 else first(k, short)
            first_tiles(memory, Matrix(a, m, to_k, lda), Matrix(b, to_k, n, ldb), share, from_k)
            at_a, at_b = uint64(row), uint64(col)
            load_first(memory, Offsets(at_a, at_b))
            while k0 < last:
                k0 += depth
                if inside:
                    buffer = 1 - buffer
                    source, target = copy_ends(A, B, share, k0, buffer)
                    steps_with_copying(memory, Offsets(at_a, at_b), A, B, source, target)
                    commit_copies()
                    wait_for_copies(0)
                else:
                    load_tiles(memory.held, A, B, thread, Place(row0, col0), k0)
                    scheduling_barrier()
                    all_but_last(memory, Offsets(at_a, at_b))
                    buffer = 1 - buffer
                    store_tiles(memory, buffer, thread)
                cuda.syncthreads()
                at_a = uint64(buffer * a_elements) + uint64(row)
                at_b = uint64(buffer * b_elements) + uint64(col)
                load_first(memory, Offsets(at_a, at_b))
                multiply_last(memory)
            if since > 0:
                if thread == 0:
                    wait_for_flag(block - 1)
                cuda.syncthreads()
                if b_width > 1:
                    add(memory.accumulators, C, Place(row0 + row, col0 + col), Place(top, left))
            if b_width > 1:
                write(C, memory.accumulators, Place(row0 + row, col0 + col), Place(top, left))
            else:
                for part in range(parts):
                    cuda.syncthreads()
                    stage(memory, Place(row, col), part)
                    cuda.syncthreads()
                    window = Window(Place(row0, col0), Place(top, left))
                    write_staged(C, memory.tiles.b, thread, part, since > 0, window)
            # Partial sums are written before the flag is raised, and fragments read before the next tile is stored.
            cuda.syncthreads()
            if until < steps_per_tile and thread == 0:
                raise_flag(block)
            end = base + since

    made = tiling.program(stream_k, case, bounds.label, few=few)
    steps = -(-(case.k or 0) // depth)
    shared = prod(made.grid), steps, tiling.launch_bounds[1]
    return replace(
        made, persistent_blocks=partial(blocks_on, *shared), segments=None if few else partial(segments_on, *shared)
    )


KERNEL = kernel_of_tiling(
    "streamK",
    VARIANT.tiling,
    program,
    summary="serpentine with a persistent grid, whose blocks share all steps along k of all tiles evenly",
    results=(VARIANT.across, VARIANT.down),
    blocks=(Block(16, 16),),
    needs="8.0",
    ladder="blocks share all steps along k, across tiles",
)
