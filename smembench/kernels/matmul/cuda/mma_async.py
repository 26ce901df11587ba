"""mmaAsync: mmaSwizzled with asynchronous copies, two tiles ahead of the products.

There are three stages, each with a tile of A and one of B. Per 32 columns of A and rows of B:

1. Wait until all copies but those of the newest tiles are complete; barrier. All warps have now finished reading the
   stage of the step before.
2. Start to copy the tiles after next into that stage, by ``cp.async``, which bypasses registers.
3. Load fragments from the oldest stage and multiply them, as before.

One barrier instead of two, and the latency of global memory is hidden behind two tiles' products. Beyond the edges
cp.async stores zeros. Where rows do not begin and end at multiples of 16 bytes, elements are copied through registers.
The tiles take all of the 48 KiB that a block has without asking for more.
"""

from __future__ import annotations

from smembench.kernels.common.grids import block_of
from smembench.kernels.intrinsics.async_copy import commit_copies, wait_for_copies
from smembench.kernels.intrinsics.matrix import A_REGISTERS, B_REGISTERS, multiply_matrices
from smembench.kernels.intrinsics.vector import ALIGNMENT
from smembench.kernels.matmul.cuda.mma_plain import STEP, kernel_of
from smembench.kernels.matmul.mma_steps import ACROSS, DOWN, copy_tile, matrices_of_a, matrices_of_b, position, write
from smembench.kernels.matmul.mma_tiling import DEPTH, RESULTS, MmaTiling
from smembench.kernels.numba_cuda import cuda, number, uint32
from smembench.kernels.program import NumbaKernel
from smembench.kernels.types import Array, Index, Matrix, Place
from smembench.model.case import Case
from smembench.model.hardware import WARP

STAGES = 3


def tiling_of(case: Case) -> MmaTiling:
    """Swizzled tiles in stages."""
    return MmaTiling(block_of(case), case.dtype, "swizzled", STAGES)


def build(case: Case) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)``."""
    tiling = tiling_of(case)
    a_width, b_width, c_width = tiling.widths(case)
    rows, columns, width = tiling.rows, tiling.columns, tiling.block.x
    copy_a, copy_b = copy_tile(tiling, rows, DEPTH, a_width), copy_tile(tiling, DEPTH, columns, b_width)
    load_a, load_b, corner_of = matrices_of_a(tiling), matrices_of_b(tiling), position(tiling)
    multiply, write_results = multiply_matrices(case.dtype, DOWN, ACROSS), write(tiling, c_width)
    dtype, float32, word = number(case.dtype), number("float32"), number("uint32")
    a_elements, b_elements = tiling.a_elements, tiling.b_elements
    a_total, b_total = STAGES * a_elements, STAGES * b_elements
    a_registers, b_registers, results = A_REGISTERS * DOWN, B_REGISTERS * ACROSS, RESULTS[0] * RESULTS[1]
    zero, start, ahead = float32(0), uint32(0), STAGES - 1
    newest = ahead - 1

    def mma_async(
        c: Array, a: Array, b: Array, m: Index, n: Index, k: Index, lda: Index, ldb: Index, ldc: Index
    ) -> None:
        C, A, B = Matrix(c, m, n, ldc), Matrix(a, m, k, lda), Matrix(b, k, n, ldb)
        a_tile = cuda.shared.array(a_total, dtype, alignment=ALIGNMENT)
        b_tile = cuda.shared.array(b_total, dtype, alignment=ALIGNMENT)
        accumulators = cuda.local.array(results, float32, alignment=ALIGNMENT)
        a_fragments = cuda.local.array(a_registers, word, alignment=ALIGNMENT)
        b_fragments = cuda.local.array(b_registers, word, alignment=ALIGNMENT)
        thread = cuda.threadIdx.y * width + cuda.threadIdx.x
        lane = thread % WARP
        row0, col0 = cuda.blockIdx.y * rows, cuda.blockIdx.x * columns
        corner = corner_of(thread)
        for i in range(results):
            accumulators[i] = zero
        for stage in range(ahead):
            copy_a(a_tile, start + stage * a_elements, A, Place(row0, start + stage * DEPTH), thread)
            copy_b(b_tile, start + stage * b_elements, B, Place(start + stage * DEPTH, col0), thread)
            commit_copies()
        k0, oldest, free = start, start, start + ahead
        while k0 < k:
            wait_for_copies(newest)
            cuda.syncthreads()
            copy_a(a_tile, free * a_elements, A, Place(row0, k0 + ahead * DEPTH), thread)
            copy_b(b_tile, free * b_elements, B, Place(k0 + ahead * DEPTH, col0), thread)
            commit_copies()
            for step in range(0, DEPTH, STEP):
                load_a(a_fragments, a_tile, oldest * a_elements, Place(corner.row, start + step), lane)
                load_b(b_fragments, b_tile, oldest * b_elements, Place(start + step, corner.col), lane)
                multiply(accumulators, a_fragments, b_fragments, lane)
            free = oldest
            oldest = (oldest + 1) % STAGES
            k0 += DEPTH
        write_results(C, accumulators, Place(row0 + corner.row, col0 + corner.col), lane)

    return tiling.program(mma_async, case)


KERNEL = kernel_of(
    "mmaAsync",
    tiling_of,
    build,
    summary="mmaSwizzled with asynchronous copies, two tiles ahead",
    ladder="asynchronous copies in three stages",
)
