"""vectorized: tiled2D with 128-bit accesses of global and of shared memory.

One instruction loads four float32 or two float64. A's tile lies transposed in shared memory, so that the elements of a
fragment are neighbours there too. A thread's 8 × 8 results are 2 × 2 vectors by vectors that lie a block apart. A
column of A's tile has a vector of padding: a warp's stores go down two columns at once and would have 2-way conflicts
without.

It relieves instruction issue: a step along k takes 64 multiplications and 4 loads instead of 16. Shared memory delivers
as many words as before, without conflicts.

Where rows do not begin and end at multiples of 16 bytes, global accesses are of single elements, consecutive ones for
consecutive threads. Predictions: results/reference/notes/vectorized.md.
"""

from __future__ import annotations

from smembench.kernels.common.grids import block_of
from smembench.kernels.matmul.structs import Matrix, Offsets, Place
from smembench.kernels.matmul.tile_steps import tile_steps
from smembench.kernels.matmul.tiling import Tiling, kernel_of_tiling
from smembench.kernels.numba_cuda import cuda, number, uint32, uint64
from smembench.kernels.program import NumbaKernel
from smembench.kernels.types import Array, Index
from smembench.model.case import Block, Case


def tiling_of(case: Case) -> Tiling:
    """8 × 8 results per thread, threads in the tile as in the block."""
    return Tiling(block_of(case), case.dtype)


def program(case: Case, tiling: Tiling) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)``."""
    allocate, position, _, load, store, multiply, write = tile_steps(case, tiling, buffers=1)
    zero = number(case.dtype)(0)
    width, rows, columns, pitch, depth = tiling.block.x, tiling.rows, tiling.columns, tiling.pitch, tiling.depth
    results = tiling.results

    def vectorized(
        c: Array, a: Array, b: Array, m: Index, n: Index, k: Index, lda: Index, ldb: Index, ldc: Index
    ) -> None:
        C, A, B = Matrix(c, m, n, ldc), Matrix(a, m, k, lda), Matrix(b, k, n, ldb)
        memory = allocate()
        thread = cuda.threadIdx.y * width + cuda.threadIdx.x
        row0, col0 = cuda.blockIdx.y * rows, cuda.blockIdx.x * columns
        row, col = position(thread)
        for i in range(results):
            memory.total[i] = zero
        k0 = uint32(0)
        while k0 < k:
            load(memory.held, A, B, thread, Place(row0, col0), k0)
            store(memory, uint32(0), thread)
            cuda.syncthreads()
            for i in range(depth):
                multiply(memory, Offsets(uint64(row) + i * pitch, uint64(col) + i * columns))
            cuda.syncthreads()
            k0 += depth
        write(C, memory.total, Place(row0 + row, col0 + col))

    return tiling.program(vectorized, case)


KERNEL = kernel_of_tiling(
    "vectorized",
    tiling_of,
    program,
    summary="tiled2D with 128-bit accesses, the tile of A transposed",
    results=(8, 8),
    blocks=(Block(16, 16),),
    ladder="128-bit accesses",
    buffers=1,
)
