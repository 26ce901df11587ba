"""streamK: serpentine with a persistent grid, whose blocks share all steps along k of all tiles evenly.

What changes: the steps of a product, those along k of one tile after the other, are counted through, and each of as
many blocks as run at once has an even share of them, wherever in a tile that begins and ends. A block goes over its
share from the last tile to the first. Of the tile that its share begins in the middle of, the block before it has the
first steps, and computes them first of all, leaves its sums in C and says so (``smembench.kernels.hand_over``); this
block comes to the tile last of all, adds those sums to its own and writes the results. Nothing but C holds what is
handed over. A tile that is moved inwards writes the results only that no other tile has. The decomposition is that of
Osama, Merrill, Cecka, Garland and Owens, "Stream-K", PPoPP 2023, with serpentine's loop. Predictions of accesses are
for blocks that have a whole tile each and hand over nothing.

Relieves the last round: 1152 is 81 tiles of 128 × 128 for the 132 SMs of an H200, and 2176 is 289 for the 264 blocks
that it runs at once, which take as long as 528. Predicted: at every size what serpentine has with full rounds, 1.03
times it at 2048, 4096 and 8192, where they are full to 0.97, less some µs for handing over.

Found there (2026-11-21): 1.023, 1.029 and 1.021 times serpentine at 2048, 4096 and 8192, which is 1.005, 1.014 and
1.021 of cuBLAS; 1.41 times it at 1152 and 1.40 at 2176, 1.063 and 1.163 of cuBLAS. At 1152, where four blocks have
part of a tile, it takes 75 µs, 13 more than at serpentine's rate at 2048. Where rows of C are not aligned, sums are
handed over by elements, each compared with the edges, which takes far longer: at 1025 nothing is gained over
serpentine, and slicedK12x6 is twice as fast; at 4097 1.014 times serpentine.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from smembench.axes import Block
from smembench.case import Case
from smembench.cuda_api import cuda, device, number, uint32, uint64
from smembench.kernels.hand_over import MOST_BLOCKS, hand_over, wait_for
from smembench.kernels.matmul.ahead import Order, advance, load_fragments, outer_product, stay
from smembench.kernels.matmul.cuda.serpentine import Variant
from smembench.kernels.matmul.loading import loading
from smembench.kernels.matmul.pieces import pieces
from smembench.kernels.matmul.results import add_within, write_within
from smembench.kernels.matmul.tiling import Tiling, kernel_of_tiling
from smembench.kernels.registry import Program
from smembench.kernels.vector import ALIGNMENT

FEWEST = 16
"""Steps of a block at least, where there are more blocks than tiles; that it is the best number was not tried."""

_VARIANT = Variant(8, 8, Order(by_rows=True, b_early=True))


@device
def first_step(block: Any, blocks: Any, steps: Any) -> Any:
    """A block's first of all steps, when all blocks share them evenly; that of the block after the last is the end."""
    return uint32(uint64(uint64(block) * uint64(steps)) // uint64(blocks))


def program(case: Case, tiling: Tiling) -> Program:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)`` on a tiling of an even depth, all steps written out."""
    order = _VARIANT.order
    position, load_a, load_b, store_a, store_b, *_ = pieces(case, tiling)
    _, b_width = tiling.widths(case)
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
    label, again, origin, short_of, first, begin, load = loading(tiling, case)

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
        wide = uint32(uint32(n + uint32(columns - 1)) // uint32(columns))
        tiles = uint32(wide * uint32(uint32(m + uint32(rows - 1)) // uint32(rows)))
        begins = first_step(block, blocks, uint32(tiles * deep))
        end = first_step(uint32(block + uint32(1)), blocks, uint32(tiles * deep))
        while end > begins:
            tile = uint32(uint32(end - uint32(1)) // deep)
            base = uint32(tile * deep)
            since = uint32(max(begins, base) - base)
            until = uint32(end - base)
            top = uint32(uint32(tile // wide) * uint32(rows))
            left = uint32(uint32(tile % wide) * uint32(columns))
            row0 = origin(uint32(tile // wide), uint32(rows), m)
            col0 = origin(uint32(tile % wide), uint32(columns), n)
            from_a, from_b = begin(thread, row0, col0, lda, ldb)
            for i in range(count):
                total[i] = zero
            k0 = uint32(since * uint32(depth))
            # The second ends the loop no earlier, in whole steps; with it fewer reads of registers collide.
            last = uint32(min(uint32(until * uint32(depth)), uint32(k + short)))
            buffer = uint32(0)
            if since == uint32(0):
                load_a(a_held, a, thread, row0, k0, m, first(k, short), lda)
                load_b(b_held, b, thread, col0, k0, n, first(k, short), ldb)
            else:
                load(a_held, b_held, a, b, from_a, from_b, thread, row0, col0, k0, short, m, n, k, lda, ldb)
            store_a(a_tile, uint64(0), a_held, thread)
            store_b(b_tile, uint64(0), b_held, thread)
            cuda.syncthreads()
            at_a = uint64(row)
            at_b = uint64(col)
            load_first(a_parts, b_parts, a_tile, b_tile, at_a, at_b)
            while k0 < last:
                k0 = uint32(k0 + uint32(depth))
                load(a_held, b_held, a, b, from_a, from_b, thread, row0, col0, k0, short, m, n, k, lda, ldb)
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
                add(total, c, uint32(row0 + row), uint32(col0 + col), top, left, m, n, ldc)
            write(c, total, uint32(row0 + row), uint32(col0 + col), top, left, m, n, ldc)
            # For the writes handed over, and for the fragments that are still read when the next tile is stored.
            cuda.syncthreads()
            if until < deep and thread == uint32(0):
                hand_over(block)
            end = uint32(base + since)

    made = tiling.program(stream_k, case, label, again)
    tiles, steps = made.grid[0] * made.grid[1], -(-(case.k or 0) // depth)
    shares = min(max(tiles, tiles * steps // FEWEST), MOST_BLOCKS)
    return replace(made, resident=tiling.launch_bounds[1], shares=shares)


KERNEL = kernel_of_tiling(
    "streamK",
    _VARIANT.tiling,
    program,
    step=150,
    summary="serpentine with a persistent grid, whose blocks share all steps along k of all tiles evenly",
    results=(_VARIANT.across, _VARIANT.down),
    block=Block(16, 16),
    ladder="blocks share all steps along k, across tiles",
)
