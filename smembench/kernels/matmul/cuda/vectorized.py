"""vectorized: tiled2D with 128-bit accesses of global and shared memory.

One instruction loads four float32 or two float64. Per tile along k:

1. ``load``: global memory to registers; ``store``: registers to shared memory; barrier.
2. ``step``, for each of the tile's columns of A: load a fragment of A and one of B, and multiply them; barrier.

A's tile is stored transposed, so that the elements of a fragment are neighbours there too. A column of it is padded by
one vector: a warp's stores go down two columns at once, and would have 2-way conflicts. A thread's 8 × 8 results are
2 × 2 groups of vectors, a block apart.

It relieves instruction issue: a step along k takes 4 loads per 64 multiplications instead of 16. Shared memory delivers
as many words as before, without conflicts. Where rows do not begin and end at multiples of 16 bytes, global accesses
are of single elements, consecutive ones for consecutive threads. Predictions: results/reference/notes/vectorized.md.
"""

from __future__ import annotations

from smembench.kernels.intrinsics.vector import ALIGNMENT, copy_vector, copying
from smembench.kernels.matmul.tiled_kernel import kernel_of_tiling, launched
from smembench.kernels.matmul.tiling import Tiling
from smembench.kernels.numba_cuda import cuda, device, number, uint32, uint64
from smembench.kernels.program import NumbaKernel
from smembench.kernels.types import Array, Index, Matrix, Place
from smembench.model.case import Case


def build(case: Case, tiling: Tiling) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)``."""
    (a_width, b_width), vector, dtype = tiling.widths(case), tiling.vector, number(case.dtype)
    width, rows, columns, pitch, depth = tiling.block.x, tiling.rows, tiling.columns, tiling.pitch, tiling.depth
    a_elements, b_elements, a_share, b_share = tiling.a_elements, tiling.b_elements, tiling.a_share, tiling.b_share
    rows_apart, columns_apart = tiling.apart
    zero, copy_a, copy_b = dtype(0), copying(a_width), copying(b_width)
    # A thread's part of a tile: every a_step-th row of A's from its own, every b_step-th row of B's.
    a_across, b_across = depth // a_width, columns // b_width
    a_step, b_step = tiling.threads // a_across, tiling.threads // b_across
    a_count, b_count = rows // a_step, depth // b_step

    @device
    def load_a(staged: Array, A: Matrix, thread: Index, row0: Index, k0: Index) -> None:
        """Global memory to registers. Rows below the last are read as the last; what lies beyond k is zero."""
        row = row0 + thread // a_across
        col = k0 + thread % a_across * a_width
        for i in range(a_count):
            if col < A.columns:
                at = min(row + i * a_step, A.rows - 1) * A.stride + col
                copy_a(staged, i * a_width, A.elements, at)
            else:
                for j in range(a_width):
                    staged[i * a_width + j] = zero

    @device
    def load_b(staged: Array, B: Matrix, thread: Index, col0: Index, k0: Index) -> None:
        """The same of B's tile, whose rows lie along k."""
        row = k0 + thread // b_across
        col = col0 + thread % b_across * b_width
        for i in range(b_count):
            r = row + i * b_step
            if r < B.rows:
                at = r * B.stride + min(col, B.columns - b_width)
                copy_b(staged, i * b_width, B.elements, at)
            else:
                for j in range(b_width):
                    staged[i * b_width + j] = zero

    @device
    def store(a_tile: Array, b_tile: Array, a_staged: Array, b_staged: Array, thread: Index) -> None:
        """Registers to shared memory, A's tile transposed."""
        row, col = thread // a_across, thread % a_across * a_width
        # 64 bits: a 32-bit sum may wrap, so its constant would not be folded into the instruction.
        at = uint64(col * pitch + row)
        for i in range(a_count):
            for j in range(a_width):
                a_tile[at + (j * pitch + i * a_step)] = a_staged[i * a_width + j]
        row, col = thread // b_across, thread % b_across * b_width
        at = uint64(row * columns + col)
        for i in range(b_count):
            copy_b(b_tile, at + i * b_step * columns, b_staged, i * b_width)

    @device
    def step(
        accumulators: Array,
        a_fragment: Array,
        b_fragment: Array,
        a_tile: Array,
        b_tile: Array,
        at_a: Index,
        at_b: Index,
    ) -> None:
        """Multiply 8 elements of a column of A's tile by 8 of a row of B's. Row by row, it takes more registers."""
        for i in range(0, 8, vector):
            copy_vector(a_fragment, i, a_tile, at_a + i // vector * rows_apart)
        for j in range(0, 8, vector):
            copy_vector(b_fragment, j, b_tile, at_b + j // vector * columns_apart)
        for j in range(8):
            for i in range(8):
                accumulators[i * 8 + j] += a_fragment[i] * b_fragment[j]

    @device
    def write(C: Matrix, accumulators: Array, first: Place) -> None:
        """Write a thread's results, of which the first belongs at ``first``; those beyond the edges are left out."""
        for i in range(8):
            row = first.row + (i // vector * rows_apart + i % vector)
            for j in range(0, 8, b_width):
                col = first.col + (j // vector * columns_apart + j % vector)
                if row < C.rows and col < C.columns:
                    copy_b(C.elements, row * C.stride + col, accumulators, i * 8 + j)

    def vectorized(
        c: Array, a: Array, b: Array, m: Index, n: Index, k: Index, lda: Index, ldb: Index, ldc: Index
    ) -> None:
        C, A, B = Matrix(c, m, n, ldc), Matrix(a, m, k, lda), Matrix(b, k, n, ldb)
        a_tile = cuda.shared.array(a_elements, dtype, alignment=ALIGNMENT)  # (8 along k, 8y rows and padding)
        b_tile = cuda.shared.array(b_elements, dtype, alignment=ALIGNMENT)  # (8 along k, 8x columns)
        accumulators = cuda.local.array(64, dtype, alignment=ALIGNMENT)  # (8 rows, 8 columns)
        a_fragment = cuda.local.array(8, dtype, alignment=ALIGNMENT)
        b_fragment = cuda.local.array(8, dtype, alignment=ALIGNMENT)
        a_staged = cuda.local.array(a_share, dtype, alignment=ALIGNMENT)
        b_staged = cuda.local.array(b_share, dtype, alignment=ALIGNMENT)
        thread = cuda.threadIdx.y * width + cuda.threadIdx.x
        row0, col0 = cuda.blockIdx.y * rows, cuda.blockIdx.x * columns
        row, col = thread // width * vector, thread % width * vector
        for i in range(64):
            accumulators[i] = zero
        k0 = uint32(0)
        while k0 < k:
            load_a(a_staged, A, thread, row0, k0)
            load_b(b_staged, B, thread, col0, k0)
            store(a_tile, b_tile, a_staged, b_staged, thread)
            cuda.syncthreads()
            for i in range(depth):
                at_a, at_b = uint64(row) + i * pitch, uint64(col) + i * columns
                step(accumulators, a_fragment, b_fragment, a_tile, b_tile, at_a, at_b)
            cuda.syncthreads()
            k0 += depth
        write(C, accumulators, Place(row0 + row, col0 + col))

    return launched(vectorized, case, tiling)


KERNEL = kernel_of_tiling(
    "vectorized",
    Tiling.of,
    build,
    summary="tiled2D with 128-bit accesses, the tile of A transposed",
    ladder="128-bit accesses",
    buffers=1,
)
