"""oneRow: a product of one to four rows in float32 or float64, bound by reading B.

1. A block has 8 vectors of columns, 128 bytes of float32, over all of k. A warp loads four rows of that, several times
   at once; its warps take rows of B in turn.
2. A lane multiplies its vector by an element of each row of A.
3. The four parts of a warp add up by shuffles, and the warps in shared memory.

Rows of B must begin at multiples of 16 bytes. Findings: results/reference/notes/few_rows.md.
"""

from __future__ import annotations

from smembench.kernels.common.grids import block_of, ceil_div
from smembench.kernels.intrinsics.vector import ALIGNMENT, copy_vector, vector_width
from smembench.kernels.kernel import Kernel
from smembench.kernels.matmul.cuda.few_rows import unaligned
from smembench.kernels.numba_cuda import cuda, number, uint64
from smembench.kernels.program import NumbaKernel
from smembench.kernels.types import Array, Index
from smembench.model.case import Block, Case
from smembench.model.formats import WIDE
from smembench.model.hardware import WARP

ACROSS, DOWN = 8, 4
"""Vectors of a row of B that a warp loads at once, and rows."""
STEPS = 8
"""Vectors that a lane loads before it multiplies them."""
MOST_ROWS = 4
ALL_LANES = 0xFFFFFFFF


def rows_of(case: Case) -> int:
    """Rows of A that a block multiplies."""
    return next(rows for rows in (1, 2, MOST_ROWS) if rows >= case.m or rows == MOST_ROWS)


def elements(case: Case) -> int:
    """The sums of all warps."""
    return block_of(case).y * rows_of(case) * ACROSS * vector_width(case.dtype)


def build(case: Case) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)``."""
    block, rows, vector, dtype = block_of(case), rows_of(case), vector_width(case.dtype), number(case.dtype)
    warps, columns, zero = block.y, ACROSS * vector, dtype(0)
    sums, loaded, warp_sums, threads = rows * vector, STEPS * vector, rows * columns, WARP * block.y
    steps, factors, all_sums, per_turn = STEPS, rows * STEPS, warps * warp_sums, warps * STEPS * DOWN

    def one_row(c: Array, a: Array, b: Array, m: Index, n: Index, k: Index, lda: Index, ldb: Index, ldc: Index) -> None:
        shared = cuda.shared.array(all_sums, dtype, alignment=ALIGNMENT)  # (warps, rows, columns)
        total = cuda.local.array(sums, dtype, alignment=ALIGNMENT)  # (rows, columns of a vector)
        of_b = cuda.local.array(loaded, dtype, alignment=ALIGNMENT)  # (steps, columns of a vector)
        of_a = cuda.local.array(factors, dtype, alignment=ALIGNMENT)  # (steps, rows)
        lane, warp = cuda.threadIdx.x, cuda.threadIdx.y
        col0, row0 = cuda.blockIdx.x * columns, cuda.blockIdx.y * rows
        # A vector beyond the last column is the last one.
        col = min(col0 + lane % ACROSS * vector, n - vector)
        for i in range(sums):
            total[i] = zero
        at = warp * (steps * DOWN) + lane // ACROSS
        while at < k:
            for step in range(steps):
                row = at + step * DOWN
                copy_vector(of_b, step * vector, b, uint64(min(row, k - 1)) * ldb + col)
                for i in range(rows):
                    factor = a[min(row0 + i, m - 1) * lda + min(row, k - 1)]
                    of_a[step * rows + i] = factor
            for step in range(steps):
                if at + step * DOWN < k:
                    for i in range(rows):
                        for j in range(vector):
                            total[i * vector + j] += of_a[step * rows + i] * of_b[step * vector + j]
            at += per_turn
        for i in range(rows):
            for j in range(vector):
                part = total[i * vector + j]
                part += cuda.shfl_down_sync(ALL_LANES, part, 2 * ACROSS)
                part += cuda.shfl_down_sync(ALL_LANES, part, ACROSS)
                if lane < ACROSS:
                    shared[warp * warp_sums + i * columns + lane * vector + j] = part
        cuda.syncthreads()
        for place in range(warp * WARP + lane, warp_sums, threads):
            row, at_col = row0 + place // columns, col0 + place % columns
            if row < m and at_col < n:
                result = zero
                for i in range(warps):
                    result += shared[i * warp_sums + place]
                c[row * ldc + at_col] = result

    grid = ceil_div(case.n, columns), ceil_div(case.m, rows)
    return NumbaKernel(one_row, grid=grid, block=block, launch_bounds=(threads, 1), variant=f"{rows} rows")


KERNEL = Kernel(
    problem="matmul",
    name="oneRow",
    kind="cuda",
    summary="products of one to four rows: B straight into registers, sums through shared memory",
    build=build,
    default_blocks=(Block(32, 16), Block(32, 32)),
    tile_elements=elements,
    dtypes=WIDE,
    unsupported=lambda case: unaligned(case, case.n),
    strided=True,
    standard=False,
    ladder="B straight into registers, read once",
    few=16,
)
