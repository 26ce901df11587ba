"""Products of rows of A by a column of B straight from global memory, all loads before all multiplications.

Lowered as one function: NVVM would unroll a loop less, and wait in each iteration.
"""

from __future__ import annotations

from functools import cache

from llvmlite import ir

from smembench.kernels.intrinsics.lowering import Context, Signature, Type, Values, register, types
from smembench.kernels.matmul.structs import Matrix, Place
from smembench.kernels.numba_cuda import DeviceFunction, uint64
from smembench.kernels.types import Array, Index


@cache
def row_products(rows: int, count: int, apart: int, *, within: bool) -> DeviceFunction:
    """``(sums, A, B, first, at)``: add ``rows`` rows of A from ``first``, by its column of B, to as many sums.

    They are multiplied at ``count`` positions along k, from ``at`` and ``apart`` from each other. A row beyond the last
    is the last. With ``within`` all positions lie before k. Otherwise those beyond add nothing: compiled, they load the
    last position again and multiply it by zero, where Python skips them, so that a trace counts what grows with k.
    """

    def add(sums: Array, A: Matrix, B: Matrix, first: Place, at: Index) -> None:
        for j in range(count):
            place = at + j * apart
            if within or place < uint64(A.columns):
                factor = B.elements[place * uint64(B.stride) + uint64(first.col)]
                for i in range(rows):
                    start = min(first.row + i, A.rows - 1) * A.stride
                    sums[i] += A.elements[uint64(start) + place] * factor

    def lower(context: Context, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
        wide, narrow = ir.IntType(64), ir.IntType(32)
        sums_type, a_type, b_type, *_ = signature.args
        (a_array, a_rows, k, lda), (b_array, _, _, ldb) = _fields(builder, args[1]), _fields(builder, args[2])
        row, col = _fields(builder, args[3])
        at = args[4]
        sums, a, b = (
            context.make_array(kind)(context, builder, array).data
            for kind, array in ((sums_type, args[0]), (a_type[0], a_array), (b_type[0], b_array))
        )

        def least(x: ir.Value, y: ir.Value) -> ir.Value:
            return builder.select(builder.icmp_unsigned("<", x, y), x, y)

        def widened(x: ir.Value) -> ir.Value:
            return builder.zext(x, wide)

        last_row = builder.sub(a_rows, ir.Constant(narrow, 1))
        below = [least(builder.add(row, ir.Constant(narrow, i)), last_row) for i in range(rows)]
        starts = [builder.gep(a, [widened(builder.mul(one, lda))]) for one in below]
        factors, columns = [], []
        for j in range(count):
            place = asked = builder.add(at, ir.Constant(wide, j * apart))
            if not within:
                place = least(asked, builder.sub(widened(k), ir.Constant(wide, 1)))
            index = builder.add(builder.mul(place, widened(ldb)), widened(col))
            factor = builder.load(builder.gep(b, [index]))
            if not within:
                factor = builder.select(builder.icmp_unsigned("==", place, asked), factor, factor.type(0))
            factors.append(factor)
            columns.append([builder.load(builder.gep(start, [place])) for start in starts])
        for i in range(rows):
            target = builder.gep(sums, [ir.Constant(wide, i)])
            total = builder.load(target)
            for factor, column in zip(factors, columns, strict=True):
                total = builder.fma(column[i], factor, total)
            builder.store(total, target)
        return context.get_dummy_value()

    register(add, lambda _context: _typed, lower, types.Array, *[types.BaseTuple] * 3, types.Integer)
    return add


def _fields(builder: ir.IRBuilder, struct: ir.Value) -> list[ir.Value]:
    return [builder.extract_value(struct, field) for field in range(len(struct.type))]


def _typed(sums: Type, A: Type, B: Type, first: Type, at: Type) -> Type | None:
    numbers = {*A.types[1:], *B.types[1:], *first.types}
    return types.void if at == types.uint64 and numbers == {types.uint32} else None
