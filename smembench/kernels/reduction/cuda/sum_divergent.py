"""sumDivergent: a tree in shared memory by interleaved addressing, the first kernel of the classic lesson.

1. Each thread of a block loads an element into the tile; barrier.
2. For s = 1, 2, 4 …: of each pair of elements s apart, the first becomes their sum; barrier.
3. Thread 0 adds the block's sum to the output by an atomic; the output is zeroed before the launch.

At s = 1 every second lane of a warp adds, then every fourth, and at s = 16 one: warps diverge, and all of them go
through these steps.
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

    def sum_divergent(out: Array, inp: Array, n: Index) -> None:
        tile = cuda.shared.array(threads, dtype)
        tid = cuda.threadIdx.y * bx + cuda.threadIdx.x
        i = cuda.blockIdx.x * threads + tid
        tile[tid] = inp[i] if i < n else zero
        cuda.syncthreads()

        s = uint32(1)
        while s < threads:
            if tid % (2 * s) == 0:
                tile[tid] += tile[tid + s]
            cuda.syncthreads()
            s *= 2

        if tid == 0:
            cuda.atomic.add(out, 0, tile[0])

    return NumbaKernel(sum_divergent, grid=covering(case.n, 1, Block(threads, 1)), block=block, zeroed=True)


KERNEL = Kernel(
    problem="reduction",
    name="sumDivergent",
    kind="cuda",
    summary="a tree in shared memory whose warps diverge",
    build=build,
    computes=SUM,
    tile_elements=threads_of,
    unsupported=power_of_two(1),
    ladder="a tree in shared memory, interleaved: warps diverge",
)
