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

from typing import Any

from smembench.kernels.common.grids import block_of
from smembench.kernels.intrinsics.vector import ALIGNMENT
from smembench.kernels.matmul.tile_steps import tile_steps
from smembench.kernels.matmul.tiling import Tiling
from smembench.kernels.numba_cuda import cuda, number, uint32, uint64
from smembench.kernels.program import NumbaKernel
from smembench.kernels.registry import Kernel
from smembench.model.case import Block, Case


def tiling_of(case: Case) -> Tiling:
    """8 × 8 results a thread, threads in the tile as in the block."""
    return Tiling(block_of(case), case.dtype)


def build(case: Case) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)``."""
    tiling = tiling_of(case)
    position, load_a, load_b, store_a, store_b, multiply, write = tile_steps(case, tiling)
    dtype = number(case.dtype)
    zero = dtype(0)
    width, rows, columns, pitch, depth = tiling.block.x, tiling.rows, tiling.columns, tiling.pitch, tiling.depth
    down, across, results = tiling.down, tiling.across, tiling.down * tiling.across
    a_elements, b_elements, a_share, b_share = tiling.a_elements, tiling.b_elements, tiling.a_share, tiling.b_share

    def vectorized(c: Any, a: Any, b: Any, m: Any, n: Any, k: Any, lda: Any, ldb: Any, ldc: Any) -> None:
        a_tile = cuda.shared.array(a_elements, dtype, alignment=ALIGNMENT)
        b_tile = cuda.shared.array(b_elements, dtype, alignment=ALIGNMENT)
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
        while k0 < k:
            load_a(a_held, a, thread, row0, k0, m, k, lda)
            load_b(b_held, b, thread, col0, k0, n, k, ldb)
            store_a(a_tile, uint64(0), a_held, thread)
            store_b(b_tile, uint64(0), b_held, thread)
            cuda.syncthreads()
            for i in range(depth):
                at_a = uint64(row) + i * pitch
                at_b = uint64(col) + i * columns
                multiply(total, a_part, b_part, a_tile, b_tile, at_a, at_b)
            cuda.syncthreads()
            k0 = k0 + depth
        write(c, total, row0 + row, col0 + col, m, n, ldc)

    return tiling.program(vectorized, case)


def tile_elements(case: Case) -> int:
    """A tile of A, padded, and one of B."""
    return tiling_of(case).elements


def unsupported(case: Case) -> str | None:
    """Why the block does not fit the tiles, or None."""
    return tiling_of(case).unsupported(case.kernel)


KERNEL = Kernel(
    problem="matmul",
    name="vectorized",
    kind="cuda",
    summary="tiled2D with 128-bit accesses, the tile of A transposed",
    build=build,
    results=(8, 8),
    default_blocks=(Block(16, 16),),
    tile_elements=tile_elements,
    unsupported=unsupported,
    strided=True,
    standard=False,
    ladder="128-bit accesses",
)
