"""streamK: serpentine with a persistent grid whose blocks share all steps along k of all tiles evenly.

With a block per tile, a last wave of blocks that is partly filled takes as long as a full one: at 4096 × 4096, 1024
tiles are 3.88 waves of the 264 blocks that an H200 runs at once, and take the time of 4. Equal ranges of steps leave
no block idle.

1. All steps along k, each a pass of the main loop, are numbered, tile after tile of C, and each block gets an equal
   range of them.
2. A block computes its range from the last tile to the first. Where it has only the first steps of a tile, it writes
   its partial sums to C and raises its flag; that tile is the first that it computes, so that the sums are there early.
3. The block that has the last steps of a tile waits for the flag, adds the partial sums and writes the results. One
   that has steps in the middle does both. Each waits for the block before it alone.
4. Copies of the next tile are asynchronous (capability 8.0 or newer), a few after each step along k. All at the head
   of the main loop would stand before the loads of fragments in the queue of the memory pipe.

After Osama, Merrill, Cecka, Garland and Owens, "Stream-K", PPoPP 2023. Without a GPU, predicted accesses are for whole
tiles without partial sums. A thread has 8 × 8 results, not serpentine16x8's 16 × 8. Findings:
results/reference/notes/stream_k.md.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from smembench.kernels.intrinsics.async_copy import commit_copies, copies_async, wait_for_copies
from smembench.kernels.intrinsics.block_flags import raise_flag, wait_for_flag
from smembench.kernels.intrinsics.fragments import copy_vectors, outer_product, scheduling_barrier
from smembench.kernels.intrinsics.vector import ALIGNMENT, copy_vector, load_vector
from smembench.kernels.matmul import ragged
from smembench.kernels.matmul.tiled_kernel import few_left, kernel_of_tiling, launch_bounds, launched, stream_k_blocks
from smembench.kernels.matmul.tiling import A_LANES, Memory, Offsets, Tiling, predication, staging
from smembench.kernels.numba_cuda import DeviceFunction, cuda, device, number, uint32, uint64
from smembench.kernels.program import NumbaKernel
from smembench.kernels.types import Array, Index, Matrix, Place
from smembench.model.case import Case
from smembench.model.hardware import WARP

DEPTH = 16  # steps along k of a tile
COPYING = 8  # steps that are followed by copies of the next tile: the first half
CHUNKS_PER_TILE = 32  # of the remainder, that take as long as a tile; inferred from whole products (notes/remainder.md)


@device
def first_step(block: Index, blocks: Index, steps: Index, chunks: Index, steps_per_chunk: Index) -> Index:
    """A block's first step, where all blocks share the steps evenly; the end for the block after the last.

    Without a remainder, which is without chunks, it is ``block * steps // blocks``.
    Chunks of the remainder, which blocks take in turn, count as ``steps_per_chunk`` steps each, or fewer where a block
    would be left without a step and never raise its flag.
    """
    cost = min(steps_per_chunk, max(steps // blocks, 1) - 1)
    all_before = uint32(uint64(block) * (steps + uint64(cost) * chunks) // blocks)
    chunks_before = block * (chunks // blocks) + min(block, chunks % blocks)
    return all_before - cost * chunks_before


def build(case: Case, tiling: Tiling) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)``."""
    (a_width, b_width), vector, dtype = tiling.widths(case), tiling.vector, number(case.dtype)
    width, rows, columns, pitch = tiling.block.x, tiling.rows, tiling.columns, tiling.pitch
    a_elements, b_elements, a_share, b_share = tiling.a_elements, tiling.b_elements, tiling.a_share, tiling.b_share
    a_buffers, b_buffers, zero, few = 2 * a_elements, 2 * b_elements, dtype(0), few_left(case, tiling)
    # Ragged sizes and unaligned rows: of whole aligned tiles few is False, inside True, and short 0.
    label, origin, short_of, first_end = predication(tiling, case)
    inside, (count_chunks, _, compute_chunks) = bool(label), ragged.remainder(tiling, tiles_follow=True)
    load, store = staging(tiling, a_width, b_width)
    write_unaligned = ragged.write_staged(tiling)
    # Serpentine: down a column of results and up the next. Which fragment comes first was chosen by timing.
    results = tuple((i, j) for j in range(8) for i in (range(7, -1, -1) if j % 2 else range(8)))
    b_early = few or b_width == 1
    # A thread's 8 rows are vectors that lie 4 lanes apart, its 8 columns vectors that lie 8 lanes apart.
    warps_across, (rows_apart, columns_apart) = width // 8, tiling.apart
    b_lanes, copies = tiling.lanes_along_b(b_width), tiling.copies(b_width)
    at_once = -(-len(copies) // COPYING)  # copies after a step

    def loads(step: int) -> DeviceFunction:
        """Load a step's fragments into one half of the registers: 8 of a column of A's tile, 8 of a row of B's."""
        half, a_below, b_below = step % 2 * 8, step * pitch, step * columns
        load_a = copy_vectors(tuple((half + i, i // vector * rows_apart) for i in range(0, 8, vector)))
        load_b = copy_vectors(tuple((half + j, j // vector * columns_apart) for j in range(0, 8, vector)))

        def load(memory: Memory, at: Offsets) -> None:
            if b_early:
                load_b(memory.b_fragment, memory.b_tile, uint64(at.b + uint64(b_below)))
            load_a(memory.a_fragment, memory.a_tile, uint64(at.a + uint64(a_below)))
            if not b_early:
                load_b(memory.b_fragment, memory.b_tile, uint64(at.b + uint64(b_below)))

        return device(load)

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
        some = copies[first * at_once : last * at_once] if inside else []
        copy_a = copies_async(tuple(copy[1:] for copy in some if copy.of_a), vectors=False)
        copy_b = copies_async(tuple(copy[1:] for copy in some if not copy.of_a), vectors=b_width > 1)

        def step(memory: Memory, at: Offsets, A: Matrix, B: Matrix, source: Offsets, target: Offsets) -> None:
            load_next(memory, at)
            multiply(memory.accumulators, memory.a_fragment, memory.b_fragment)
            copy_b(memory.b_tile, target.b, B.elements, source.b, B.stride)
            copy_a(memory.a_tile, target.a, A.elements, source.a, A.stride)

        return device(step)

    load_first, multiply_last = loads(0), outer_product(results, 8, 8, 8, b_first=False)
    all_but_last = steps(0, DEPTH - 1)

    def epilogue(adding: bool) -> DeviceFunction:
        """Write a thread's results, of which the first belongs at ``first``; or add to them what is there."""

        def visit(C: Matrix, accumulators: Array, first: Place, least: Place) -> None:
            for i in range(8):
                row = first.row + (i // vector * rows_apart + i % vector)
                for j in range(0, 8, vector):
                    col = first.col + j // vector * columns_apart
                    if row >= least.row and col >= least.col and row < C.rows and col < C.columns:
                        if adding:
                            begun = load_vector(C.elements, row * C.stride + col)
                            for p in range(vector):
                                accumulators[i * 8 + j + p] += begun[p]
                        else:
                            copy_vector(C.elements, row * C.stride + col, accumulators, i * 8 + j)

        return device(visit)

    add, write = epilogue(True), epilogue(False)

    def stream_k(
        c: Array, a: Array, b: Array, m: Index, n: Index, k: Index, lda: Index, ldb: Index, ldc: Index
    ) -> None:
        C, A, B = Matrix(c, m, n, ldc), Matrix(a, m, k, lda), Matrix(b, k, n, ldb)
        # (2 buffers, 16 along k, 128 rows and padding) and (2 buffers, 16 along k, 128 columns)
        a_tile = cuda.shared.array(a_buffers, dtype, alignment=ALIGNMENT)
        b_tile = cuda.shared.array(b_buffers, dtype, alignment=ALIGNMENT)
        accumulators = cuda.local.array(64, dtype, alignment=ALIGNMENT)  # (8 rows, 8 columns)
        a_fragment = cuda.local.array(16, dtype, alignment=ALIGNMENT)  # (2 halves, 8 rows)
        b_fragment = cuda.local.array(16, dtype, alignment=ALIGNMENT)  # (2 halves, 8 columns)
        a_staged = cuda.local.array(a_share, dtype, alignment=ALIGNMENT)
        b_staged = cuda.local.array(b_share, dtype, alignment=ALIGNMENT)
        memory = Memory(a_tile, b_tile, accumulators, a_fragment, b_fragment)
        thread = cuda.threadIdx.y * width + cuda.threadIdx.x
        block, blocks = cuda.blockIdx.y * cuda.gridDim.x + cuda.blockIdx.x, cuda.gridDim.x * cuda.gridDim.y
        # A warp has 32 × 64 results; lanes 2i and 2i + 1 lie below each other, l and l + 2 side by side.
        warp, lane = thread // WARP, thread % WARP
        lane_row, lane_col = lane // 16 * 2 + lane % 2, lane // 2 % 8
        row = warp // warps_across * 32 + lane_row * vector
        col = warp % warps_across * 64 + lane_col * vector
        short, steps_per_tile = short_of(k), (k + (DEPTH - 1)) // DEPTH
        tiles_across = (n + (0 if few else columns - 1)) // columns
        tiles = tiles_across * ((m + (0 if few else rows - 1)) // rows)
        chunks, steps_per_chunk = count_chunks(m, n) if few else uint32(0), steps_per_tile // CHUNKS_PER_TILE
        begins = first_step(block, blocks, tiles * steps_per_tile, chunks, steps_per_chunk)
        end = first_step(block + 1, blocks, tiles * steps_per_tile, chunks, steps_per_chunk)
        if few:
            compute_chunks(C, A, B, accumulators, b_tile, thread)
        while end > begins:
            # The last tile of this block's range, and of its steps along k those from since to until.
            tile = (end - 1) // steps_per_tile
            base = tile * steps_per_tile
            since, until = max(begins, base) - base, end - base
            # A tile at an edge may be moved inwards; what lies above and left of least is its neighbours'.
            least = Place(tile // tiles_across * rows, tile % tiles_across * columns)
            row0 = least.row if few else origin(tile // tiles_across, rows, m)
            col0 = least.col if few else origin(tile % tiles_across, columns, n)
            k0, last, buffer = since * DEPTH, until * DEPTH, uint32(0)
            from_k = k0 - short if since > 0 else uint32(0)
            to_k = k if since > 0 else first_end(k, short)
            for i in range(64):
                accumulators[i] = zero
            load(
                a_staged, b_staged, Matrix(a, m, to_k, lda), Matrix(b, to_k, n, ldb), thread, Place(row0, col0), from_k
            )
            store(a_tile, b_tile, buffer, a_staged, b_staged, thread)
            cuda.syncthreads()
            at_a, at_b = uint64(row), uint64(col)
            load_first(memory, Offsets(at_a, at_b))
            while k0 < last:
                k0 += DEPTH
                buffer = 1 - buffer
                if inside:
                    a_row, a_col = thread // A_LANES, thread % A_LANES
                    b_row, b_col = thread // b_lanes, thread % b_lanes * b_width
                    at_k = min(k0 - short, k - DEPTH)  # past the end of k the last tiles are copied again
                    source = Offsets((row0 + a_row) * lda + a_col + at_k, (at_k + b_row) * ldb + col0 + b_col)
                    to_a = uint64(buffer * a_elements) + uint64(a_col * pitch + a_row)
                    to_b = uint64(buffer * b_elements) + uint64(b_row * columns + b_col)
                    all_but_last(memory, Offsets(at_a, at_b), A, B, source, Offsets(to_a, to_b))
                    commit_copies()
                    wait_for_copies(0)
                else:
                    load(a_staged, b_staged, A, B, thread, Place(row0, col0), k0)
                    scheduling_barrier()
                    all_but_last(memory, Offsets(at_a, at_b), A, B, Offsets(k0, k0), Offsets(at_a, at_b))
                    store(a_tile, b_tile, buffer, a_staged, b_staged, thread)
                cuda.syncthreads()
                at_a, at_b = uint64(buffer * a_elements) + uint64(row), uint64(buffer * b_elements) + uint64(col)
                # The next tile's first fragments arrive while this one's last are multiplied.
                load_first(memory, Offsets(at_a, at_b))
                multiply_last(accumulators, a_fragment, b_fragment)
            if since > 0:
                if thread == 0:
                    wait_for_flag(block - 1)
                cuda.syncthreads()
                if b_width > 1:
                    add(C, accumulators, Place(row0 + row, col0 + col), least)
            if b_width > 1:
                write(C, accumulators, Place(row0 + row, col0 + col), least)
            else:
                write_unaligned(C, b_tile, accumulators, thread, Place(row, col), since, Place(row0, col0), least)
            # Partial sums are written before the flag is raised, and fragments read before the next tile is stored.
            cuda.syncthreads()
            if until < steps_per_tile and thread == 0:
                raise_flag(block)
            end = base + since

    program = launched(stream_k, case, tiling, label, few=few)
    # Persistent: as many blocks as run at once, which loop over the tiles.
    tiles, steps_each, resident = program.grid[0] * program.grid[1], -(-case.depth // DEPTH), launch_bounds(tiling)[1]
    return replace(program, persistent_blocks=partial(stream_k_blocks, tiles, steps_each, resident))


tiling_of = partial(Tiling.of, depth=DEPTH, warps=True)
KERNEL = kernel_of_tiling(
    "streamK",
    tiling_of,
    build,
    summary="serpentine with a persistent grid, whose blocks share all steps along k of all tiles evenly",
    needs="8.0",
    ladder="blocks divide all steps along k: no last wave half empty",
)
