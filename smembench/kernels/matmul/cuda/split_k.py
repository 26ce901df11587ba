"""splitK: serpentine for products of few tiles: small tiles, slices of k within a block, and k split among blocks.

1. As in streamK the blocks of a persistent grid, one per multiprocessor, share the steps along k of all tiles evenly;
   where that leaves few multiprocessors idle, all tiles have equally many blocks.
2. A block has 256 threads, in slices of as many as its shape has. Each slice computes the tile, 8 × 8 results per
   thread, from its part of every step, as in slicedK12x6. The smaller the tile, the more slices there are.
3. A tile's blocks write their sums to scratch memory, wait for each other, and each add up a part of the tile
   (partial_sums.py).

streamK passes sums on from block to block, which takes as many round trips as a tile has blocks. Copies are
asynchronous (capability 8.0 or newer), where sides are at least a tile's. Without a GPU, predicted accesses are for
blocks of whole tiles without partial sums. Findings: results/reference/notes/split_k.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import prod

from smembench.kernels.common.grids import block_of, ceil_div
from smembench.kernels.intrinsics.async_copy import commit_copies, wait_for_copies
from smembench.kernels.intrinsics.fragments import scheduling_barrier
from smembench.kernels.kernel import Kernel
from smembench.kernels.matmul.interleaved_copies import steps_with_copies
from smembench.kernels.matmul.partial_sums import Contributors, add_slices, block_sums, most_blocks, write_vector
from smembench.kernels.matmul.predication import predication
from smembench.kernels.matmul.register_pipelining import ResultOrder, load_fragments, outer_product, pipelined_steps
from smembench.kernels.matmul.step_shares import StepShares, block_with, first_step, step_shares
from smembench.kernels.matmul.structs import Offsets, Share
from smembench.kernels.matmul.tile_steps import tile_steps
from smembench.kernels.matmul.tiling import Tiling
from smembench.kernels.numba_cuda import cuda, device, uint32, uint64
from smembench.kernels.program import NumbaKernel
from smembench.kernels.types import Array, Index, Matrix, Place
from smembench.model.case import Block, Case
from smembench.model.hardware import STATIC_SHARED_BYTES
from smembench.model.problem import ITEMSIZE

THREADS = 256
"""Threads of a block, whatever its shape."""

SHAPES = (Block(16, 16), Block(16, 8), Block(8, 8), Block(8, 4))
"""Tiles of 128 × 128, 64 × 128, 64 × 64 and 32 × 64, in one, two, four and eight slices."""

ORDER = ResultOrder(by_rows=False)

SUMS_AT_ONCE = 16
"""Sums of a thread that slices exchange at a time, at most: as many as B's tiles have room for."""

EVEN = 4
"""At most one block in EVEN is given up, so that all tiles have equally many."""


def blocks_on(tiles: int, steps: int, most: int, multiprocessors: int) -> int:
    """Blocks, at most ``most``, that share ``tiles`` of ``steps`` along k on a device with ``multiprocessors``."""
    blocks = min(most, multiprocessors, tiles * steps)
    idle = blocks % tiles
    return blocks - idle if idle * EVEN <= blocks else blocks


def segments_on(tiles: int, steps: int, most: int, multiprocessors: int) -> Sequence[int]:
    """How many blocks have steps of each tile, for the arguments of ``blocks_on``."""
    shares = step_shares(tiles * steps, blocks_on(tiles, steps, most, multiprocessors))
    ends = ((tile * steps, (tile + 1) * steps - 1) for tile in range(tiles))
    return [1 + block_with(shares, last) - block_with(shares, first) for first, last in ends]


def tiling_of(case: Case) -> Tiling:
    """8 × 8 results per thread in warp tiles with interleaved lanes."""
    x, y = block_of(case)
    slices = THREADS // (x * y)
    depth = 16 if slices == 2 else 32
    return Tiling(Block(x, y * slices), case.dtype, depth=depth, warps=True, interleaved=True, slices=slices)


