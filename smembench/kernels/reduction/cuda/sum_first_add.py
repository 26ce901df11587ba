"""sumFirstAdd: sumSequential whose threads add two elements as they load them.

In the first step of the tree half of the threads would be idle. Here half as many blocks do that step during the load,
with all of their threads.
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


def build(case: Case) -> NumbaKernel:
    """Program for ``(out, inp, n)``; the tile has an element per thread."""
    block, threads = block_of(case), threads_of(case)
    bx = block.x
    dtype = number(case.dtype)
    zero = dtype(0)

    def sum_first_add(out: Array, inp: Array, n: Index) -> None:
        tile = cuda.shared.array(threads, dtype)
        tid = cuda.threadIdx.y * bx + cuda.threadIdx.x
        i = cuda.blockIdx.x * (2 * threads) + tid
        total = inp[i] if i < n else zero
        if i + threads < n:
            total += inp[i + threads]
        tile[tid] = total
        cuda.syncthreads()

        s = uint32(threads // 2)
        while s > 0:
            if tid < s:
                tile[tid] += tile[tid + s]
            cuda.syncthreads()
            s //= 2

        if tid == 0:
            cuda.atomic.add(out, 0, tile[0])

    return NumbaKernel(sum_first_add, grid=covering(case.n, 1, Block(2 * threads, 1)), block=block, zeroed=True)


KERNEL = Kernel(
    problem="reduction",
    name="sumFirstAdd",
    kind="cuda",
    summary="two elements per thread, added as they are loaded",
    build=build,
    computes=SUM,
    results=(2, 1),
    tile_elements=threads_of,
    unsupported=power_of_two(1),
    ladder="the first addition during the load: half the blocks",
)
