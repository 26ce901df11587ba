"""slicedK12x6: three groups of threads compute the same tile of 96 × 96, each from its own third of k.

1. A block loads 24 columns of A and 24 rows of B at a time (12 in float64), an element per access, which needs no
   alignment.
2. Each group of 128 threads multiplies its slice of them, 12 × 6 results per thread, in warp tiles with interleaved
   lanes as in serpentine.
3. At the end the other two groups pass their sums to the first through shared memory, a few at a time.

It hides latency where C has few tiles, and so few warps: a third of k each gives every SM three times as many. Tiles of
96 × 96 are for sides a little over 1024, of which tiles of 64 × 128 are more than a round. It is no step of the ladder,
since it is not for all sizes. With two slices and tiles of 64 × 128 it lost to streamK and splitK:
results/reference/notes/tried_and_lost.md. Findings: results/reference/notes/sliced_k.md.
"""

from __future__ import annotations

from smembench.kernels.common.grids import block_of
from smembench.kernels.intrinsics.vector import ALIGNMENT, copy_vector
from smembench.kernels.matmul.predication import predication
from smembench.kernels.matmul.remainder import remainder, small_remainder
from smembench.kernels.matmul.structs import Offsets, Share
from smembench.kernels.matmul.tile_steps import tile_steps
from smembench.kernels.matmul.tiling import Tiling, kernel_of_tiling
from smembench.kernels.numba_cuda import cuda, device, number, uint32, uint64
from smembench.kernels.program import NumbaKernel
from smembench.kernels.types import Array, Index, Matrix, Place
from smembench.model.case import Block, Case
from smembench.model.problem import ITEMSIZE

SLICES = 3
SLICE_BYTES = 32
"""Bytes of a row of A per slice: 8 float32, or 4 float64, since tiles of 8 would not fit into 48 KiB."""
DOWN, ACROSS = 12, 6
"""Results of a thread."""
AT_ONCE = 18
"""Sums that are passed between slices at a time."""


def tiling_of(case: Case) -> Tiling:
    """In warp tiles with interleaved lanes."""
    return Tiling(
        block_of(case), case.dtype, DOWN, ACROSS, depth=SLICES * SLICE_BYTES // ITEMSIZE[case.dtype],
        warps=True, interleaved=True, slices=SLICES, by_elements=True,
    )  # fmt: skip


def program(case: Case, tiling: Tiling) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)``."""
    slices, at_once = SLICES, AT_ONCE
    steps = tiling.depth // slices
    bounds = predication(tiling, case)
    origin, short_of, start_of, load_tiles = bounds.origin, bounds.short, bounds.start, bounds.load_tiles
    functions = tile_steps(case, tiling, steps, first=bounds.first)
    allocate, position, first_tiles = functions.allocate, functions.position, functions.first_tiles
    store_tiles, mma_step, write_results = functions.store_tiles, functions.mma_step, functions.write_results
    few, compute_remainder = small_remainder(case, tiling), remainder(tiling).compute
    dtype = number(case.dtype)
    width, depth, vector, results = tiling.block.x, tiling.depth, tiling.vector, tiling.results
    rows, columns, a_elements, b_elements = tiling.rows, tiling.columns, tiling.a_elements, tiling.b_elements
    a_slice, b_slice = steps * tiling.pitch, steps * tiling.columns
    members = tiling.threads // slices
    size = vector if at_once % vector == 0 else 1

    def copy_element(target: Array, place: Index, source: Array, index: Index) -> None:
        target[place] = source[index]

    copy = device(copy_element) if size == 1 else copy_vector

    def sliced_k(
        c: Array, a: Array, b: Array, m: Index, n: Index, k: Index, lda: Index, ldb: Index, ldc: Index
    ) -> None:
        C, A, B = Matrix(c, m, n, ldc), Matrix(a, m, k, lda), Matrix(b, k, n, ldb)
        memory = allocate()
        sums = cuda.local.array(at_once, dtype, alignment=ALIGNMENT)
        thread = cuda.threadIdx.y * width + cuda.threadIdx.x
        member = thread % members
        own_slice = thread // members
        row0 = origin(cuda.blockIdx.y, rows, m)
        col0 = origin(cuda.blockIdx.x, columns, n)
        short = short_of(k)
        share = Share(thread, Place(row0, col0), short)
        from_a, from_b = start_of(A, B, share)
        row, col = position(member)
        k0 = uint32(0)
        buffer = uint32(0)
        first_tiles(memory, A, B, share, k0)
        while k0 < k + short:
            k0 += depth
            load_tiles(memory.held, A, B, share, Offsets(from_a, from_b), k0)
            a_base = uint64(buffer * a_elements)
            b_base = uint64(buffer * b_elements)
            at_a = a_base + uint64(own_slice * a_slice + row)
            at_b = b_base + uint64(own_slice * b_slice + col)
            mma_step(memory, Offsets(at_a, at_b))
            buffer = 1 - buffer
            store_tiles(memory, buffer, thread)
            cuda.syncthreads()
        # A few rows of results at a time, through B's tile.
        for first_sum in range(0, results, at_once):
            cuda.syncthreads()
            if own_slice > 0:
                place = (own_slice - 1) * (at_once * members)
                for j in range(0, at_once, size):
                    at = place + (j * members + member * size)
                    copy(memory.tiles.b, at, memory.accumulators, first_sum + j)
            cuda.syncthreads()
            if own_slice == 0:
                for other in range(slices - 1):
                    for j in range(0, at_once, size):
                        at = (other * at_once + j) * members + member * size
                        copy(sums, j, memory.tiles.b, at)
                    for j in range(at_once):
                        memory.accumulators[first_sum + j] += sums[j]
        if own_slice == 0:
            write_results(C, memory.accumulators, Place(row0 + row, col0 + col))
        if few:
            compute_remainder(C, A, B, memory, thread)

    return tiling.program(sliced_k, case, bounds.label, few=few)


KERNEL = kernel_of_tiling(
    "slicedK12x6",
    tiling_of,
    program,
    summary="three groups of threads with a third of k each and tiles of 96 × 96, for products of few tiles",
    results=(ACROSS, DOWN // SLICES),
    blocks=(Block(16, 24),),
)
