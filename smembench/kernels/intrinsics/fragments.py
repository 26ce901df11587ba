"""Fragments in registers: their loads from a tile, their outer product, and a barrier for the compiler between them.

The functions are made for constant places and offsets, and each is lowered as one: inlining a loop per access takes
Numba most of its compile time. Arrays of registers are indexed by constants alone, so that they stay in registers.
"""

from __future__ import annotations

from functools import cache

from smembench.kernels.intrinsics.declaration import Ptx, changed, loaded, register, types
from smembench.kernels.intrinsics.lowering import WIDE, Code, Value
from smembench.kernels.intrinsics.vector import copy_vector, emit_copy
from smembench.kernels.numba_cuda import DeviceFunction, uint64
from smembench.kernels.types import Array, Index


@Ptx("bar.warp.sync 0xffffffff;")
def scheduling_barrier() -> None:
    """Scheduling barrier: the compiler moves no memory access across it. ``bar.warp.sync``, a NOP in SASS.

    Without it ptxas moves loads from global memory down to shortly before their values are stored.
    """


@cache
def copy_vectors(copies: tuple[tuple[int, int], ...]) -> DeviceFunction:
    """``(target, source, at)``: for each place and offset, copy the vector at ``at`` + offset to the place."""

    def copy(target: Array, source: Array, at: Index) -> None:
        for place, offset in copies:
            copy_vector(target, place, source, uint64(at + uint64(offset)))

    # LLVM IR, as copy_vector is.
    def lower(code: Code, target: Value, source: Value, at: Value) -> None:
        for place, offset in copies:
            emit_copy(code, target, place, source, Value(at.kind, code.builder.add(at.ir, WIDE(offset))))

    return register(copy, lower, types.Array, types.Array, types.uint64)


@cache
def outer_product(
    results: tuple[tuple[int, int], ...], across: int, first_a: int, first_b: int, *, b_first: bool
) -> DeviceFunction:
    """``(accumulators, a, b)``: multiply-add of two fragments' outer product, result by result in the order given.

    The fragments begin at ``first_a`` and ``first_b``; ``accumulators`` has rows of ``across``. With ``b_first``
    B's element is the first factor. Each multiply-add is volatile inline assembly, which NVVM does not reorder.
    """

    def product(accumulators: Array, a: Array, b: Array) -> None:
        for i, j in results:
            accumulators[i * across + j] += a[first_a + i] * b[first_b + j]

    factors = "$2, $1" if b_first else "$1, $2"
    text = f"fma.rn.f%bits $0, {factors}, $0;"
    instructions = (
        Ptx(text, changed(1).at(i * across + j), loaded(1).at(first_a + i), loaded(1).at(first_b + j), memory=False)
        for i, j in results
    )
    return register(product, tuple(instructions), *[types.Array] * 3)
