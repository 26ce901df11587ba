"""sumVectorized: sumShuffled with 128-bit loads.

A thread adds up ``VECTORS`` vectors of 16 bytes, a block's width of vectors apart; block 0 also adds the elements after
the last whole vector. The loads do not wait for each other: a thread has 64 bytes in flight, where eight loads of one
element had 32.
"""

from __future__ import annotations

from smembench.kernels.common.grids import block_of, threads_of
from smembench.kernels.intrinsics.vector import load_vector, vector_width
from smembench.kernels.kernel import Kernel
from smembench.kernels.numba_cuda import cuda, number
from smembench.kernels.program import NumbaKernel
from smembench.kernels.reduction.problem import SUM
from smembench.kernels.reduction.threads import VECTORS, blocks_of_vectors, power_of_two, warps_of
from smembench.kernels.reduction.warp_sum import warp_sum
from smembench.kernels.types import Array, Index
from smembench.model.case import Case
from smembench.model.hardware import WARP


def build(case: Case) -> NumbaKernel:
    """Program for ``(out, inp, n)``; the tile has an element per warp."""
    block, threads, warps = block_of(case), threads_of(case), warps_of(case)
    bx, span, wide = block.x, VECTORS * threads, vector_width(case.dtype)
    dtype = number(case.dtype)
    zero = dtype(0)
    add_lanes = warp_sum(case.dtype)

    def sum_vectorized(out: Array, inp: Array, n: Index) -> None:
        tile = cuda.shared.array(warps, dtype)
        tid = cuda.threadIdx.y * bx + cuda.threadIdx.x
        total = zero
        for first in range(0, span, threads):
            v = cuda.blockIdx.x * span + first + tid
            if v < n // wide:
                vector = load_vector(inp, v * wide)
                for lane in range(wide):
                    total += vector[lane]
        if cuda.blockIdx.x == 0 and tid < n % wide:
            total += inp[n - 1 - tid]

        of_warp = add_lanes(total)
        if tid % WARP == 0:
            tile[tid // WARP] = of_warp
        cuda.syncthreads()
        if tid < WARP:
            of_block = add_lanes(tile[tid] if tid < warps else zero)
            if tid == 0:
                cuda.atomic.add(out, 0, of_block)

    grid = blocks_of_vectors(case, threads), 1
    return NumbaKernel(sum_vectorized, grid=grid, block=block, zeroed=True)


KERNEL = Kernel(
    problem="reduction",
    name="sumVectorized",
    kind="cuda",
    summary="128-bit loads",
    build=build,
    computes=SUM,
    results=(16, 1),
    tile_elements=warps_of,
    unsupported=power_of_two(WARP),
    ladder="128-bit loads: twice as many bytes in flight by half the loads",
)
