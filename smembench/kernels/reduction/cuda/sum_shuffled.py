"""sumShuffled: sumCoarsened with warp shuffles in place of the tree.

1. Each warp adds up its lanes' sums by shuffles, in five steps; lane 0 stores the warp's sum; barrier.
2. The first warp adds up the sums of all warps in the same way.

The tile shrinks to one element per warp, and one barrier is left.
"""

from __future__ import annotations

from smembench.kernels.common.grids import block_of, covering, threads_of
from smembench.kernels.kernel import Kernel
from smembench.kernels.numba_cuda import cuda, number
from smembench.kernels.program import NumbaKernel
from smembench.kernels.reduction.problem import SUM
from smembench.kernels.reduction.threads import power_of_two, warps_of
from smembench.kernels.reduction.warp_sum import warp_sum
from smembench.kernels.types import Array, Index
from smembench.model.case import Block, Case
from smembench.model.hardware import WARP

ITEMS = 8
"""Elements per thread."""


def build(case: Case) -> NumbaKernel:
    """Program for ``(out, inp, n)``; the tile has an element per warp."""
    block, threads, warps = block_of(case), threads_of(case), warps_of(case)
    bx, span = block.x, ITEMS * threads
    dtype = number(case.dtype)
    zero = dtype(0)
    add_lanes = warp_sum(case.dtype)

    def sum_shuffled(out: Array, inp: Array, n: Index) -> None:
        tile = cuda.shared.array(warps, dtype)
        tid = cuda.threadIdx.y * bx + cuda.threadIdx.x
        total = zero
        for first in range(0, span, threads):
            i = cuda.blockIdx.x * span + first + tid
            if i < n:
                total += inp[i]

        of_warp = add_lanes(total)
        if tid % WARP == 0:
            tile[tid // WARP] = of_warp
        cuda.syncthreads()
        if tid < WARP:
            of_block = add_lanes(tile[tid] if tid < warps else zero)
            if tid == 0:
                cuda.atomic.add(out, 0, of_block)

    return NumbaKernel(sum_shuffled, grid=covering(case.n, 1, Block(span, 1)), block=block, zeroed=True)


KERNEL = Kernel(
    problem="reduction",
    name="sumShuffled",
    kind="cuda",
    summary="warp shuffles in place of the tree",
    build=build,
    computes=SUM,
    results=(ITEMS, 1),
    tile_elements=warps_of,
    unsupported=power_of_two(WARP),
    ladder="warp shuffles: one barrier, an element of shared memory per warp",
)