def stages_of(tiling: Tiling) -> int:
    """How many tiles of A, and of B, are in flight or in use: three where they fit, else two."""
    return 3 if 3 * tiling.elements * ITEMSIZE[tiling.dtype] <= STATIC_SHARED_BYTES else 2


def dynamic_elements_of(tiling: Tiling) -> int:
    """Elements of B's tiles if they lie in dynamic shared memory, since A's and they take more than 48 KiB; else 0."""
    stages = stages_of(tiling)
    fit = stages * tiling.elements * ITEMSIZE[tiling.dtype] <= STATIC_SHARED_BYTES
    return 0 if fit else stages * tiling.b_elements


def build(case: Case) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)``."""
    tiling = tiling_of(case)
    _, b_width = tiling.widths(case)
    slices, width, rows, columns, depth = tiling.slices, tiling.block.x, tiling.rows, tiling.columns, tiling.depth
    bounds = predication(tiling, case)
    origin, short_of, first, inside = bounds.origin, bounds.short, bounds.first, bool(bounds.label)
    stages, per_slice, members = stages_of(tiling), depth // slices, THREADS // slices
    dynamic = dynamic_elements_of(tiling)
    copies = steps_with_copies(tiling, b_width, ORDER, per_slice - 1)
    copy_ends, start_copies, steps_with_copying = copies.ends, copies.start, copies.steps
    functions = tile_steps(case, tiling, buffers=stages, fragment_buffers=2, dynamic=dynamic > 0)
    allocate, position, first_tiles = functions.allocate, functions.position, functions.first_tiles
    load_tiles, store_tiles = functions.load_tiles, functions.store_tiles
    a_elements, b_elements = tiling.a_elements, tiling.b_elements
    a_slice, b_slice = per_slice * tiling.pitch, per_slice * columns
    load_first = load_fragments(tiling, ORDER, 0)
    all_but_last = pipelined_steps(tiling, ORDER, 0, per_slice - 1)
    multiply_last = outer_product(tiling, ORDER, 1)
    at_once = min(SUMS_AT_ONCE, slices * tiling.vector)
    add_up_slices, write = add_slices(tiling, at_once), write_vector(tiling, b_width)
    shared_sums = block_sums(tiling, b_width)
    pass_on, add_up_blocks = shared_sums.pass_on, shared_sums.add
    results, size = tiling.results // slices, tiling.vector
    ahead, waiting = (stages - 1) * depth if inside else depth, stages - 2

    @device
    def next_of(buffer: Index) -> Index:
        return uint32(0) if buffer == stages - 1 else buffer + 1

    @device
    def contributors_of(shares: StepShares, base: Index, steps_per_tile: Index) -> Contributors:
        """The blocks of the tile whose steps begin at ``base``."""
        return Contributors(block_with(shares, base), block_with(shares, base + steps_per_tile - 1))

    def split_k(c: Array, a: Array, b: Array, m: Index, n: Index, k: Index, lda: Index, ldb: Index, ldc: Index) -> None:
        C, A, B = Matrix(c, m, n, ldc), Matrix(a, m, k, lda), Matrix(b, k, n, ldb)
        memory = allocate()
        thread = cuda.threadIdx.y * width + cuda.threadIdx.x
        block = cuda.blockIdx.y * cuda.gridDim.x + cuda.blockIdx.x
        own_slice = thread // members
        row, col = position(thread % members)
        slice_a = uint64(own_slice * a_slice + row)
        slice_b = uint64(own_slice * b_slice + col)
        short = short_of(k)
        steps_per_tile = (k + (depth - 1)) // depth
        tiles_across = (n + (columns - 1)) // columns
        shares = step_shares(
            tiles_across * ((m + (rows - 1)) // rows) * steps_per_tile, cuda.gridDim.x * cuda.gridDim.y
        )
        begins = first_step(shares, block)
        end = first_step(shares, block + 1)
        done = begins
        while done < end:
            tile = done // steps_per_tile
            base = tile * steps_per_tile
            since = done - base
            until = min(end - base, steps_per_tile)
            least = Place(tile // tiles_across * rows, tile % tiles_across * columns)
            corner = Place(origin(tile // tiles_across, rows, m), origin(tile % tiles_across, columns, n))
            share = Share(thread, corner, short)
            k0 = since * depth
            last = until * depth
            if inside:
                for stage in range(1, stages - 1):
                    source, target = copy_ends(A, B, share, k0 + stage * depth, uint32(stage))
                    start_copies(memory, A, B, source, target)
                    commit_copies()
            from_k = k0 - short if since > 0 else uint32(0)
            to_k = k if since > 0 else first(k, short)
            first_tiles(memory, Matrix(a, m, to_k, lda), Matrix(b, to_k, n, ldb), share, from_k)
            filling = uint32(stages - 1)
            buffer = uint32(0)
            at_a, at_b = slice_a, slice_b
            load_first(memory, Offsets(at_a, at_b))
            while k0 < last:  # the last steps copy tiles that are not used: code of their own took longer
                if inside:
                    source, target = copy_ends(A, B, share, k0 + ahead, filling)
                    steps_with_copying(memory, Offsets(at_a, at_b), A, B, source, target)
                    commit_copies()
                    wait_for_copies(waiting)
                else:
                    load_tiles(memory.held, A, B, thread, corner, k0 + ahead)
                    scheduling_barrier()
                    all_but_last(memory, Offsets(at_a, at_b))
                    store_tiles(memory, next_of(buffer), thread)
                filling = buffer
                buffer = next_of(buffer)
                k0 += depth
                cuda.syncthreads()
                at_a = uint64(buffer * a_elements) + slice_a
                at_b = uint64(buffer * b_elements) + slice_b
                load_first(memory, Offsets(at_a, at_b))
                multiply_last(memory)
            wait_for_copies(0)
            add_up_slices(memory, thread)
            if until - since < steps_per_tile:
                pass_on(memory.accumulators, thread, block, contributors_of(shares, base, steps_per_tile))
            else:
                for j in range(0, results, size):
                    write(C, memory.accumulators, j, uint32(j), thread, corner, least)
            done = base + until
            # Fragments and sums are read before the next tile is stored.
            cuda.syncthreads()
        # What this block shares is its first tile and its last one.
        base = begins // steps_per_tile * steps_per_tile
        while base < end:
            contributors = contributors_of(shares, base, steps_per_tile)
            if contributors.first < contributors.last:
                tile = base // steps_per_tile
                least = Place(tile // tiles_across * rows, tile % tiles_across * columns)
                corner = Place(origin(tile // tiles_across, rows, m), origin(tile % tiles_across, columns, n))
                add_up_blocks(C, thread, block, contributors, corner, least)
            base = max(base + steps_per_tile, (end - 1) // steps_per_tile * steps_per_tile)

    program = tiling.program(split_k, case, bounds.label)
    shared = prod(program.grid), ceil_div(case.k or 0, depth), most_blocks(tiling)
    return replace(
        program,
        launch_bounds=(THREADS, 1),
        dynamic_bytes=dynamic * ITEMSIZE[tiling.dtype],
        persistent_blocks=partial(blocks_on, *shared),
        segments=partial(segments_on, *shared),
    )


def unsupported(case: Case) -> str | None:
    """Why a block has no tile, or None."""
    known = " or ".join(map(str, SHAPES))
    return None if block_of(case) in SHAPES else f"splitK has tiles for blocks of {known}, not {block_of(case)}"


KERNEL = Kernel(
    problem="matmul",
    name="splitK",
    kind="cuda",
    summary="serpentine with small tiles, slices of k and k split among blocks, for products of few tiles",
    build=build,
    results=(8, 8),
    default_blocks=SHAPES,
    tile_elements=lambda case: stages_of(tiling_of(case)) * tiling_of(case).elements,
    dynamic_elements=lambda case: dynamic_elements_of(tiling_of(case)),
    needs="8.0",
    dtypes=("float32",),
    unsupported=unsupported,
    strided=True,
    standard=False,
)
