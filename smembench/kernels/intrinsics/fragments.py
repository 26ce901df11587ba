"""Fragments in registers: their loads from a tile, their outer product, and a barrier for the compiler between them.

The functions are made for constant places and offsets, and each is lowered as one: inlining a loop per access takes
Numba most of its compile time. Arrays of registers are indexed by constants alone, so that they stay in registers.
"""

from __future__ import annotations

from functools import cache

from llvmlite import ir

from smembench.kernels.intrinsics.lowering import Context, Signature, Type, Values, assemble, register, types
from smembench.kernels.intrinsics.vector import copy_vector, emit_copy, pointer_to
from smembench.kernels.numba_cuda import DeviceFunction, uint64
from smembench.kernels.types import Array, Index

_ASSEMBLY = {"float": ("f", "fma.rn.f32"), "double": ("d", "fma.rn.f64")}
"""LLVM type to assembly constraint and instruction."""


def scheduling_barrier() -> None:
    """Scheduling barrier: the compiler moves no memory access across it. ``bar.warp.sync``, a NOP in SASS.

    Without it ptxas moves loads from global memory down to shortly before their values are stored.
    """


def _lower_scheduling_barrier(context: Context, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
    assemble(builder, "bar.warp.sync 0xffffffff;")
    return context.get_dummy_value()


register(scheduling_barrier, lambda _context: lambda: types.void, _lower_scheduling_barrier)


@cache
def copy_vectors(copies: tuple[tuple[int, int], ...]) -> DeviceFunction:
    """``(target, source, at)``: for each place and offset, copy the vector at ``at`` + offset to the place."""

    def copy(target: Array, source: Array, at: Index) -> None:
        for place, offset in copies:
            copy_vector(target, place, source, uint64(at + uint64(offset)))

    def lower(context: Context, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
        (target_type, source_type, index), (target, source, at) = signature.args, args
        for place, offset in copies:
            wide = builder.add(at, ir.Constant(ir.IntType(64), offset))
            begin = pointer_to(context, builder, source_type, index, source, wide)
            end = pointer_to(context, builder, target_type, index, target, ir.Constant(ir.IntType(64), place))
            emit_copy(builder, end, begin)
        return context.get_dummy_value()

    def typer(target: Type, source: Type, at: Type) -> Type | None:
        return types.void if at == types.uint64 else None

    register(copy, lambda _context: typer, lower, types.Array, types.Array, types.Integer)
    return copy


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

    def lower(context: Context, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
        kinds = zip(signature.args, args, strict=True)
        sums, a, b = (context.make_array(kind)(context, builder, array).data for kind, array in kinds)

        def at(data: ir.Value, index: int) -> ir.Value:
            return builder.gep(data, [ir.Constant(ir.IntType(64), index)])

        rows = [builder.load(at(a, first_a + i)) for i in range(1 + max(i for i, _ in results))]
        columns = [builder.load(at(b, first_b + j)) for j in range(across)]
        for i, j in results:
            place = at(sums, i * across + j)
            factors = (columns[j], rows[i]) if b_first else (rows[i], columns[j])
            builder.store(_multiply_add(builder, *factors, builder.load(place)), place)
        return context.get_dummy_value()

    register(product, lambda _context: lambda accumulators, a, b: types.void, lower, *[types.Array] * 3)
    return product


def _multiply_add(builder: ir.IRBuilder, x: ir.Value, y: ir.Value, addend: ir.Value) -> ir.Value:
    kind = addend.type
    letter, instruction = _ASSEMBLY[str(kind)]
    function = ir.FunctionType(kind, [kind] * 3)
    constraints = f"=&{letter},{letter},{letter},0"
    assembly = ir.InlineAsm(function, f"{instruction} $0, $1, $2, $0;", constraints, side_effect=True)
    return builder.call(assembly, [x, y, addend])
