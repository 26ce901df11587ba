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

from smembench.kernels.intrinsics.vector import ALIGNMENT, copy_vector, copying, load_pair
from smembench.kernels.matmul import ragged
from smembench.kernels.matmul.tiled_kernel import few_left, kernel_of_tiling, launched
from smembench.kernels.matmul.tiling import Memory, Offsets, Tiling, predication, staging
from smembench.kernels.numba_cuda import DeviceFunction, cuda, device, number, uint32, uint64
from smembench.kernels.program import NumbaKernel
from smembench.kernels.types import Array, Index, Matrix, Place
from smembench.model.case import Block, Case
from smembench.model.hardware import WARP
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
    depth = SLICES * SLICE_BYTES // ITEMSIZE[case.dtype]
    shape = {"down": DOWN, "across": ACROSS, "depth": depth, "slices": SLICES}
    return Tiling.of(case, **shape, warps=True, by_elements=True)


def build(case: Case, tiling: Tiling) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)``."""
    slices, at_once, vector, dtype = SLICES, AT_ONCE, tiling.vector, number(case.dtype)
    width, rows, columns, pitch, depth = tiling.block.x, tiling.rows, tiling.columns, tiling.pitch, tiling.depth
    a_elements, b_elements, a_share, b_share = tiling.a_elements, tiling.b_elements, tiling.a_share, tiling.b_share
    a_buffers, b_buffers, results, zero = 2 * a_elements, 2 * b_elements, DOWN * ACROSS, dtype(0)
    members, per_slice = tiling.threads // slices, depth // slices
    a_slice, b_slice = per_slice * pitch, per_slice * columns
    # A thread's 12 rows are vectors that lie 4 lanes apart, its 6 columns pairs that lie 8 lanes apart.
    warps_across, (rows_apart, columns_apart) = width // 8, tiling.apart
    warp_rows, warp_columns = 4 * DOWN, 8 * ACROSS
    a_step, b_step = tiling.threads // depth, tiling.threads // columns
    a_count, b_count = rows // a_step, depth // b_step
    size = vector if at_once % vector == 0 else 1
    copy = copying(size)

    @device
    def load(a_staged: Array, b_staged: Array, A: Matrix, B: Matrix, at_a: Index, at_b: Index) -> None:
        """Global memory to registers, element by element and without bounds checks."""
        for i in range(a_count):
            a_staged[i] = A.elements[at_a + i * a_step * A.stride]
        for i in range(b_count):
            b_staged[i] = B.elements[at_b + i * b_step * B.stride]

    def steps(count: int) -> DeviceFunction:
        """Multiply 12 elements of a column of A's tile by 6 of a row of B's, ``count`` steps along k written out."""
        if count > 1:
            half, a_half, b_half = steps(count // 2), count // 2 * pitch, count // 2 * columns

            def halves(memory: Memory, at: Offsets) -> None:
                half(memory, at)
                half(memory, Offsets(at.a + a_half, at.b + b_half))

            return device(halves)

        def one(memory: Memory, at: Offsets) -> None:
            for i in range(0, DOWN, vector):
                copy_vector(memory.a_fragment, i, memory.a_tile, at.a + i // vector * rows_apart)
            for j in range(0, ACROSS, 2):
                memory.b_fragment[j], memory.b_fragment[j + 1] = load_pair(memory.b_tile, at.b + j // 2 * columns_apart)
            for j in range(ACROSS):
                for i in range(DOWN):
                    memory.accumulators[i * ACROSS + j] += memory.a_fragment[i] * memory.b_fragment[j]

        return device(one)

    @device
    def write(C: Matrix, accumulators: Array, first: Place) -> None:
        """Write a thread's results, of which the first belongs at ``first``, but those beyond the edges."""
        for i in range(DOWN):
            row = first.row + (i // vector * rows_apart + i % vector)
            for j in range(ACROSS):
                col = first.col + (j // 2 * columns_apart + j % 2)
                if row < C.rows and col < C.columns:
                    C.elements[row * C.stride + col] = accumulators[i * ACROSS + j]

    slice_steps = steps(per_slice)
    # Ragged sizes: sides smaller than a tile, tiles that are moved inwards, and a few rows or columns beyond them.
    label, origin, short_of, first_end = predication(tiling, case)
    load_checked, store = staging(tiling, 1, 1)
    few, (_, _, compute_chunks), inside = few_left(case, tiling), ragged.remainder(tiling), bool(label)

    def sliced_k(
        c: Array, a: Array, b: Array, m: Index, n: Index, k: Index, lda: Index, ldb: Index, ldc: Index
    ) -> None:
        C, A, B = Matrix(c, m, n, ldc), Matrix(a, m, k, lda), Matrix(b, k, n, ldb)
        # (2 buffers, 3 slices of 8 along k, 96 rows and padding) and (2 buffers, 3 slices of 8 along k, 96 columns)
        a_tile = cuda.shared.array(a_buffers, dtype, alignment=ALIGNMENT)
        b_tile = cuda.shared.array(b_buffers, dtype, alignment=ALIGNMENT)
        accumulators = cuda.local.array(results, dtype, alignment=ALIGNMENT)  # (12 rows, 6 columns)
        a_fragment = cuda.local.array(DOWN, dtype, alignment=ALIGNMENT)
        b_fragment = cuda.local.array(ACROSS, dtype, alignment=ALIGNMENT)
        a_staged = cuda.local.array(a_share, dtype, alignment=ALIGNMENT)
        b_staged = cuda.local.array(b_share, dtype, alignment=ALIGNMENT)
        memory = Memory(a_tile, b_tile, accumulators, a_fragment, b_fragment)
        sums = cuda.local.array(at_once, dtype, alignment=ALIGNMENT)
        thread = cuda.threadIdx.y * width + cuda.threadIdx.x
        member = thread % members
        own_slice = thread // members
        row0 = origin(cuda.blockIdx.y, rows, m)
        col0 = origin(cuda.blockIdx.x, columns, n)
        short = short_of(k)
        if inside:
            from_a = (row0 + thread // depth) * lda + thread % depth
            from_b = thread // columns * ldb + (col0 + thread % columns)
        # A warp's lanes: 2i and 2i + 1 lie below each other, l and l + 2 side by side.
        warp, lane = member // WARP, member % WARP
        lane_row, lane_col = lane // 16 * 2 + lane % 2, lane // 2 % 8
        row = warp // warps_across * warp_rows + lane_row * vector
        col = warp % warps_across * warp_columns + lane_col * 2
        k0 = uint32(0)
        buffer = uint32(0)
        for i in range(results):
            accumulators[i] = zero
        A_first, B_first = Matrix(a, m, first_end(k, short), lda), Matrix(b, first_end(k, short), n, ldb)
        load_checked(a_staged, b_staged, A_first, B_first, thread, Place(row0, col0), k0)
        store(a_tile, b_tile, buffer, a_staged, b_staged, thread)
        cuda.syncthreads()
        while k0 < k + short:
            k0 += depth
            if inside:
                at_k = min(k0 - short, k - depth)  # past the end of k the last tiles are loaded again
                load(a_staged, b_staged, A, B, from_a + at_k, from_b + at_k * ldb)
            else:
                load_checked(a_staged, b_staged, A, B, thread, Place(row0, col0), k0)
            at_a = uint64(buffer * a_elements) + uint64(own_slice * a_slice + row)
            at_b = uint64(buffer * b_elements) + uint64(own_slice * b_slice + col)
            slice_steps(memory, Offsets(at_a, at_b))
            buffer = 1 - buffer
            store(a_tile, b_tile, buffer, a_staged, b_staged, thread)
            cuda.syncthreads()
        # The other slices pass on their sums, a few of each thread at a time, through B's tile.
        for first_sum in range(0, results, at_once):
            cuda.syncthreads()
            if own_slice > 0:
                place = (own_slice - 1) * (at_once * members)
                for j in range(0, at_once, size):
                    copy(b_tile, place + (j * members + member * size), accumulators, first_sum + j)
            cuda.syncthreads()
            if own_slice == 0:
                for other in range(slices - 1):
                    for j in range(0, at_once, size):
                        copy(sums, j, b_tile, (other * at_once + j) * members + member * size)
                    for j in range(at_once):
                        accumulators[first_sum + j] += sums[j]
        if own_slice == 0:
            write(C, accumulators, Place(row0 + row, col0 + col))
        if few:
            compute_chunks(C, A, B, accumulators, b_tile, thread)

    return launched(sliced_k, case, tiling, label, few=few)


KERNEL = kernel_of_tiling(
    "slicedK12x6",
    tiling_of,
    build,
    summary="three groups of threads with a third of k each and tiles of 96 × 96, for products of few tiles",
    results=(ACROSS, DOWN // SLICES),
    blocks=(Block(16, 24),),
)
