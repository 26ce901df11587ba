"""vectorized: tiled2D with 128-bit accesses of global and shared memory.

One instruction loads four float32 or two float64. From this step on the kernel is made of the device functions of
tile_steps.py, which the later steps use too:

1. ``load_tiles``: global memory to registers; ``store_tiles``: registers to shared memory; barrier.
2. ``mma_step``, for each of the tile's columns of A: load a fragment of A and one of B, and multiply them; barrier.

A's tile is stored transposed, so that the elements of a fragment are neighbours there too. A column of it is padded by
one vector: a warp's stores go down two columns at once, and would have 2-way conflicts. A thread's 8 × 8 results are
2 × 2 groups of vectors, a block apart.

It relieves instruction issue: a step along k takes 4 loads per 64 multiplications instead of 16. Shared memory delivers
as many words as before, without conflicts. Where rows do not begin and end at multiples of 16 bytes, global accesses
are of single elements, consecutive ones for consecutive threads. Predictions: results/reference/notes/vectorized.md.
"""

from __future__ import annotations

from smembench.kernels.common.grids import block_of
from smembench.kernels.matmul.structs import Offsets
from smembench.kernels.matmul.tile_steps import tile_steps
from smembench.kernels.matmul.tiling import Tiling, kernel_of_tiling
from smembench.kernels.numba_cuda import cuda, number, uint32, uint64
from smembench.kernels.program import NumbaKernel
from smembench.kernels.types import Array, Index, Matrix, Place
from smembench.model.case import Block, Case


def tiling_of(case: Case) -> Tiling:
    """8 × 8 results per thread, threads in the tile as in the block."""
    return Tiling(block_of(case), case.dtype)


def program(case: Case, tiling: Tiling) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)``."""
    functions = tile_steps(case, tiling, buffers=1)
    allocate, position, mma_step = functions.allocate, functions.position, functions.mma_step
    load_tiles, store_tiles, write_results = functions.load_tiles, functions.store_tiles, functions.write_results
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
            memory.accumulators[i] = zero
        k0 = uint32(0)
        while k0 < k:
            load_tiles(memory.held, A, B, thread, Place(row0, col0), k0)
            store_tiles(memory, uint32(0), thread)
            cuda.syncthreads()
            for i in range(depth):
                mma_step(memory, Offsets(uint64(row) + i * pitch, uint64(col) + i * columns))
            cuda.syncthreads()
            k0 += depth
        write_results(C, memory.accumulators, Place(row0 + row, col0 + col))

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
