"""splitK: serpentine for products of few tiles: small tiles, slices of k within a block, and k split among blocks.

1. As in streamK the blocks of a persistent grid, one per multiprocessor, share the steps along k of all tiles evenly;
   or all tiles have equally many blocks, where that takes fewer cycles by estimate: fewer blocks wait for others.
2. A block has 256 threads, in slices of as many as its shape has. Each slice computes the tile, 8 × 8 results per
   thread, from its part of every step, as in slicedK12x6. The smaller the tile, the more slices there are.
3. A tile's blocks write their sums to scratch memory, wait for each other, and each add up a part of the tile
   (partial_sums.py).

streamK passes sums on from block to block, which takes as many round trips as a tile has blocks. Copies are
asynchronous (capability 8.0 or newer), where sides are at least a tile's. Without a GPU, predicted accesses are for
blocks of whole tiles without partial sums. Findings: results/reference/notes/split_k.md.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from smembench.kernels.common.grids import block_of, ceil_div
from smembench.kernels.intrinsics.async_copy import commit_copies, copies_async, wait_for_copies
from smembench.kernels.intrinsics.fragments import copy_vectors, outer_product, scheduling_barrier
from smembench.kernels.intrinsics.vector import ALIGNMENT
from smembench.kernels.kernel import Kernel
from smembench.kernels.matmul import partial_sums
from smembench.kernels.matmul.partial_sums import Shares, block_with, steps_of
from smembench.kernels.matmul.tiled_kernel import launched
from smembench.kernels.matmul.tiling import A_LANES, Copy, Memory, Offsets, Tiling, predication, staging
from smembench.kernels.numba_cuda import DeviceFunction, cuda, device, number, uint32, uint64
from smembench.kernels.program import NumbaKernel
from smembench.kernels.types import Array, Index, Matrix, Place
from smembench.model.case import Block, Case
from smembench.model.hardware import STATIC_SHARED_BYTES, WARP
from smembench.model.problem import ITEMSIZE

THREADS = 256  # of a block, whatever its shape
SHAPES = (Block(16, 16), Block(16, 8), Block(8, 16), Block(8, 8), Block(8, 4))
"""Tiles of 128 × 128, 64 × 128, 128 × 64, 64 × 64 and 32 × 64, in one, two, two, four and eight slices."""
PER_CYCLE = 90
"""Multiply-adds per cycle of a multiprocessor, roughly; float32_tiles.py has them by tile."""


def tiling_of(case: Case) -> Tiling:
    """8 × 8 results per thread in warp tiles with interleaved lanes."""
    x, y = block_of(case)
    slices = THREADS // (x * y)
    return Tiling(Block(x, y * slices), case.dtype, depth=16 if slices == 2 else 32, warps=True, slices=slices)


def memory_of(tiling: Tiling) -> tuple[int, int]:
    """Pipeline stages, three if they fit into 48 KiB, else two; and dynamic elements, B's if two do not fit, else 0."""
    fit = STATIC_SHARED_BYTES // (tiling.elements * ITEMSIZE[tiling.dtype])
    stages = 3 if fit >= 3 else 2
    return stages, 0 if fit >= stages else stages * tiling.b_elements


