"""sumSequential: sumInterleaved by sequential addressing, free of conflicts.

s goes down from half of the threads, and thread t adds the pair at t: the lanes of a warp access consecutive words.
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

    def sum_sequential(out: Array, inp: Array, n: Index) -> None:
        tile = cuda.shared.array(threads, dtype)
        tid = cuda.threadIdx.y * bx + cuda.threadIdx.x
        i = cuda.blockIdx.x * threads + tid
        tile[tid] = inp[i] if i < n else zero
        cuda.syncthreads()

        s = uint32(threads // 2)
        while s > 0:
            if tid < s:
                tile[tid] += tile[tid + s]
            cuda.syncthreads()
            s //= 2

        if tid == 0:
            cuda.atomic.add(out, 0, tile[0])

    return NumbaKernel(sum_sequential, grid=covering(case.n, 1, Block(threads, 1)), block=block, zeroed=True)


KERNEL = Kernel(
    problem="reduction",
    name="sumSequential",
    kind="cuda",
    summary="a tree in shared memory free of conflicts",
    build=build,
    computes=SUM,
    tile_elements=threads_of,
    unsupported=power_of_two(1),
    ladder="sequential addresses: no bank conflicts",
)
