"""streamK: serpentine with a persistent grid, whose blocks share all steps along k of all tiles evenly.

What changes: the steps of a product, those along k of one tile after the other, are counted through, and each of as
many blocks as run at once has an even share of them, wherever in a tile that begins and ends. A block goes over its
share from the last tile to the first. Of the tile that its share begins in the middle of, the block before it has the
first steps, and computes them first of all, leaves its sums in C and says so; this
block comes to the tile last of all, adds those sums to its own and writes the results. Nothing but C holds what is
handed over. A tile that is moved inwards writes the results only that no other tile has. The decomposition is that of
Osama, Merrill, Cecka, Garland and Owens, "Stream-K", PPoPP 2023, with serpentine's loop. Predictions of accesses are
for blocks that have a whole tile each and hand over nothing.

The next tile is copied asynchronously and past the registers (compute capability 8.0 or newer), a few elements after
each step (``smembench.kernels.matmul.between``). Where rows of B and C are not aligned, sums are put in order in shared
memory, so that whole sectors are written, and those handed over are added in the L2. Up to eight rows or columns beyond
whole tiles are dealt out (``smembench.kernels.matmul.left_over``), and count as steps.

Relieves the last round: 1152 is 81 tiles of 128 × 128 for the 132 SMs of an H200, and 2176 is 289 for the 264 blocks
that it runs at once, which take as long as 528. Predicted: at every size what serpentine has with full rounds, 1.03
times it at 2048, 4096 and 8192, where they are full to 0.97, less some µs for handing over.

Found there (2026-11-22): 1.027, 1.040 and 1.032 times serpentine at 2048, 4096 and 8192, which is 1.008, 1.025 and
1.031 of cuBLAS; 1.128 of cuBLAS at 1024, 1.172 at 1152, 1.253 at 1536, 1.169 at 2176. With one block on an SM instead
of two, where tiles are few: 1.10 times as fast at 1024, 1.06 at 1152, but 0.97 at 1536. Where rows are not aligned:
1.027, 1.113, 1.230, 1.219, 1.050 and 1.092 of cuBLAS at 1023, 1153, 1537, 2049, 4095 and 4097. Copies at the head of
the loop, and results written with dozens of instructions of index arithmetic each, had left 0.83 and 0.94 at the first
two. Its port in CUDA C, for aligned rows: 0.96 to 0.97 of it at 1024 to 8192.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

from smembench.kernels.intrinsics.async_copy import commit_copies, wait_for_copies
from smembench.kernels.intrinsics.block_flags import MOST_BLOCKS, hand_over, wait_for
from smembench.kernels.intrinsics.vector import ALIGNMENT
from smembench.kernels.matmul.ahead import Order, advance, load_fragments, outer_product, stay
from smembench.kernels.matmul.between import advance_copying
from smembench.kernels.matmul.cuda.serpentine import Variant
from smembench.kernels.matmul.left_over import few_left_over, left_over
from smembench.kernels.matmul.loading import loading
from smembench.kernels.matmul.pieces import pieces
from smembench.kernels.matmul.results import add_within, staging, write_within
from smembench.kernels.matmul.tiling import Tiling, kernel_of_tiling
from smembench.kernels.numba_cuda import cuda, device, number, uint32, uint64
from smembench.kernels.program import NumbaKernel
from smembench.model.case import Block, Case

FEWEST = 16
"""Steps of a block at least, where there are more blocks than tiles; fewer were not tried."""

EVEN = 16
"""Of so many multiprocessors one may be idle, so that all tiles have as many blocks."""

VARIANT = Variant(8, 8, Order(by_rows=False))


def blocks_on(tiles: int, steps: int, resident: int, multiprocessors: int) -> int:
    """Blocks that share ``tiles`` of so many steps along k on a device that can run ``resident`` on a multiprocessor.

    With no more tiles than multiprocessors, one on each: with two, sums would go through twice as many hands, which
    takes longer than one alone waits. And as many for every tile, where that leaves idle no more than one in EVEN.
    """
    most = min(max(tiles, tiles * steps // FEWEST), MOST_BLOCKS)
    if tiles > multiprocessors:
        return min(most, resident * multiprocessors)
    blocks = min(most, multiprocessors)
    idle = blocks % tiles
    return blocks - idle if idle * EVEN <= blocks else blocks


PIECES_OF_A_TILE = 32
"""Pieces of what is left over that take as long as a tile: some 26 to 36 on an H200, inferred from whole products."""

COPYING = 8
"""Steps along k of a tile after each of which some of the next tile is copied: the first half."""


@device
def first_step(block: Any, blocks: Any, steps: Any, pieces: Any, piece: Any) -> Any:
    """A block's first of all steps, when all blocks share them evenly; that of the block after the last is the end.

    Pieces, which blocks take in turn, count as so many steps each as ``piece`` says, or as fewer, so that every block
    has a step where there are as many. ``blocks_on`` makes no more blocks: one without a step would hand over nothing.
    """
    cost = min(uint32(piece), uint32(max(uint32(steps // blocks), uint32(1)) - uint32(1)))
    all_before = uint32(uint64(uint64(block) * uint64(steps + cost * pieces)) // uint64(blocks))
    pieces_before = uint32(block * uint32(pieces // blocks) + min(block, uint32(pieces % blocks)))
    return uint32(all_before - cost * pieces_before)


def program(case: Case, tiling: Tiling) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)`` on a tiling of an even depth, all steps written out."""
    position, load_a, load_b, store_a, store_b, *_ = pieces(case, tiling)
    _, b_width = tiling.widths(case)
    few = few_left_over(case, tiling)
    # Timed, not predicted: by the model of register reads B's fragment should come first where rows are aligned too.
    order = replace(VARIANT.order, b_early=few or b_width == 1)
    add, write = add_within(tiling, b_width), write_within(tiling, b_width)
    dtype = number(case.dtype)
    zero = dtype(0)
    width, rows, columns, depth = tiling.block.x, tiling.rows, tiling.columns, tiling.depth
    count, both_a_parts, both_b_parts = tiling.down * tiling.across, 2 * tiling.down, 2 * tiling.across
    a_elements, b_elements, a_share, b_share = tiling.a_elements, tiling.b_elements, tiling.a_share, tiling.b_share
    a_both, b_both = 2 * a_elements, 2 * b_elements
    load_first = load_fragments(tiling, order, 0)
    all_but_last = advance(tiling, order, 0, depth - 1)
    multiply_last = outer_product(tiling, order, 1)
    label, origin, short_of, first, *_ = loading(tiling, case)
    parts, stage, write_staged = staging(tiling, b_both)
    inside, copying = bool(label), advance_copying(tiling, b_width, order, COPYING)
    over_rows, over_columns = (0, 0) if few else (rows - 1, columns - 1)
    pieces_left, corner, sum_up, write_sums = left_over(tiling)

    def stream_k(c: Any, a: Any, b: Any, m: Any, n: Any, k: Any, lda: Any, ldb: Any, ldc: Any) -> None:
        a_tile = cuda.shared.array(a_both, dtype, alignment=ALIGNMENT)
        b_tile = cuda.shared.array(b_both, dtype, alignment=ALIGNMENT)
        total = cuda.local.array(count, dtype, alignment=ALIGNMENT)
        a_parts = cuda.local.array(both_a_parts, dtype, alignment=ALIGNMENT)
        b_parts = cuda.local.array(both_b_parts, dtype, alignment=ALIGNMENT)
        a_held = cuda.local.array(a_share, dtype, alignment=ALIGNMENT)
        b_held = cuda.local.array(b_share, dtype, alignment=ALIGNMENT)
        thread = uint32(uint32(cuda.threadIdx.y) * uint32(width) + uint32(cuda.threadIdx.x))
        block = uint32(uint32(cuda.blockIdx.y) * uint32(cuda.gridDim.x) + uint32(cuda.blockIdx.x))
        blocks = uint32(uint32(cuda.gridDim.x) * uint32(cuda.gridDim.y))
        row, col = position(thread)
        short = short_of(k)
        deep = uint32(uint32(k + uint32(depth - 1)) // uint32(depth))
        wide = uint32(uint32(n + uint32(over_columns)) // uint32(columns))
        tiles = uint32(wide * uint32(uint32(m + uint32(over_rows)) // uint32(rows)))
        left_pieces = pieces_left(m, n) if few else uint32(0)
        as_steps = uint32(deep // uint32(PIECES_OF_A_TILE))
        begins = first_step(block, blocks, uint32(tiles * deep), left_pieces, as_steps)
        end = first_step(uint32(block + uint32(1)), blocks, uint32(tiles * deep), left_pieces, as_steps)
        if few:
            piece = block
            while piece < left_pieces:
                first_row, first_col = corner(piece, m, n)
                sum_up(b_tile, total, a, b, thread, first_row, first_col, m, n, k, lda, ldb)
                cuda.syncthreads()
                write_sums(c, b_tile, thread, first_row, first_col, m, n, ldc)
                cuda.syncthreads()
                piece = uint32(piece + blocks)
        while end > begins:
            tile = uint32(uint32(end - uint32(1)) // deep)
            base = uint32(tile * deep)
            since = uint32(max(begins, base) - base)
            until = uint32(end - base)
            top = uint32(uint32(tile // wide) * uint32(rows))
            left = uint32(uint32(tile % wide) * uint32(columns))
            row0 = top if few else origin(uint32(tile // wide), uint32(rows), m)
            col0 = left if few else origin(uint32(tile % wide), uint32(columns), n)
            for i in range(count):
                total[i] = zero
            k0 = uint32(since * uint32(depth))
            last = uint32(until * uint32(depth))
            buffer = uint32(0)
            from_k = uint32(k0 - short) if since > uint32(0) else uint32(0)
            to_k = k if since > uint32(0) else first(k, short)
            load_a(a_held, a, thread, row0, from_k, m, to_k, lda)
            load_b(b_held, b, thread, col0, from_k, n, to_k, ldb)
            store_a(a_tile, uint64(0), a_held, thread)
            store_b(b_tile, uint64(0), b_held, thread)
            cuda.syncthreads()
            at_a = uint64(row)
            at_b = uint64(col)
            load_first(a_parts, b_parts, a_tile, b_tile, at_a, at_b)
            while k0 < last:
                k0 = uint32(k0 + uint32(depth))
                if inside:
                    buffer = uint32(uint32(1) - buffer)
                    a_base = uint64(uint32(buffer * uint32(a_elements)))
                    b_base = uint64(uint32(buffer * uint32(b_elements)))
                    copying(
                        total, a_parts, b_parts, a_tile, b_tile, at_a, at_b, a_base, b_base,
                        a, b, thread, row0, col0, k0, short, k, lda, ldb,
                    )  # fmt: skip
                    commit_copies()
                    wait_for_copies(0)
                else:
                    load_a(a_held, a, thread, row0, k0, m, k, lda)
                    load_b(b_held, b, thread, col0, k0, n, k, ldb)
                    stay()
                    all_but_last(total, a_parts, b_parts, a_tile, b_tile, at_a, at_b)
                    buffer = uint32(uint32(1) - buffer)
                    store_a(a_tile, uint64(uint32(buffer * uint32(a_elements))), a_held, thread)
                    store_b(b_tile, uint64(uint32(buffer * uint32(b_elements))), b_held, thread)
                cuda.syncthreads()
                at_a = uint64(uint64(uint32(buffer * uint32(a_elements))) + uint64(row))
                at_b = uint64(uint64(uint32(buffer * uint32(b_elements))) + uint64(col))
                load_first(a_parts, b_parts, a_tile, b_tile, at_a, at_b)
                multiply_last(total, a_parts, b_parts)
            if since > uint32(0):
                if thread == uint32(0):
                    wait_for(uint32(block - uint32(1)))
                cuda.syncthreads()
                if b_width > 1:
                    add(total, c, uint32(row0 + row), uint32(col0 + col), top, left, m, n, ldc)
            if b_width > 1:
                write(c, total, uint32(row0 + row), uint32(col0 + col), top, left, m, n, ldc)
            else:
                for part in range(parts):
                    cuda.syncthreads()
                    stage(b_tile, total, row, col, part)
                    cuda.syncthreads()
                    write_staged(c, b_tile, thread, part, since > uint32(0), row0, col0, top, left, m, n, ldc)
            # For the writes handed over, and for the fragments that are still read when the next tile is stored.
            cuda.syncthreads()
            if until < deep and thread == uint32(0):
                hand_over(block)
            end = uint32(base + since)

    made = tiling.program(stream_k, case, label, few=few)
    steps = -(-(case.k or 0) // depth)
    return replace(made, persistent_blocks=partial(blocks_on, prod(made.grid), steps, tiling.launch_bounds[1]))


KERNEL = kernel_of_tiling(
    "streamK",
    VARIANT.tiling,
    program,
    step=150,
    summary="serpentine with a persistent grid, whose blocks share all steps along k of all tiles evenly",
    results=(VARIANT.across, VARIANT.down),
    block=Block(16, 16),
    ladder="blocks share all steps along k, across tiles",
)
