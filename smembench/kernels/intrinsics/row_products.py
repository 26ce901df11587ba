"""Products of rows of A by a column of B straight from global memory, all loads before all multiplications.

LLVM IR, as one function: NVVM would unroll a loop less, and wait in each iteration.
"""

from __future__ import annotations

from functools import cache

from llvmlite import ir

from smembench.kernels.intrinsics.declaration import Type, register, types
from smembench.kernels.intrinsics.lowering import WIDE, WORD, Code, Value
from smembench.kernels.numba_cuda import DeviceFunction, uint64
from smembench.kernels.types import Array, Index, Matrix, Place


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

    def lower(code: Code, accumulators: Value, A: Value, B: Value, corner: Value, position: Value) -> None:
        builder, at = code.builder, position.ir
        (a_array, a_rows, k, lda), (b_array, _, _, ldb), (row, col) = (
            _fields(builder, struct.ir) for struct in (A, B, corner)
        )
        sums, a, b = map(code.pointer, (accumulators, Value(A.kind[0], a_array), Value(B.kind[0], b_array)))

        def least(x: ir.Value, y: ir.Value) -> ir.Value:
            return builder.select(builder.icmp_unsigned("<", x, y), x, y)

        def widened(x: ir.Value) -> ir.Value:
            return builder.zext(x, WIDE)

        last_row = builder.sub(a_rows, WORD(1))
        below = [least(builder.add(row, WORD(i)), last_row) for i in range(rows)]
        starts = [builder.gep(a, [widened(builder.mul(one, lda))]) for one in below]
        factors, columns = [], []
        for j in range(count):
            place = asked = builder.add(at, WIDE(j * apart))
            if not within:
                place = least(asked, builder.sub(widened(k), WIDE(1)))
            index = builder.add(builder.mul(place, widened(ldb)), widened(col))
            factor = builder.load(builder.gep(b, [index]))
            if not within:
                factor = builder.select(builder.icmp_unsigned("==", place, asked), factor, factor.type(0))
            factors.append(factor)
            columns.append([builder.load(builder.gep(start, [place])) for start in starts])
        for i in range(rows):
            target = builder.gep(sums, [WIDE(i)])
            total = builder.load(target)
            for factor, column in zip(factors, columns, strict=True):
                total = builder.fma(column[i], factor, total)
            builder.store(total, target)

    return register(add, lower, types.Array, *[types.BaseTuple] * 3, types.Integer, fits=_fits)


def _fields(builder: ir.IRBuilder, struct: ir.Value) -> list[ir.Value]:
    return [builder.extract_value(struct, field) for field in range(len(struct.type))]


def _fits(sums: Type, A: Type, B: Type, first: Type, at: Type) -> bool:
    numbers = {*A.types[1:], *B.types[1:], *first.types}
    return bool(at == types.uint64 and numbers == {types.uint32})
