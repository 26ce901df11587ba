"""doubleBuffered: vectorized with two buffers per tile: the next tiles are loaded while the current ones are used.

Per tile along k:

1. Issue the global loads of the next tiles, into registers.
2. Multiply from the current buffer.
3. Store the registers into the other buffer; one barrier. A thread that is a tile ahead stores only where all others
   have finished reading.

It hides latency: nothing waits for global memory while a tile's multiplications take longer than a load. With 8 warps
of 512 multiplications each on 4 schedulers they take 1024 clocks. The last iteration loads tiles of zeros that are
never read: with these loads in a branch, ptxas (12.8, 13.0, 13.5) moves those of 16 × 16 threads behind the
multiplications. Predictions: results/reference/notes/double_buffered.md.
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
    a_buffers, b_buffers = 2 * a_elements, 2 * b_elements
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
    def store(a_tile: Array, b_tile: Array, buffer: Index, a_staged: Array, b_staged: Array, thread: Index) -> None:
        """Registers to a buffer in shared memory, A's tile transposed."""
        row, col = thread // a_across, thread % a_across * a_width
        # 64 bits: a 32-bit sum may wrap, so its constant would not be folded into the instruction.
        at = uint64(buffer * a_elements) + uint64(col * pitch + row)
        for i in range(a_count):
            for j in range(a_width):
                a_tile[at + (j * pitch + i * a_step)] = a_staged[i * a_width + j]
        row, col = thread // b_across, thread % b_across * b_width
        at = uint64(buffer * b_elements) + uint64(row * columns + col)
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

    def double_buffered(
        c: Array, a: Array, b: Array, m: Index, n: Index, k: Index, lda: Index, ldb: Index, ldc: Index
    ) -> None:
        C, A, B = Matrix(c, m, n, ldc), Matrix(a, m, k, lda), Matrix(b, k, n, ldb)
        a_tile = cuda.shared.array(a_buffers, dtype, alignment=ALIGNMENT)  # (2 buffers, 8 along k, 8y rows and padding)
        b_tile = cuda.shared.array(b_buffers, dtype, alignment=ALIGNMENT)  # (2 buffers, 8 along k, 8x columns)
        accumulators = cuda.local.array(64, dtype, alignment=ALIGNMENT)  # (8 rows, 8 columns)
        a_fragment = cuda.local.array(8, dtype, alignment=ALIGNMENT)
        b_fragment = cuda.local.array(8, dtype, alignment=ALIGNMENT)
        a_staged = cuda.local.array(a_share, dtype, alignment=ALIGNMENT)
        b_staged = cuda.local.array(b_share, dtype, alignment=ALIGNMENT)
        thread = cuda.threadIdx.y * width + cuda.threadIdx.x
        row0, col0 = cuda.blockIdx.y * rows, cuda.blockIdx.x * columns
        row, col = thread // width * vector, thread % width * vector
        k0, buffer = uint32(0), uint32(0)
        for i in range(64):
            accumulators[i] = zero
        load_a(a_staged, A, thread, row0, k0)
        load_b(b_staged, B, thread, col0, k0)
        store(a_tile, b_tile, buffer, a_staged, b_staged, thread)
        cuda.syncthreads()
        while k0 < k:
            k0 += depth
            # The next tiles are on their way while this one is multiplied; the last ones are zeros and never read.
            load_a(a_staged, A, thread, row0, k0)
            load_b(b_staged, B, thread, col0, k0)
            a_base, b_base = uint64(buffer * a_elements), uint64(buffer * b_elements)
            for i in range(depth):
                at_a, at_b = a_base + uint64(row) + i * pitch, b_base + uint64(col) + i * columns
                step(accumulators, a_fragment, b_fragment, a_tile, b_tile, at_a, at_b)
            buffer = 1 - buffer
            store(a_tile, b_tile, buffer, a_staged, b_staged, thread)
            cuda.syncthreads()
        write(C, accumulators, Place(row0 + row, col0 + col))

    return launched(double_buffered, case, tiling)


KERNEL = kernel_of_tiling(
    "doubleBuffered",
    Tiling.of,
    build,
    summary="vectorized, with the next tiles on their way while one is used",
    ladder="the next tiles are loaded while these are multiplied",
)
