"""globalUniform: a warp reads one coefficient at a time from global memory, through the L1 cache.

All lanes ask for the same four or eight bytes: one sector per request, whose address every lane computes.
"""

from __future__ import annotations

from smembench.kernels.common.grids import block_of, threads_of
from smembench.kernels.constant.problem import RADIUS, TAPS
from smembench.kernels.constant.stencil import UNIFORM, few_threads, grid_of, tile_elements
from smembench.kernels.kernel import Kernel
from smembench.kernels.numba_cuda import cuda, number, uint32
from smembench.kernels.program import NumbaKernel
from smembench.kernels.types import Array, Index
from smembench.model.case import Case


def build(case: Case, lanes: int = UNIFORM) -> NumbaKernel:
    """Program for ``(out, inp, coefficients, n)``; ``lanes`` neighbouring lanes begin with the same tap."""
    block = block_of(case)
    bx, threads = block.x, threads_of(case)
    width = tile_elements(case)
    dtype = number(case.dtype)
    zero = dtype(0)

    def global_uniform(out: Array, inp: Array, coefficients: Array, n: Index) -> None:
        tile = cuda.shared.array(width, dtype)
        t = cuda.threadIdx.y * bx + cuda.threadIdx.x
        i = cuda.blockIdx.x * threads + t
        end = n + 2 * RADIUS
        if i < end:
            tile[t] = inp[i]
        if t < 2 * RADIUS and i + threads < end:
            tile[t + threads] = inp[i + threads]
        cuda.syncthreads()

        if i < n:
            total = zero
            tap = TAPS - t // lanes % TAPS
            for _ in range(TAPS):
                if tap == TAPS:
                    tap = uint32(0)
                total += coefficients[tap] * tile[t + tap]
                tap = tap + 1
            out[i] = total

    return NumbaKernel(global_uniform, grid=grid_of(case), block=block)


KERNEL = Kernel(
    problem="constant",
    name="globalUniform",
    kind="cuda",
    summary="1D stencil, a warp reads the same coefficient from global memory",
    build=build,
    tile_elements=tile_elements,
    unsupported=few_threads,
)
