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

from smembench.kernels.matmul.cuda.vectorized import tiling_of
from smembench.kernels.matmul.structs import Offsets, Share
from smembench.kernels.matmul.tile_steps import tile_steps
from smembench.kernels.matmul.tiling import Tiling, kernel_of_tiling
from smembench.kernels.numba_cuda import cuda, uint32, uint64
from smembench.kernels.program import NumbaKernel
from smembench.kernels.types import Array, Index, Matrix, Place
from smembench.model.case import Block, Case


def program(case: Case, tiling: Tiling, steps: int = 1) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)`` on a tiling, with ``steps`` along k unrolled."""
    functions = tile_steps(case, tiling, steps)
    allocate, position, mma_step = functions.allocate, functions.position, functions.mma_step
    first_tiles, load_tiles, store_tiles = functions.first_tiles, functions.load_tiles, functions.store_tiles
    write_results = functions.write_results
    a_elements, b_elements = tiling.a_elements, tiling.b_elements
    width, rows, columns, pitch, depth = tiling.block.x, tiling.rows, tiling.columns, tiling.pitch, tiling.depth

    def double_buffered(
        c: Array, a: Array, b: Array, m: Index, n: Index, k: Index, lda: Index, ldb: Index, ldc: Index
    ) -> None:
        C, A, B = Matrix(c, m, n, ldc), Matrix(a, m, k, lda), Matrix(b, k, n, ldb)
        memory = allocate()
        thread = cuda.threadIdx.y * width + cuda.threadIdx.x
        row0, col0 = cuda.blockIdx.y * rows, cuda.blockIdx.x * columns
        row, col = position(thread)
        k0 = uint32(0)
        buffer = uint32(0)
        first_tiles(memory, A, B, Share(thread, Place(row0, col0), uint32(0)), k0)
        while k0 < k:
            k0 += depth
            load_tiles(memory.held, A, B, thread, Place(row0, col0), k0)
            a_base, b_base = uint64(buffer * a_elements), uint64(buffer * b_elements)
            for i in range(0, depth, steps):
                mma_step(memory, Offsets(a_base + uint64(row) + i * pitch, b_base + uint64(col) + i * columns))
            buffer = 1 - buffer
            store_tiles(memory, buffer, thread)
            cuda.syncthreads()
        write_results(C, memory.accumulators, Place(row0 + row, col0 + col))

    return tiling.program(double_buffered, case)


KERNEL = kernel_of_tiling(
    "doubleBuffered",
    tiling_of,
    program,
    summary="vectorized, with the next tiles on their way while one is used",
    results=(8, 8),
    blocks=(Block(16, 16),),
    ladder="double buffering",
)
