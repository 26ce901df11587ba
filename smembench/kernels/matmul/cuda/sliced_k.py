"""slicedK: interleaved with groups of threads that compute the same tile, each from its own slice of k.

1. A block loads 16 columns of A and 16 rows of B at a time (8 in float64).
2. Each group of threads multiplies its slice of them.
3. At the end all other groups pass their sums to the first through shared memory, a few at a time.

A thread has 8 × 8 results again, half as many as in tiled16x8.

It hides latency where C has few tiles, and so few warps. slicedK has two slices: 16 × 16 threads compute 64 × 128 of C,
each pair of threads 8 × 8. slicedK12x6 has three slices of 128 threads with 12 × 6 results, for sides a little over a
multiple of slicedK's tile: tiles of 96 × 96, loaded by elements, which needs no alignment.
Findings: results/reference/notes/sliced_k.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from smembench.kernels.common.grids import block_of
from smembench.kernels.intrinsics.vector import ALIGNMENT, copy_vector
from smembench.kernels.kernel import Kernel
from smembench.kernels.matmul.predication import predicated, predication
from smembench.kernels.matmul.remainder import remainder, small_remainder
from smembench.kernels.matmul.structs import Matrix, Offsets, Place, Share
from smembench.kernels.matmul.tile_steps import tile_steps
from smembench.kernels.matmul.tiling import Tiling, kernel_of_tiling
from smembench.kernels.numba_cuda import cuda, device, number, uint32, uint64
from smembench.kernels.program import NumbaKernel
from smembench.kernels.types import Array, Index
from smembench.model.case import Block, Case
from smembench.model.problem import ITEMSIZE

SLICE_BYTES = 32
"""Bytes of a row of A per slice: 8 float32, or 4 float64, since tiles of 8 would not fit into 48 KiB."""


@dataclass(frozen=True, slots=True)
class Variant:
    """Results per thread, down and across, the slices of k, and how many sums are passed between slices at a time.

    ``by_elements``: tiles are loaded an element at a time, whatever the alignment.
    """

    down: int
    across: int
    slices: int
    at_once: int
    by_elements: bool = False

    def tiling(self, case: Case) -> Tiling:
        """In warp tiles with interleaved lanes."""
        depth = self.slices * SLICE_BYTES // ITEMSIZE[case.dtype]
        return Tiling(
            block_of(case), case.dtype, self.down, self.across, depth,
            warps=True, interleaved=True, slices=self.slices, by_elements=self.by_elements,
        )  # fmt: skip


def program(case: Case, tiling: Tiling, at_once: int) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)`` whose slices pass on ``at_once`` sums at a time."""
    slices = tiling.slices
    steps = tiling.depth // slices
    # Without bounds checks slicedK has more loads in flight than the registers of two blocks per SM hold, and spills.
    choose = predication if tiling.by_elements else predicated
    bounds = choose(tiling, case)
    origin, short_of, start_of, load_tiles = bounds.origin, bounds.short, bounds.start, bounds.load_tiles
    functions = tile_steps(case, tiling, steps, first=bounds.first)
    allocate, position, first_tiles = functions.allocate, functions.position, functions.first_tiles
    store_tiles, mma_step, write_results = functions.store_tiles, functions.mma_step, functions.write_results
    few, compute_remainder = tiling.by_elements and small_remainder(case, tiling), remainder(tiling).compute
    dtype = number(case.dtype)
    width, depth, vector, results = tiling.block.x, tiling.depth, tiling.vector, tiling.results
    rows, columns, a_elements, b_elements = tiling.rows, tiling.columns, tiling.a_elements, tiling.b_elements
    a_slice, b_slice = steps * tiling.pitch, steps * tiling.columns
    members = tiling.threads // slices
    size = vector if at_once % vector == 0 else 1

    def only(own_slice: Index) -> Index:
        """Offset of the second of two slices; any arithmetic here costs the main loop registers."""
        return uint32(0)

    def several(own_slice: Index) -> Index:
        return (own_slice - 1) * (at_once * members)

    def copy_element(target: Array, place: Index, source: Array, index: Index) -> None:
        target[place] = source[index]

    copy = device(copy_element) if size == 1 else copy_vector
    place_of = device(only if slices == 2 else several)

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
                place = place_of(own_slice)
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


def _kernel(name: str, variant: Variant, block: Block, *, summary: str, ladder: str = "") -> Kernel:
    def program_of(case: Case, tiling: Tiling) -> NumbaKernel:
        return program(case, tiling, variant.at_once)

    results = (variant.across, variant.down // variant.slices)
    return kernel_of_tiling(
        name, variant.tiling, program_of, summary=summary, results=results, blocks=(block,), ladder=ladder
    )


KERNELS = (
    _kernel(
        "slicedK",
        Variant(8, 8, slices=2, at_once=8),
        Block(16, 16),
        summary="interleaved, two groups of threads with half of k each, for products of few tiles",
        ladder="k in two slices",
    ),
    _kernel(  # no step of the ladder, since it is not for all sizes
        "slicedK12x6",
        Variant(12, 6, slices=3, at_once=18, by_elements=True),
        Block(16, 24),
        summary="slicedK in three slices with tiles of 96 × 96, for sides a little over its own",
    ),
)