def build(case: Case) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)``."""
    tiling = tiling_of(case)
    (a_width, b_width), vector, dtype = tiling.widths(case), tiling.vector, number(case.dtype)
    slices, width, rows, columns, depth = tiling.slices, tiling.block.x, tiling.rows, tiling.columns, tiling.depth
    a_elements, b_elements, a_share, b_share = tiling.a_elements, tiling.b_elements, tiling.a_share, tiling.b_share
    (stages, dynamic), pitch, per_slice, members = memory_of(tiling), tiling.pitch, depth // slices, THREADS // slices
    a_stages, b_stages = stages * a_elements, 0 if dynamic else stages * b_elements
    a_slice, b_slice, zero, kept_sums = per_slice * pitch, per_slice * columns, dtype(0), 64 // slices
    # Sides smaller than a tile, and tiles that are moved inwards.
    label, origin, short_of, first_end = predication(tiling, case)
    inside, (load, store) = bool(label), staging(tiling, a_width, b_width)
    # Serpentine: down a column of results and up the next.
    results = tuple((i, j) for j in range(8) for i in (range(7, -1, -1) if j % 2 else range(8)))
    warps_across, (rows_apart, columns_apart) = width // 8, tiling.apart
    b_lanes, copies = tiling.lanes_along_b(b_width), tiling.copies(b_width)
    at_once = -(-len(copies) // (per_slice - 1))  # copies after a step

    def loads(step: int) -> DeviceFunction:
        """Load a step's fragments into one half of the registers: 8 of a column of A's tile, 8 of a row of B's."""
        half, a_below, b_below = step % 2 * 8, step * pitch, step * columns
        load_a = copy_vectors(tuple((half + i, i // vector * rows_apart) for i in range(0, 8, vector)))
        load_b = copy_vectors(tuple((half + j, j // vector * columns_apart) for j in range(0, 8, vector)))

        def load(memory: Memory, at: Offsets) -> None:
            load_a(memory.a_fragment, memory.a_tile, uint64(at.a + uint64(a_below)))
            load_b(memory.b_fragment, memory.b_tile, uint64(at.b + uint64(b_below)))

        return device(load)

    def start_copies(some: list[Copy]) -> DeviceFunction:
        """Start some copies of a thread."""
        copy_a = copies_async(tuple(copy[1:] for copy in some if copy.of_a), vectors=False)
        copy_b = copies_async(tuple(copy[1:] for copy in some if not copy.of_a), vectors=b_width > 1)

        def start(memory: Memory, A: Matrix, B: Matrix, source: Offsets, target: Offsets) -> None:
            copy_b(memory.b_tile, target.b, B.elements, source.b, B.stride)
            copy_a(memory.a_tile, target.a, A.elements, source.a, A.stride)

        return device(start)

    def steps(first: int, last: int) -> DeviceFunction:
        """Per step: load the next one's fragments, multiply its own, and start some copies of the next tile."""
        if last - first > 1:  # by halves, since Numba inlines long functions slowly
            middle = (first + last) // 2
            before, after = steps(first, middle), steps(middle, last)

            def halves(memory: Memory, at: Offsets, A: Matrix, B: Matrix, source: Offsets, target: Offsets) -> None:
                before(memory, at, A, B, source, target)
                after(memory, at, A, B, source, target)

            return device(halves)
        load_next, multiply = loads(last), outer_product(results, 8, first % 2 * 8, first % 2 * 8, b_first=False)
        start = start_copies(copies[first * at_once : last * at_once] if inside else [])

        def step(memory: Memory, at: Offsets, A: Matrix, B: Matrix, source: Offsets, target: Offsets) -> None:
            load_next(memory, at)
            multiply(memory.accumulators, memory.a_fragment, memory.b_fragment)
            start(memory, A, B, source, target)

        return device(step)

    @device
    def corners(tile: Index, tiles_across: Index, m: Index, n: Index) -> tuple[Place, Place]:
        """A tile's first row and column that no tile before it has, and where it begins."""
        below = uint32(tile) // uint32(tiles_across)
        right = tile - below * tiles_across
        return Place(below * rows, right * columns), Place(origin(below, rows, m), origin(right, columns, n))

    @device
    def ends(A: Matrix, B: Matrix, thread: Index, corner: Place, at_k: Index, stage: Index) -> tuple[Offsets, Offsets]:
        """Offsets of a thread's copies of the tiles at ``at_k`` in A and B, and in a stage."""
        a_base, b_base = uint64(stage * a_elements), uint64(stage * b_elements)
        a_row, a_col = thread // A_LANES, thread % A_LANES
        b_row, b_col = thread // b_lanes, thread % b_lanes * b_width
        source = Offsets((corner.row + a_row) * A.stride + a_col + at_k, (at_k + b_row) * B.stride + corner.col + b_col)
        return source, Offsets(a_base + uint64(a_col * pitch + a_row), b_base + uint64(b_row * columns + b_col))

    copy_all, load_first, multiply_last = start_copies(copies), loads(0), outer_product(results, 8, 8, 8, b_first=False)
    add_up_slices, write = partial_sums.add_slices(tiling), partial_sums.write_vector(tiling, b_width)
    pass_on, add_up_blocks = partial_sums.block_sums(tiling, b_width)
    all_but_last, ahead, waiting = steps(0, per_slice - 1), (stages - 1) * depth if inside else depth, stages - 2

    def split_k(c: Array, a: Array, b: Array, m: Index, n: Index, k: Index, lda: Index, ldb: Index, ldc: Index) -> None:
        C, A, B = Matrix(c, m, n, ldc), Matrix(a, m, k, lda), Matrix(b, k, n, ldb)
        # (stages, steps along k by slices, rows and padding) and (stages, steps along k by slices, columns)
        a_tile = cuda.shared.array(a_stages, dtype, alignment=ALIGNMENT)
        b_tile = cuda.shared.array(b_stages, dtype, alignment=ALIGNMENT)
        accumulators = cuda.local.array(64, dtype, alignment=ALIGNMENT)  # (8 rows, 8 columns)
        a_fragment = cuda.local.array(16, dtype, alignment=ALIGNMENT)  # (2 halves, 8 rows)
        b_fragment = cuda.local.array(16, dtype, alignment=ALIGNMENT)  # (2 halves, 8 columns)
        a_staged = cuda.local.array(a_share, dtype, alignment=ALIGNMENT)
        b_staged = cuda.local.array(b_share, dtype, alignment=ALIGNMENT)
        memory = Memory(a_tile, b_tile, accumulators, a_fragment, b_fragment)
        thread, block = cuda.threadIdx.y * width + cuda.threadIdx.x, cuda.blockIdx.y * cuda.gridDim.x + cuda.blockIdx.x
        # A warp has 32 × 64 results; lanes 2i and 2i + 1 lie below each other, l and l + 2 side by side.
        own_slice, member = thread // members, thread % members
        warp, lane = member // WARP, member % WARP
        lane_row, lane_col = lane // 16 * 2 + lane % 2, lane // 2 % 8
        row = warp // warps_across * 32 + lane_row * vector
        col = warp % warps_across * 64 + lane_col * vector
        slice_a, slice_b = uint64(own_slice * a_slice + row), uint64(own_slice * b_slice + col)
        short, steps_per_tile, tiles_across = short_of(k), (k + (depth - 1)) // depth, (n + (columns - 1)) // columns
        all_steps, blocks = tiles_across * ((m + (rows - 1)) // rows) * steps_per_tile, cuda.gridDim.x * cuda.gridDim.y
        begins, end = steps_of(block, blocks, all_steps)
        done, shared = begins, False
        while done < end:
            tile = uint32(done) // uint32(steps_per_tile)
            base = tile * steps_per_tile
            since, until = done - base, min(end - base, steps_per_tile)
            least, corner = corners(tile, tiles_across, m, n)
            k0, last = since * depth, until * depth
            if inside:
                for stage in range(1, stages - 1):
                    at_k = min(k0 + stage * depth - short, k - depth)
                    source, target = ends(A, B, thread, corner, at_k, uint32(stage))
                    copy_all(memory, A, B, source, target)
                    commit_copies()
            from_k = k0 - short if since > 0 else uint32(0)
            to_k = k if since > 0 else first_end(k, short)
            for i in range(64):
                accumulators[i] = zero
            load(a_staged, b_staged, Matrix(a, m, to_k, lda), Matrix(b, to_k, n, ldb), thread, corner, from_k)
            store(a_tile, b_tile, uint32(0), a_staged, b_staged, thread)
            cuda.syncthreads()
            filling, buffer = uint32(stages - 1), uint32(0)
            at_a, at_b = slice_a, slice_b
            load_first(memory, Offsets(at_a, at_b))
            while k0 < last:  # the last steps copy tiles that are not used: code of their own took longer
                following = uint32(0) if buffer == stages - 1 else buffer + 1
                if inside:
                    source, target = ends(A, B, thread, corner, min(k0 + ahead - short, k - depth), filling)
                    all_but_last(memory, Offsets(at_a, at_b), A, B, source, target)
                    commit_copies()
                    wait_for_copies(waiting)
                else:
                    load(a_staged, b_staged, A, B, thread, corner, k0 + ahead)
                    scheduling_barrier()
                    all_but_last(memory, Offsets(at_a, at_b), A, B, Offsets(k0, k0), Offsets(at_a, at_b))
                    store(a_tile, b_tile, following, a_staged, b_staged, thread)
                filling, buffer = buffer, following
                k0 += depth
                cuda.syncthreads()
                at_a = uint64(buffer * a_elements) + slice_a
                at_b = uint64(buffer * b_elements) + slice_b
                load_first(memory, Offsets(at_a, at_b))
                multiply_last(accumulators, a_fragment, b_fragment)
            wait_for_copies(0)
            if slices > 1:
                add_up_slices(accumulators, b_tile, thread)
            if until - since < steps_per_tile:
                pass_on(accumulators, thread, block, block_with(base, blocks, all_steps))
                shared = True
            else:
                for j in range(0, kept_sums, vector):
                    write(C, accumulators, j, uint32(j), thread, corner, least)
            done = base + until
            # Fragments and sums are read before the next tile is stored.
            cuda.syncthreads()
        # What this block shares is its first tile and its last one.
        base = uint32(begins) // uint32(steps_per_tile) * steps_per_tile
        while shared and base < end:
            first, final = block_with(base, blocks, all_steps), block_with(base + steps_per_tile - 1, blocks, all_steps)
            if first < final:
                least, corner = corners(uint32(base) // uint32(steps_per_tile), tiles_across, m, n)
                add_up_blocks(C, thread, block, first, final, corner, least)
            base = max(base + steps_per_tile, (end - 1) // steps_per_tile * steps_per_tile)

    program = launched(split_k, case, tiling, label)
    tile_results, dynamic_bytes = rows * columns, dynamic * ITEMSIZE[tiling.dtype]
    shares = Shares(prod(program.grid), ceil_div(case.depth, depth), tile_results, depth * tile_results / PER_CYCLE)
    return replace(program, launch_bounds=(THREADS, 1), dynamic_bytes=dynamic_bytes, persistent_blocks=shares.blocks)


def unsupported(case: Case) -> str | None:
    """The reason that a block has no tile, or None."""
    *known, last = map(str, SHAPES)
    if block_of(case) in SHAPES:
        return None
    return f"splitK has tiles for blocks of {', '.join(known)} or {last}, not {block_of(case)}"


KERNEL = Kernel(
    problem="matmul",
    name="splitK",
    kind="cuda",
    summary="serpentine with small tiles, slices of k and k split among blocks, for products of few tiles",
    build=build,
    results=(8, 8),
    default_blocks=SHAPES,
    tile_elements=lambda case: memory_of(tiling_of(case))[0] * tiling_of(case).elements,
    dynamic_elements=lambda case: memory_of(tiling_of(case))[1],
    needs="8.0",
    dtypes=("float32",),
    unsupported=unsupported,
    strided=True,
    standard=False,
)
