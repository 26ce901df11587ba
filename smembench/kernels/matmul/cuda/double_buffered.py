"""doubleBuffered: vectorized with two buffers per tile: the next tiles are loaded while the current ones are used.

Per tile along k:

1. Issue the global loads of the next tiles, into registers.
2. Multiply from the current buffer.
3. Store the registers into the other buffer, then one barrier. A thread that is a tile ahead writes only where the
   others have finished reading.

It relieves latency: nothing waits for global memory while a tile's multiplications take longer than a load. With 8
warps of 512 multiplications each on 4 schedulers they take 1024 clocks. The last iteration loads tiles of zeros that
are never read: with these loads in a branch, ptxas (12.8, 13.0, 13.5) moves those of 16 × 16 threads behind the
multiplications. Predictions: results/reference/notes/double_buffered.md.
"""

from __future__ import annotations

from typing import Any

from smembench.kernels.intrinsics.vector import ALIGNMENT
from smembench.kernels.matmul.cuda.vectorized import tiling_of, unsupported
from smembench.kernels.matmul.tile_steps import tile_steps
from smembench.kernels.matmul.tiling import Tiling
from smembench.kernels.numba_cuda import cuda, number, uint32, uint64
from smembench.kernels.program import NumbaKernel
from smembench.kernels.registry import Kernel
from smembench.model.case import Block, Case


def program(case: Case, tiling: Tiling, steps: int = 1) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)`` on a tiling, with ``steps`` along k written out."""
    position, load_a, load_b, store_a, store_b, multiply, write = tile_steps(case, tiling, steps)
    dtype = number(case.dtype)
    zero = dtype(0)
    width, rows, columns, pitch, depth = tiling.block.x, tiling.rows, tiling.columns, tiling.pitch, tiling.depth
    down, across, results = tiling.down, tiling.across, tiling.down * tiling.across
    a_elements, b_elements, a_share, b_share = tiling.a_elements, tiling.b_elements, tiling.a_share, tiling.b_share
    a_both, b_both = 2 * a_elements, 2 * b_elements

    def double_buffered(c: Any, a: Any, b: Any, m: Any, n: Any, k: Any, lda: Any, ldb: Any, ldc: Any) -> None:
        a_tile = cuda.shared.array(a_both, dtype, alignment=ALIGNMENT)
        b_tile = cuda.shared.array(b_both, dtype, alignment=ALIGNMENT)
        total = cuda.local.array(results, dtype, alignment=ALIGNMENT)
        a_part = cuda.local.array(down, dtype, alignment=ALIGNMENT)
        b_part = cuda.local.array(across, dtype, alignment=ALIGNMENT)
        a_held = cuda.local.array(a_share, dtype, alignment=ALIGNMENT)
        b_held = cuda.local.array(b_share, dtype, alignment=ALIGNMENT)
        thread = cuda.threadIdx.y * width + cuda.threadIdx.x
        row0 = cuda.blockIdx.y * rows
        col0 = cuda.blockIdx.x * columns
        row, col = position(thread)
        for i in range(results):
            total[i] = zero
        k0 = uint32(0)
        buffer = uint32(0)
        load_a(a_held, a, thread, row0, k0, m, k, lda)
        load_b(b_held, b, thread, col0, k0, n, k, ldb)
        store_a(a_tile, uint64(0), a_held, thread)
        store_b(b_tile, uint64(0), b_held, thread)
        cuda.syncthreads()
        while k0 < k:
            k0 = k0 + depth
            load_a(a_held, a, thread, row0, k0, m, k, lda)
            load_b(b_held, b, thread, col0, k0, n, k, ldb)
            a_base = uint64(buffer * a_elements)
            b_base = uint64(buffer * b_elements)
            for i in range(0, depth, steps):
                at_a = a_base + uint64(row) + i * pitch
                at_b = b_base + uint64(col) + i * columns
                multiply(total, a_part, b_part, a_tile, b_tile, at_a, at_b)
            buffer = 1 - buffer
            store_a(a_tile, uint64(buffer * a_elements), a_held, thread)
            store_b(b_tile, uint64(buffer * b_elements), b_held, thread)
            cuda.syncthreads()
        write(c, total, row0 + row, col0 + col, m, n, ldc)

    return tiling.program(double_buffered, case)


def build(case: Case) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)``."""
    return program(case, tiling_of(case))


def tile_elements(case: Case) -> int:
    """Two tiles of A, padded, and two of B."""
    return 2 * tiling_of(case).elements


KERNEL = Kernel(
    problem="matmul",
    name="doubleBuffered",
    kind="cuda",
    summary="vectorized, with the next tiles on their way while one is used",
    build=build,
    results=(8, 8),
    default_blocks=(Block(16, 16),),
    tile_elements=tile_elements,
    unsupported=unsupported,
    strided=True,
    standard=False,
    ladder="double buffering",
)
