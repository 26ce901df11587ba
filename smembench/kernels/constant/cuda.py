"""The 1D stencil by where its coefficients lie: constant, global and shared memory.

Of each there is a kernel in which a warp reads one coefficient at a time (Uniform), and the same kernel with lanes that
begin with different taps (Diverging).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from smembench.kernels.common.grids import block_of, threads_of
from smembench.kernels.constant.problem import RADIUS, TAPS
from smembench.kernels.constant.stencil import (
    COEFFICIENTS,
    DIVERGING,
    UNIFORM,
    few_threads,
    grid_of,
    tile_elements,
)
from smembench.kernels.intrinsics.constant_memory import constant_array
from smembench.kernels.kernel import Kernel
from smembench.kernels.numba_cuda import cuda, number, uint32
from smembench.kernels.program import NumbaKernel
from smembench.kernels.types import Array, Index
from smembench.model.case import Case


def constant(case: Case, lanes: int) -> NumbaKernel:
    """Program for ``(out, inp, coefficients, n)``; ``lanes`` neighbouring lanes begin with the same tap.

    The constant cache serves one address per warp at a time: a broadcast is what it is made for, and a request is split
    into as many as it has different addresses, with diverging lanes nine. As in the documents the coefficients are a
    variable of the module, which the host fills before the launch: ``__constant__`` and cudaMemcpyToSymbol in CUDA C.
    """
    block = block_of(case)
    bx, threads = block.x, threads_of(case)
    width = tile_elements(case)
    dtype = number(case.dtype)
    zero = dtype(0)

    def constant_uniform(out: Array, inp: Array, coefficients: Array, n: Index) -> None:
        tile = cuda.shared.array(width, dtype)
        table = constant_array(coefficients, COEFFICIENTS, TAPS)
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
                total += table[tap] * tile[t + tap]
                tap = tap + 1
            out[i] = total

    return NumbaKernel(constant_uniform, grid=grid_of(case), block=block, constant=COEFFICIENTS)


def through_l1(case: Case, lanes: int) -> NumbaKernel:
    """The same with the coefficients in global memory, through the L1 cache.

    Uniform lanes ask for the same four or eight bytes: one sector per request, whose address every lane computes. The
    nine coefficients of diverging lanes lie in two or three sectors, which one request fetches.
    """
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


def shared(case: Case, lanes: int) -> NumbaKernel:
    """The same with the coefficients in shared memory, to which a block copies them once.

    Their reads share the banks with those of the tile. The nine coefficients of diverging lanes lie in different banks:
    no conflict, and no more time than a broadcast.
    """
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


def with_coefficients(case: Case) -> int:
    """Elements of the tile and the coefficients."""
    return tile_elements(case) + TAPS


def _kernels(
    memory: str, build: Callable[..., NumbaKernel], elements: Callable[[Case], int] = tile_elements
) -> tuple[Kernel, Kernel]:
    uniform = Kernel(
        problem="constant",
        name=f"{memory}Uniform",
        kind="cuda",
        summary=f"1D stencil, a warp reads the same coefficient from {memory} memory",
        build=partial(build, lanes=UNIFORM),
        tile_elements=elements,
        unsupported=few_threads,
    )
    diverging = replace(
        uniform,
        name=f"{memory}Diverging",
        summary=f"1D stencil, the lanes of a warp read different coefficients from {memory} memory",
        build=partial(build, lanes=DIVERGING),
    )
    return uniform, diverging


KERNELS = (
    *_kernels("constant", constant),
    *_kernels("global", through_l1),
    *_kernels("shared", shared, with_coefficients),
)
