"""sharedUniform: a warp reads one coefficient at a time from shared memory, a broadcast.

A block copies the coefficients from global memory once. Their reads then share the banks with those of the tile.
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

    def shared_uniform(out: Array, inp: Array, coefficients: Array, n: Index) -> None:
        tile = cuda.shared.array(width, dtype)
        table = cuda.shared.array(TAPS, dtype)
        t = cuda.threadIdx.y * bx + cuda.threadIdx.x
        i = cuda.blockIdx.x * threads + t
        end = n + 2 * RADIUS
        if i < end:
            tile[t] = inp[i]
        if t < 2 * RADIUS and i + threads < end:
            tile[t + threads] = inp[i + threads]
        if t < TAPS:
            table[t] = coefficients[t]
        cuda.syncthreads()

        if i < n:
            total = zero
            tap = TAPS - t // lanes % TAPS
            for _ in range(TAPS):
                if tap == TAPS:
                    tap = uint32(0)
                total += table[tap] * tile[t + tap]
                tap = tap + 1
            out[i] = total

    return NumbaKernel(shared_uniform, grid=grid_of(case), block=block)


def elements(case: Case) -> int:
    """The tile and the coefficients."""
    return tile_elements(case) + TAPS


KERNEL = Kernel(
    problem="constant",
    name="sharedUniform",
    kind="cuda",
    summary="1D stencil, a warp reads the same coefficient from shared memory",
    build=build,
    tile_elements=elements,
    unsupported=few_threads,
)
