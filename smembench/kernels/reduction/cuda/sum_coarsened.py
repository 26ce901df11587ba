"""sumCoarsened: sumUnrolled with several elements per thread.

A thread adds ``ITEMS`` elements, a block's width apart, so that the accesses of a warp stay coalesced. One tree, with
its barriers and its atomic, serves more elements, and more loads are in flight.
"""

from __future__ import annotations

from smembench.kernels.common.grids import block_of, covering, threads_of
from smembench.kernels.kernel import Kernel
from smembench.kernels.numba_cuda import cuda, number, uint32
from smembench.kernels.program import NumbaKernel
from smembench.kernels.reduction.problem import SUM
from smembench.kernels.reduction.threads import power_of_two
from smembench.kernels.types import Array, Index
from smembench.model.case import Block, Case
from smembench.model.hardware import WARP

ITEMS = 8
"""Elements per thread."""


def build(case: Case) -> NumbaKernel:
    """Program for ``(out, inp, n)``; the tile has an element per thread."""
    block, threads = block_of(case), threads_of(case)
    bx, span = block.x, ITEMS * threads
    dtype = number(case.dtype)
    zero = dtype(0)

    def sum_coarsened(out: Array, inp: Array, n: Index) -> None:
        tile = cuda.shared.array(threads, dtype)
        tid = cuda.threadIdx.y * bx + cuda.threadIdx.x
        total = zero
        for first in range(0, span, threads):
            i = cuda.blockIdx.x * span + first + tid
            if i < n:
                total += inp[i]
        tile[tid] = total
        cuda.syncthreads()

        s = uint32(threads // 2)
        while s > WARP:
            if tid < s:
                tile[tid] += tile[tid + s]
            cuda.syncthreads()
            s //= 2

        if tid < WARP:
            for lanes in (32, 16, 8, 4, 2, 1):
                if tid < lanes:
                    tile[tid] += tile[tid + lanes]
                cuda.syncwarp()

        if tid == 0:
            cuda.atomic.add(out, 0, tile[0])

    return NumbaKernel(sum_coarsened, grid=covering(case.n, 1, Block(span, 1)), block=block, zeroed=True)


KERNEL = Kernel(
    problem="reduction",
    name="sumCoarsened",
    kind="cuda",
    summary=f"{ITEMS} elements per thread",
    build=build,
    computes=SUM,
    results=(ITEMS, 1),
    tile_elements=threads_of,
    unsupported=power_of_two(2 * WARP),
    ladder=f"{ITEMS} elements per thread: fewer trees, more loads in flight",
)
