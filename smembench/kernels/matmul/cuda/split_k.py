"""splitK: streamK for products of few tiles: small tiles, slices of k within a block, and sums that no block waits for.

1. As in streamK the blocks of a persistent grid share the steps along k of all tiles evenly.
2. Slices of a block's warps each take a part of every step, as in slicedK, so that small tiles have many warps too.
3. A tile's blocks write their sums to scratch memory; who comes last adds all up (partial_sums.py).

streamK passes sums on from block to block, which takes as many round trips as a tile has blocks. The tile decides how
many blocks there are, and how often A and B are loaded; a block of threads decides the tile, by SHAPES. A thread has
8 × 8 results. Copies are asynchronous (capability 8.0 or newer) where sides are at least a tile's.
Findings: results/reference/notes/split_k.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import prod

from smembench.kernels.common.grids import block_of, ceil_div
from smembench.kernels.intrinsics.async_copy import commit_copies, wait_for_copies
from smembench.kernels.intrinsics.fragments import scheduling_barrier
from smembench.kernels.kernel import Kernel
from smembench.kernels.matmul.interleaved_copies import steps_with_copies
from smembench.kernels.matmul.partial_sums import Contributors, add_blocks, add_slices, most_blocks, write_share
from smembench.kernels.matmul.predication import predication
from smembench.kernels.matmul.register_pipelining import ResultOrder, load_fragments, outer_product, pipelined_steps
from smembench.kernels.matmul.step_shares import block_with, first_step, step_shares
from smembench.kernels.matmul.structs import Matrix, Offsets, Place, Share
from smembench.kernels.matmul.tile_steps import tile_steps
from smembench.kernels.matmul.tiling import Tiling
from smembench.kernels.numba_cuda import cuda, number, uint32, uint64
from smembench.kernels.program import NumbaKernel
from smembench.kernels.types import Array, Index
from smembench.model.case import Block, Case


@dataclass(frozen=True, slots=True)
class Shape:
    """How a block of threads computes a tile.

    Attributes:
        slices: groups of warps that share every step.
        depth: of a tile, along k.
        resident: blocks of a multiprocessor.
        order: of a thread's multiply-adds, chosen by the model of register bank conflicts.
        copying: steps of a slice that are followed by copies of the next tile.
        at_once: sums of a thread that slices exchange at a time.
    """

    slices: int
    depth: int
    resident: int
    order: ResultOrder
    copying: int
    at_once: int


SHAPES = {
    Block(8, 32): Shape(4, 32, 2, ResultOrder(by_rows=False, b_early=True), copying=5, at_once=16),
    Block(16, 16): Shape(2, 16, 2, ResultOrder(by_rows=True, b_early=True), copying=6, at_once=8),
}
"""By the block: tiles of 64 × 64 and of 64 × 128."""

FEWEST = 4
"""Fewest steps of a block."""

EVEN = 16
"""One in so many multiprocessors may be idle, so that all tiles have equally many blocks."""


def blocks_on(tiles: int, steps: int, most: int, resident: int, multiprocessors: int) -> int:
    """Blocks that share ``tiles`` of ``steps`` along k, at most ``most``, on a device of so many multiprocessors."""
    blocks = min(most, resident * multiprocessors, max(tiles * steps // FEWEST, 1))
    idle = blocks % tiles
    return blocks - idle if idle * EVEN <= blocks else blocks


def tiling_of(case: Case) -> Tiling:
    """8 × 8 results per thread in warp tiles with interleaved lanes."""
    block = block_of(case)
    shape = SHAPES[block]
    return Tiling(block, case.dtype, depth=shape.depth, warps=True, interleaved=True, slices=shape.slices)


def build(case: Case) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)``."""
    tiling, shape = tiling_of(case), SHAPES[block_of(case)]
    _, b_width = tiling.widths(case)
    allocate, position, begin, load, store, *_ = tile_steps(case, tiling, parts=2)
    label, origin, short_of, first, *_ = predication(tiling, case)
    inside, (ends, copying) = bool(label), steps_with_copies(tiling, b_width, shape.order, shape.copying)
    width, rows, columns, depth = tiling.block.x, tiling.rows, tiling.columns, tiling.depth
    members, steps = tiling.threads // shape.slices, depth // shape.slices
    a_elements, b_elements = tiling.a_elements, tiling.b_elements
    a_slice, b_slice = steps * tiling.pitch, steps * columns
    load_first = load_fragments(tiling, shape.order, 0)
    all_but_last = pipelined_steps(tiling, shape.order, 0, steps - 1)
    multiply_last = outer_product(tiling, shape.order, 1)
    add_up, write, add_up_blocks = add_slices(tiling, shape.at_once), write_share(tiling, b_width), add_blocks(tiling)
    integer = number("uint32")

    def split_k(
        c: Array, a: Array, b: Array, m: Index, n: Index, k: Index, lda: Index, ldb: Index, ldc: Index
    ) -> None:
        C, A, B = Matrix(c, m, n, ldc), Matrix(a, m, k, lda), Matrix(b, k, n, ldb)
        memory = allocate()
        ticket = cuda.shared.array(1, integer)
        thread = cuda.threadIdx.y * width + cuda.threadIdx.x
        block = cuda.blockIdx.y * cuda.gridDim.x + cuda.blockIdx.x
        part = thread // members
        row, col = position(thread % members)
        slice_a = uint64(part * a_slice + row)
        slice_b = uint64(part * b_slice + col)
        short = short_of(k)
        deep = (k + (depth - 1)) // depth
        wide = (n + (columns - 1)) // columns
        shares = step_shares(wide * ((m + (rows - 1)) // rows) * deep, cuda.gridDim.x * cuda.gridDim.y)
        begins = first_step(shares, block)
        end = first_step(shares, block + 1)
        while begins < end:
            tile = begins // deep
            base = tile * deep
            since = begins - base
            until = min(end - base, deep)
            top, left = tile // wide * rows, tile % wide * columns
            row0, col0 = origin(tile // wide, rows, m), origin(tile % wide, columns, n)
            share = Share(thread, Place(row0, col0), short)
            k0 = since * depth
            last = until * depth
            buffer = uint32(0)
            from_k = k0 - short if since > 0 else uint32(0)
            to_k = k if since > 0 else first(k, short)
            begin(memory, Matrix(a, m, to_k, lda), Matrix(b, to_k, n, ldb), share, from_k)
            at_a, at_b = slice_a, slice_b
            load_first(memory, Offsets(at_a, at_b))
            while k0 < last:
                k0 += depth
                buffer = 1 - buffer
                if inside:
                    source, target = ends(A, B, share, k0, buffer)
                    copying(memory, Offsets(at_a, at_b), A, B, source, target)
                    commit_copies()
                    wait_for_copies(0)
                else:
                    load(memory.held, A, B, thread, Place(row0, col0), k0)
                    scheduling_barrier()
                    all_but_last(memory, Offsets(at_a, at_b))
                    store(memory, buffer, thread)
                cuda.syncthreads()
                at_a = uint64(buffer * a_elements) + slice_a
                at_b = uint64(buffer * b_elements) + slice_b
                load_first(memory, Offsets(at_a, at_b))
                multiply_last(memory)
            add_up(memory, thread)
            complete = True
            if until - since < deep:
                contributors = Contributors(block_with(shares, base), block_with(shares, base + deep - 1))
                complete = add_up_blocks(memory.total, ticket, thread, block, contributors)
            if complete:
                write(C, memory.total, part, Place(row0 + row, col0 + col), Place(top, left))
            # Fragments, sums and the ticket are read before the next tile is stored.
            cuda.syncthreads()
            begins = base + until

    program = tiling.program(split_k, case, label)
    tiles, deep = prod(program.grid), ceil_div(case.k or 0, depth)
    return replace(program, persistent_blocks=partial(blocks_on, tiles, deep, most_blocks(tiling), shape.resident))


def unsupported(case: Case) -> str | None:
    """Why a block has no tile, or None."""
    known = " or ".join(map(str, SHAPES))
    return None if block_of(case) in SHAPES else f"splitK has tiles for blocks of {known}, not {block_of(case)}"


def tile_elements(case: Case) -> int:
    """Two tiles each of A and B, and room for the ticket."""
    return 2 * tiling_of(case).elements + 1


KERNEL = Kernel(
    problem="matmul",
    name="splitK",
    kind="cuda",
    summary="streamK with small tiles and slices of k, whose blocks never wait, for products of few tiles",
    build=build,
    results=(8, 8),
    default_blocks=tuple(SHAPES),
    tile_elements=tile_elements,
    needs="8.0",
    dtypes=("float32",),
    unsupported=unsupported,
    strided=True,
    standard=False,
)
