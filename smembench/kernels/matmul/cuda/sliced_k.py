"""slicedK: interleaved with two groups of threads that compute the same tile, each from half of k.

What changes: of every 16 columns of A and rows of B that a block loads (8 in float64), one half of its threads takes
the first half and the other the last. In the end one half hands its sums to the other through shared memory. A block
of 16 × 16 threads computes 64 × 128 of C, each pair of threads 8 × 8.

Relieves waiting where C has few tiles: at n = 1024 there are 128 tiles of 64 × 128 for the 132 SMs of an H200, which
with 128 threads leaves each scheduler one warp. That issues nothing while it waits at a barrier or for a fragment; two
do. Smaller tiles would give as many warps, but load more for each multiplication. Barriers are half as many as well; in
float32 the stores into the tile of A now meet 2-way conflicts, as a warp's go down four columns at once.
Predicted: towards what interleaved reaches where an SM has several blocks; nothing at large n, where it has them.
Found on an H200 (2026-11-20): 38.9 TFLOP/s at 1024, 1.10 times interleaved and 1.021 of cuBLAS; 0.93 of interleaved at
2048 and 4096.
"""

from __future__ import annotations

from typing import Any

from smembench.axes import Block
from smembench.case import Case
from smembench.cuda_api import cuda, number, uint32, uint64
from smembench.kernels.grids import block_of
from smembench.kernels.matmul.pieces import pieces
from smembench.kernels.matmul.tiling import Tiling
from smembench.kernels.registry import Kernel, Program
from smembench.kernels.vector import ALIGNMENT, load_vector, store_vector
from smembench.problems.base import ITEMSIZE

SLICES = 2
SLICE_BYTES = 32
"""Of a row of A, for each half: 8 float32, or 4 float64, since tiles of 8 would not fit into 48 KiB."""


def tiling_of(case: Case) -> Tiling:
    """8 × 8 results a thread of either half, in warp tiles of 32 × 64 with interleaved lanes."""
    depth = SLICES * SLICE_BYTES // ITEMSIZE[case.dtype]
    return Tiling(block_of(case), case.dtype, depth=depth, warps=True, interleaved=True, slices=SLICES)


def program(case: Case, tiling: Tiling) -> Program:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)`` on a tiling of two slices, each of them written out."""
    steps = tiling.depth // SLICES
    position, load_a, load_b, store_a, store_b, multiply, write = pieces(case, tiling, steps)
    dtype = number(case.dtype)
    zero = dtype(0)
    width, rows, columns, depth, vector = tiling.block.x, tiling.rows, tiling.columns, tiling.depth, tiling.vector
    down, across, results = tiling.down, tiling.across, tiling.down * tiling.across
    a_elements, b_elements, a_share, b_share = tiling.a_elements, tiling.b_elements, tiling.a_share, tiling.b_share
    a_both, b_both = 2 * a_elements, 2 * b_elements
    a_slice, b_slice = steps * tiling.pitch, steps * columns
    half = tiling.threads // SLICES

    def sliced_k(c: Any, a: Any, b: Any, m: Any, n: Any, k: Any, lda: Any, ldb: Any, ldc: Any) -> None:
        a_tile = cuda.shared.array(a_both, dtype, alignment=ALIGNMENT)
        b_tile = cuda.shared.array(b_both, dtype, alignment=ALIGNMENT)
        total = cuda.local.array(results, dtype, alignment=ALIGNMENT)
        a_part = cuda.local.array(down, dtype, alignment=ALIGNMENT)
        b_part = cuda.local.array(across, dtype, alignment=ALIGNMENT)
        a_held = cuda.local.array(a_share, dtype, alignment=ALIGNMENT)
        b_held = cuda.local.array(b_share, dtype, alignment=ALIGNMENT)
        thread = uint32(uint32(cuda.threadIdx.y) * uint32(width) + uint32(cuda.threadIdx.x))
        member = uint32(thread % uint32(half))
        part = uint32(thread // uint32(half))
        row0 = uint32(uint32(cuda.blockIdx.y) * uint32(rows))
        col0 = uint32(uint32(cuda.blockIdx.x) * uint32(columns))
        row, col = position(member)
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
            k0 = uint32(k0 + uint32(depth))
            load_a(a_held, a, thread, row0, k0, m, k, lda)
            load_b(b_held, b, thread, col0, k0, n, k, ldb)
            a_base = uint64(uint32(buffer * uint32(a_elements)))
            b_base = uint64(uint32(buffer * uint32(b_elements)))
            at_a = uint64(a_base + uint64(uint32(part * uint32(a_slice) + row)))
            at_b = uint64(b_base + uint64(uint32(part * uint32(b_slice) + col)))
            multiply(total, a_part, b_part, a_tile, b_tile, at_a, at_b)
            buffer = uint32(uint32(1) - buffer)
            store_a(a_tile, uint64(uint32(buffer * uint32(a_elements))), a_held, thread)
            store_b(b_tile, uint64(uint32(buffer * uint32(b_elements))), b_held, thread)
            cuda.syncthreads()
        # A row of results at a time: the tile of B is where they cross over.
        for i in range(down):
            cuda.syncthreads()
            if part > uint32(0):
                for j in range(0, across, vector):
                    at = uint32(uint32(j * half) + member * uint32(vector))
                    store_vector(b_tile, at, load_vector(total, i * across + j))
            cuda.syncthreads()
            if part == uint32(0):
                for j in range(0, across, vector):
                    at = uint32(uint32(j * half) + member * uint32(vector))
                    store_vector(b_part, j, load_vector(b_tile, at))
                for j in range(across):
                    total[i * across + j] += b_part[j]
        if part == uint32(0):
            write(c, total, uint32(row0 + row), uint32(col0 + col), m, n, ldc)

    return tiling.program(sliced_k, case)


def build(case: Case) -> Program:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)``."""
    return program(case, tiling_of(case))


def tile_elements(case: Case) -> int:
    """Two tiles of A, padded, and two of B."""
    return 2 * tiling_of(case).elements


def refuse(case: Case) -> str | None:
    """Why the block does not fit the tiles, or None."""
    return tiling_of(case).refuse(case.kernel)


KERNEL = Kernel(
    problem="matmul",
    name="slicedK",
    kind="cuda",
    step=120,
    summary="interleaved, two groups of threads with half of k each, for products of few tiles",
    build=build,
    results=(8, 4),
    default_blocks=(Block(16, 16),),
    tile_elements=tile_elements,
    refuse=refuse,
    strided=True,
    standard=False,
    ladder="k in two slices",
)
