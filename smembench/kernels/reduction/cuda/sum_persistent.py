"""sumPersistent: sumVectorized with a persistent grid, whose blocks go over the elements in strides of the grid.

However large n is, there are ``TURNS`` times as many blocks as run at once, so only a few shuffles, barriers and
atomics per SM. With one turn all would wait for the SM that is farthest from the memory; with several that SM gets
fewer blocks than others.
"""

from __future__ import annotations

from smembench.kernels.common.grids import SM_THREADS, block_of, threads_of
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

TURNS = 4
"""Rounds of blocks: how many follow each other in the place of one."""


def build(case: Case) -> NumbaKernel:
    """Program for ``(out, inp, n)``; the tile has an element per warp."""
    block, threads, warps = block_of(case), threads_of(case), warps_of(case)
    bx, span, wide = block.x, VECTORS * threads, vector_width(case.dtype)
    dtype = number(case.dtype)
    zero = dtype(0)
    add_lanes = warp_sum(case.dtype)

    def sum_persistent(out: Array, inp: Array, n: Index) -> None:
        tile = cuda.shared.array(warps, dtype)
        tid = cuda.threadIdx.y * bx + cuda.threadIdx.x
        total = zero
        start = cuda.blockIdx.x * span
        while start < n // wide:
            for first in range(0, span, threads):
                v = start + first + tid
                if v < n // wide:
                    vector = load_vector(inp, v * wide)
                    for lane in range(wide):
                        total += vector[lane]
            start += cuda.gridDim.x * span
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

    blocks, resident = blocks_of_vectors(case, threads), SM_THREADS // threads
    return NumbaKernel(
        sum_persistent,
        grid=(blocks, 1),
        block=block,
        launch_bounds=(threads, resident),
        zeroed=True,
        persistent_blocks=lambda multiprocessors: min(blocks, TURNS * resident * multiprocessors),
    )


KERNEL = Kernel(
    problem="reduction",
    name="sumPersistent",
    kind="cuda",
    summary="a grid of the GPU's size goes over all elements",
    build=build,
    computes=SUM,
    results=(16, 1),
    tile_elements=warps_of,
    unsupported=power_of_two(WARP),
    ladder="a grid-stride loop: as few blocks as keep the GPU busy",
)
