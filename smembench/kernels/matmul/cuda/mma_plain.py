"""mmaPlain: products of 16 × 8 × 16 on tensor cores, from tiles stored in shared memory as in global memory.

Per 32 columns of A and rows of B:

1. Each thread copies its share of both tiles in 128-bit accesses, zeros beyond the edges; barrier.
2. Twice, each warp loads its fragments: 32 × 16 of A and 16 × 64 of B.
3. Its lanes multiply them together, by 16 ``mma.sync.m16n8k16``, and accumulate in float32; barrier.

A register of a fragment holds two elements. Of A they are neighbours in a row: one load. Of B they are neighbours in a
column: two loads of 2 bytes and a shift. Rows of A's tile have 64 bytes and those of B's 128 or 256, so the eight rows
of a load of A, and the four of a load of B, fall into few banks: 4-way conflicts. A warp computes 32 × 64 of C, each
lane 8 × 8 results as in the float32 ladder, where a thread of tiledHalf computes one.
"""

from __future__ import annotations

from collections.abc import Callable

from smembench.kernels.common.grids import block_of
from smembench.kernels.intrinsics.matrix import A_REGISTERS, B_REGISTERS, multiply_matrices
from smembench.kernels.intrinsics.vector import ALIGNMENT
from smembench.kernels.kernel import Kernel
from smembench.kernels.matmul.mma_steps import ACROSS, DOWN, copy_tile, elements_of_a, elements_of_b, position, write
from smembench.kernels.matmul.mma_tiling import BLOCKS, DEPTH, RESULTS, MmaTiling
from smembench.kernels.numba_cuda import DeviceFunction, cuda, number, uint32
from smembench.kernels.program import NumbaKernel
from smembench.kernels.types import Array, Index, Matrix, Place
from smembench.model.case import Case
from smembench.model.formats import HALVES
from smembench.model.hardware import WARP

STEP = 16
"""Columns of A and rows of B per product."""


def tiling_of(case: Case) -> MmaTiling:
    """Tiles without padding."""
    return MmaTiling(block_of(case), case.dtype, "plain")


def build(case: Case) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)``."""
    tiling = tiling_of(case)
    return program(case, tiling, elements_of_a(tiling), elements_of_b(tiling))


def program(case: Case, tiling: MmaTiling, load_a: DeviceFunction, load_b: DeviceFunction) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)`` by functions that load a warp's fragments of A and of B."""
    a_width, b_width, c_width = tiling.widths(case)
    rows, columns, width = tiling.rows, tiling.columns, tiling.block.x
    copy_a = copy_tile(tiling, rows, DEPTH, a_width)
    copy_b = copy_tile(tiling, DEPTH, columns, b_width)
    corner_of, multiply, write_results = (
        position(tiling),
        multiply_matrices(case.dtype, DOWN, ACROSS),
        write(tiling, c_width),
    )
    dtype, float32, word = number(case.dtype), number("float32"), number("uint32")
    a_elements, b_elements = tiling.a_elements, tiling.b_elements
    a_registers, b_registers, results = A_REGISTERS * DOWN, B_REGISTERS * ACROSS, RESULTS[0] * RESULTS[1]
    zero, start = float32(0), uint32(0)

    def mma(c: Array, a: Array, b: Array, m: Index, n: Index, k: Index, lda: Index, ldb: Index, ldc: Index) -> None:
        C, A, B = Matrix(c, m, n, ldc), Matrix(a, m, k, lda), Matrix(b, k, n, ldb)
        a_tile = cuda.shared.array(a_elements, dtype, alignment=ALIGNMENT)
        b_tile = cuda.shared.array(b_elements, dtype, alignment=ALIGNMENT)
        accumulators = cuda.local.array(results, float32, alignment=ALIGNMENT)
        a_fragments = cuda.local.array(a_registers, word, alignment=ALIGNMENT)
        b_fragments = cuda.local.array(b_registers, word, alignment=ALIGNMENT)
        thread = cuda.threadIdx.y * width + cuda.threadIdx.x
        lane = thread % WARP
        row0, col0 = cuda.blockIdx.y * rows, cuda.blockIdx.x * columns
        corner = corner_of(thread)
        for i in range(results):
            accumulators[i] = zero
        k0 = start
        while k0 < k:
            copy_a(a_tile, start, A, Place(row0, k0), thread)
            copy_b(b_tile, start, B, Place(k0, col0), thread)
            cuda.syncthreads()
            for step in range(0, DEPTH, STEP):
                load_a(a_fragments, a_tile, start, Place(corner.row, start + step), lane)
                load_b(b_fragments, b_tile, start, Place(start + step, corner.col), lane)
                multiply(accumulators, a_fragments, b_fragments, lane)
            cuda.syncthreads()
            k0 += DEPTH
        write_results(C, accumulators, Place(row0 + corner.row, col0 + corner.col), lane)

    return tiling.program(mma, case)


def kernel_of(
    name: str,
    tiling_of: Callable[[Case], MmaTiling],
    build: Callable[[Case], NumbaKernel],
    *,
    summary: str,
    ladder: str,
) -> Kernel:
    """The declaration of a kernel on such tiles; ``summary`` and ``ladder`` are as Kernel's."""
    return Kernel(
        problem="matmul",
        name=name,
        kind="cuda",
        summary=summary,
        build=build,
        results=RESULTS,
        default_blocks=BLOCKS,
        tile_elements=lambda case: tiling_of(case).elements,
        dtypes=HALVES,
        needs="8.0",
        unsupported=lambda case: tiling_of(case).unsupported(case),
        strided=True,
        standard=False,
        ladder=ladder,
    )


KERNEL = kernel_of(
    "mmaPlain",
    tiling_of,
    build,
    summary="products of 16 × 8 × 16 on tensor cores, fragments from plain tiles",
    ladder="tensor cores, mma.sync",
)
