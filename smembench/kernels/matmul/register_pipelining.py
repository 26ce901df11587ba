"""Register pipelining: fragments are loaded one step ahead, and results are visited in serpentine order.

The order of results relieves register bank conflicts. The register file has two banks, of the even and of the odd
registers, each of which delivers one operand per cycle, while a multiply-add has three. What keeps the pipes busy is an
operand kept from the instruction before (``.reuse`` in SASS). Results are therefore visited along a row and back along
the next, or down a column and up the next, so that each multiply-add shares a factor with the one before, also where
the direction turns. ptxas reorders its input but keeps most of that. Findings: results/reference/notes/serpentine.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from llvmlite import ir

from smembench.kernels.intrinsics.vector import assemble, copy_vector, emit_copy, pointer_to, register, types
from smembench.kernels.matmul.tiling import Tiling
from smembench.kernels.numba_cuda import DeviceFunction, device, uint64

_ASSEMBLY = {"float": ("f", "fma.rn.f32"), "double": ("d", "fma.rn.f64")}
"""LLVM type to assembly constraint and instruction."""


@dataclass(frozen=True, slots=True)
class ResultOrder:
    """Order of a thread's multiply-adds: along rows or columns, B as first factor, B's fragment loaded first.

    The last two only affect which registers ptxas chooses.
    """

    by_rows: bool
    b_first: bool = False
    b_early: bool = False

    def results(self, down: int, across: int) -> Iterator[tuple[int, int]]:
        """Row and column of every result of a thread."""
        outer, inner = (down, across) if self.by_rows else (across, down)
        for i in range(outer):
            for j in reversed(range(inner)) if i % 2 else range(inner):
                yield (i, j) if self.by_rows else (j, i)


def scheduling_barrier() -> None:
    """Scheduling barrier: the compiler moves no memory access across it. ``bar.warp.sync``, a NOP in SASS.

    Without it ptxas moves loads from global memory down to shortly before their values are stored.
    """


def _lower_scheduling_barrier(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    assemble(builder, "bar.warp.sync 0xffffffff;")
    return context.get_dummy_value()


register(scheduling_barrier, lambda _context: lambda: types.void, _lower_scheduling_barrier)


@cache
def outer_product(tiling: Tiling, order: ResultOrder, part: int) -> DeviceFunction:
    """``(total, a_parts, b_parts)``: multiply-add of the outer product of the fragments in register buffer ``part``.

    Each multiply-add is volatile inline assembly, which NVVM does not reorder.
    """
    across = tiling.across
    first_a, first_b = part * tiling.down, part * across
    results = tuple(order.results(tiling.down, across))

    def product(total: Any, a_parts: Any, b_parts: Any) -> None:
        for i, j in results:
            total[i * across + j] += a_parts[first_a + i] * b_parts[first_b + j]

    def lower(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kinds = zip(signature.args, args, strict=True)
        sums, a, b = (context.make_array(kind)(context, builder, array).data for kind, array in kinds)

        def at(data: Any, index: int) -> Any:
            return builder.gep(data, [ir.Constant(ir.IntType(64), index)])

        rows = [builder.load(at(a, first_a + i)) for i in range(tiling.down)]
        columns = [builder.load(at(b, first_b + j)) for j in range(across)]
        for i, j in results:
            place = at(sums, i * across + j)
            factors = (columns[j], rows[i]) if order.b_first else (rows[i], columns[j])
            builder.store(_multiply_add(builder, *factors, builder.load(place)), place)
        return context.get_dummy_value()

    register(product, lambda _context: lambda total, a_parts, b_parts: types.void, lower, *[types.Array] * 3)
    return product


def _multiply_add(builder: Any, x: Any, y: Any, addend: Any) -> Any:
    kind = addend.type
    letter, instruction = _ASSEMBLY[str(kind)]
    function = ir.FunctionType(kind, [kind] * 3)
    constraints = f"=&{letter},{letter},{letter},0"
    assembly = ir.InlineAsm(function, f"{instruction} $0, $1, $2, $0;", constraints, side_effect=True)
    return builder.call(assembly, [x, y, addend])


@cache
def load_fragments(tiling: Tiling, order: ResultOrder, part: int) -> DeviceFunction:
    """``(a_parts, b_parts, a_tile, b_tile, at_a, at_b)``: load a step's fragments into register buffer ``part``.

    Lowered as one intrinsic, since inlining a loop per fragment takes Numba most of its compile time.
    """
    down, across, size = tiling.down, tiling.across, tiling.vector
    rows_apart, columns_apart = tiling.apart
    of_a = [(0, part * down + i * size, i * rows_apart) for i in range(down // size)]
    of_b = [(1, part * across + j * size, j * columns_apart) for j in range(across // size)]
    accesses = of_b + of_a if order.b_early else of_a + of_b

    def load(a_parts: Any, b_parts: Any, a_tile: Any, b_tile: Any, at_a: Any, at_b: Any) -> None:
        for of, place, offset in accesses:
            parts, tile, at = ((a_parts, a_tile, at_a), (b_parts, b_tile, at_b))[of]
            copy_vector(parts, place, tile, uint64(at + uint64(offset)))

    def lower(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        index = types.uint64
        for of, place, offset in accesses:
            (parts_type, tile_type), (parts, tile) = signature.args[of:4:2], args[of:4:2]
            at = builder.add(args[4 + of], ir.Constant(ir.IntType(64), offset))
            source = pointer_to(context, builder, tile_type, index, tile, at)
            target = pointer_to(context, builder, parts_type, index, parts, ir.Constant(ir.IntType(64), place))
            emit_copy(builder, target, source)
        return context.get_dummy_value()

    register(load, lambda _context: _typed_load, lower, *[types.Array] * 4, *[types.Integer] * 2)
    return load


def _typed_load(a_parts: Any, b_parts: Any, a_tile: Any, b_tile: Any, at_a: Any, at_b: Any) -> Any:
    return types.void if at_a == at_b == types.uint64 else None


@cache
def pipelined_steps(tiling: Tiling, order: ResultOrder, first: int, count: int) -> DeviceFunction:
    """``(total, a_parts, b_parts, a_tile, b_tile, at_a, at_b)``: ``count`` unrolled steps from ``first``.

    Each step loads the fragments of the next one, and multiplies those that the step before it loaded.
    """
    if count > 1:
        one = pipelined_steps(tiling, order, first, count // 2)
        other = pipelined_steps(tiling, order, first + count // 2, count - count // 2)

        def both(total: Any, a_parts: Any, b_parts: Any, a_tile: Any, b_tile: Any, at_a: Any, at_b: Any) -> None:
            one(total, a_parts, b_parts, a_tile, b_tile, at_a, at_b)
            other(total, a_parts, b_parts, a_tile, b_tile, at_a, at_b)

        return device(both)

    load = load_fragments(tiling, order, (first + 1) % 2)
    multiply = outer_product(tiling, order, first % 2)
    a_next, b_next = (first + 1) * tiling.pitch, (first + 1) * tiling.columns

    def step(total: Any, a_parts: Any, b_parts: Any, a_tile: Any, b_tile: Any, at_a: Any, at_b: Any) -> None:
        load(a_parts, b_parts, a_tile, b_tile, uint64(at_a + uint64(a_next)), uint64(at_b + uint64(b_next)))
        multiply(total, a_parts, b_parts)

    return device(step)
