"""sumUnrolled: sumFirstAdd with the last warp's steps unrolled.

From s = 32 on only the first warp adds, so the block needs no more barriers: the other warps are done. The lanes of
that warp still have to synchronise after each step, which the lesson's first listings left to luck (CUDA C++
Programming Guide, "Independent Thread Scheduling").
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


def build(case: Case) -> NumbaKernel:
    """Program for ``(out, inp, n)``; the tile has an element per thread."""
    block, threads = block_of(case), threads_of(case)
    bx = block.x
    dtype = number(case.dtype)
    zero = dtype(0)

    def sum_unrolled(out: Array, inp: Array, n: Index) -> None:
        tile = cuda.shared.array(threads, dtype)
        tid = cuda.threadIdx.y * bx + cuda.threadIdx.x
        i = cuda.blockIdx.x * (2 * threads) + tid
        total = inp[i] if i < n else zero
        if i + threads < n:
            total += inp[i + threads]
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

    return NumbaKernel(sum_unrolled, grid=covering(case.n, 1, Block(2 * threads, 1)), block=block, zeroed=True)


KERNEL = Kernel(
    problem="reduction",
    name="sumUnrolled",
    kind="cuda",
    summary="the last warp's steps unrolled, without barriers of the block",
    build=build,
    computes=SUM,
    results=(2, 1),
    tile_elements=threads_of,
    unsupported=power_of_two(2 * WARP),
    ladder="the last warp unrolled: its steps need no barriers of the block",
)
