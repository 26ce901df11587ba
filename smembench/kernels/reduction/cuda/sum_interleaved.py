"""sumInterleaved: sumDivergent whose first threads do all the adding, with bank conflicts.

Thread t adds the pair at 2·s·t, where in sumDivergent every thread adds whose number 2·s divides. The lanes of a warp
now do the same, and warps without work only wait. But the elements of neighbouring lanes are 2·s apart: a 2-way
conflict at s = 1, then 4-way and 8-way, and 32-way with 1024 threads.
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

    def sum_interleaved(out: Array, inp: Array, n: Index) -> None:
        tile = cuda.shared.array(threads, dtype)
        tid = cuda.threadIdx.y * bx + cuda.threadIdx.x
        i = cuda.blockIdx.x * threads + tid
        tile[tid] = inp[i] if i < n else zero
        cuda.syncthreads()

        s = uint32(1)
        while s < threads:
            index = 2 * s * tid
            if index < threads:
                tile[index] += tile[index + s]
            cuda.syncthreads()
            s *= 2

        if tid == 0:
            cuda.atomic.add(out, 0, tile[0])

    return NumbaKernel(sum_interleaved, grid=covering(case.n, 1, Block(threads, 1)), block=block, zeroed=True)


KERNEL = Kernel(
    problem="reduction",
    name="sumInterleaved",
    kind="cuda",
    summary="a tree in shared memory whose first threads add, with bank conflicts",
    build=build,
    computes=SUM,
    tile_elements=threads_of,
    unsupported=power_of_two(1),
    ladder="the first threads add: no divergence, but bank conflicts",
)
