"""Tensor cores: products of small matrices in the registers of a warp (``mma.sync``), and how they get there.

``mma.sync.m16n8k16`` (PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type"): of a 16×16 matrix A, a
16×8 matrix B and a 16×8 matrix of float32 sums, each of a warp's 32 lanes holds a part. With g = lane // 4 and
t = lane % 4, and two 16-bit elements to a register, the lower half first:

| registers | have |
|---|---|
| A: 0 and 2 | row g, columns 2t, 2t+1 and 8 more |
| A: 1 and 3 | row g + 8, the same columns |
| B: 0 and 1 | column g, rows 2t, 2t+1 and 8 more |
| sums: 0, 1 | row g, columns 2t, 2t+1 |
| sums: 2, 3 | row g + 8, the same columns |

``ldmatrix`` (PTX ISA, "ldmatrix") loads four 8×8 matrices from shared memory: lane l has the address of row l % 8 of
matrix l // 8, 16 bytes that begin at a multiple of 16, and gets of each matrix what the table says of A's register 0.
Transposed it gets column g, rows 2t and 2t+1. Shared memory serves a matrix, eight rows of 16 bytes, at a time.

``stmatrix`` (PTX ISA, "stmatrix") stores four such matrices the other way, by the same addresses.

All need compute capability 8.0, ``stmatrix`` 9.0, and all lanes of the warp. In the simulator lanes exchange what they
have by shuffles; in a trace they access the same addresses, and values mean nothing.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir

from smembench.kernels.intrinsics.bulk_copy import shared_address
from smembench.kernels.intrinsics.lowering import Context, Signature, Type, Typer, Values, assemble, register, types
from smembench.kernels.intrinsics.vector import BYTES, pointer_to
from smembench.kernels.numba_cuda import DeviceFunction, cuda, number
from smembench.kernels.types import Array, Index, Scalar
from smembench.model import formats

ALL_LANES = 0xFFFFFFFF
MATRICES = 4
"""8×8 matrices per ``ldmatrix``, and registers that they fill."""
A_REGISTERS, B_REGISTERS, SUMS = 4, 2, 4
"""Registers of a fragment of A, of one of B, and of their sums, per lane."""
_PTX = {"bfloat16": "bf16", "float16": "f16"}
_WORD, _FLOAT = ir.IntType(32), ir.FloatType()
_PLACES = (types.Array, types.Integer, types.Array, types.Integer, types.Integer)


def pack(low: Scalar, high: Scalar) -> Any:
    """Two 16-bit elements as a register."""
    first, second = (int(np.asarray(half).view(np.uint16)) for half in (low, high))
    return np.uint32(first | second << 16)


def load_two(tile: Array, index: Index) -> Any:
    """Two elements from an even ``index`` on as a register, in one access."""
    return pack(*tile[index : index + 2])


def load_matrices(fragments: Array, place: Index, tile: Array, index: Index, lane: Index) -> None:
    """``ldmatrix``: load four matrices into registers from ``place`` on; this lane's row begins at ``index``.

    Raises:
        ValueError: in the simulator and in a trace, for an index that is not a multiple of 8.
    """
    row = tile[_row(tile, index)]
    for matrix in range(MATRICES):
        given = cuda.shfl_sync(ALL_LANES, row, 8 * matrix + lane // 4)
        fragments[place + matrix] = pack(*(_at(given, lane % 4 * 2 + half) for half in (0, 1)))


def load_matrices_transposed(fragments: Array, place: Index, tile: Array, index: Index, lane: Index) -> None:
    """As load_matrices, each matrix transposed.

    Raises:
        ValueError: as load_matrices.
    """
    row = tile[_row(tile, index)]
    for matrix in range(MATRICES):
        given = [cuda.shfl_sync(ALL_LANES, row, 8 * matrix + lane % 4 * 2 + half) for half in (0, 1)]
        fragments[place + matrix] = pack(*(_at(each, lane // 4) for each in given))


def _row(tile: Array, index: Index) -> slice:
    if index % (BYTES // tile.itemsize):
        raise ValueError(f"index {index}: a row of a matrix begins at a multiple of 8 elements")
    return slice(index, index + BYTES // tile.itemsize)


def _at(row: Any, index: Any) -> Any:
    """An element of a row; in a trace, where lanes run together and load zeros, the first."""
    return row[0] if np.ndim(index) else row[index]


@cache
def multiply_matrices(dtype: str, down: int, across: int) -> DeviceFunction:
    """``(accumulators, a, b, lane)``: add the products of ``down`` fragments of A and ``across`` of B, of this type.

    The sums of the product of A's i-th and B's j-th begin at ``4 * (i * across + j)`` in ``accumulators``.
    """

    def multiply(accumulators: Array, a: Array, b: Array, lane: Index) -> None:
        mine = [tuple(a[i] for i in range(A_REGISTERS * down)), tuple(b[i] for i in range(B_REGISTERS * across))]

        def of(first: Index, part: int) -> Any:
            """The parts of four lanes, as numbers: (lane, register, half)."""
            lanes = [cuda.shfl_sync(ALL_LANES, mine, first + i)[part] for i in range(4)]
            halves = np.array(lanes, np.uint32)[..., None].view(np.uint16)
            return formats.widened(halves, dtype, "float64")

        # In order of k: the half of 8, the lane, the half of the register.
        rows = of(lane // 4 * 4, 0).reshape(4, down, 2, 2, 2).transpose(1, 3, 2, 0, 4).reshape(down, 2, 16)
        columns = [of((lane % 4 * 2 + i) * 4, 1).reshape(4, across, 2, 2).transpose(1, 2, 0, 3) for i in (0, 1)]
        sums = np.einsum("ihk,cjk->ijhc", rows, np.array(columns).reshape(2, across, 16))
        for i, value in enumerate(sums.reshape(-1)):
            accumulators[i] += value

    def lower(context: Context, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
        kinds = zip(signature.args[:3], args[:3], strict=True)
        sums, a, b = (context.make_array(kind)(context, builder, array).data for kind, array in kinds)

        def at(data: ir.Value, index: int) -> ir.Value:
            return builder.gep(data, [ir.Constant(ir.IntType(64), index)])

        def loaded(data: ir.Value, first: int, count: int) -> list[ir.Value]:
            return [builder.load(at(data, first + i)) for i in range(count)]

        result = ir.LiteralStructType([_FLOAT] * SUMS)
        given = [_WORD] * (A_REGISTERS + B_REGISTERS) + [_FLOAT] * SUMS
        assembly = ir.InlineAsm(
            ir.FunctionType(result, given),
            f"mma.sync.aligned.m16n8k16.row.col.f32.{_PTX[dtype]}.{_PTX[dtype]}.f32 "
            "{$0,$1,$2,$3}, {$4,$5,$6,$7}, {$8,$9}, {$0,$1,$2,$3};",
            "=f,=f,=f,=f,r,r,r,r,r,r,0,1,2,3",
            side_effect=True,
        )
        rows = [loaded(a, A_REGISTERS * i, A_REGISTERS) for i in range(down)]
        columns = [loaded(b, B_REGISTERS * j, B_REGISTERS) for j in range(across)]
        for i, row in enumerate(rows):
            for j, column in enumerate(columns):
                first = SUMS * (i * across + j)
                found = builder.call(assembly, [*row, *column, *loaded(sums, first, SUMS)])
                for place in range(SUMS):
                    builder.store(builder.extract_value(found, place), at(sums, first + place))
        return context.get_dummy_value()

    register(
        multiply, lambda _context: lambda accumulators, a, b, lane: types.void, lower, *[types.Array] * 3, types.Integer
    )
    return multiply


@cache
def store_two(dtype: str) -> DeviceFunction:
    """``(array, index, low, high)``: round two sums to this type and store them from an even ``index`` on, at once."""

    def store(array: Array, index: Index, low: Scalar, high: Scalar) -> None:
        array[index : index + 2] = tuple(formats.rounded(np.array([low, high], np.float32), dtype))

    def lower(context: Context, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
        pointer = pointer_to(context, builder, *signature.args[:2], *args[:2])
        both = _rounded_pair(builder, dtype, *args[2:])
        stored = builder.store(both, builder.bitcast(pointer, _WORD.as_pointer()))
        stored.align = 4
        return context.get_dummy_value()

    def typer(array: Type, index: Type, low: Type, high: Type) -> Type | None:
        return types.void if array.dtype == number(dtype) and low == high == types.float32 else None

    register(store, lambda _context: typer, lower, types.Array, types.Integer, types.Float, types.Float)
    return store


def _rounded_pair(builder: ir.IRBuilder, dtype: str, low: ir.Value, high: ir.Value) -> ir.Value:
    """Two float32 as a register of two elements of this type; the first operand becomes the upper half."""
    kind = ir.FunctionType(_WORD, [_FLOAT, _FLOAT])
    return builder.call(ir.InlineAsm(kind, f"cvt.rn.{_PTX[dtype]}x2.f32 $0, $1, $2;", "=r,f,f"), [high, low])


@cache
def store_matrices_transposed(dtype: str) -> DeviceFunction:
    """``(tile, index, sums, first, lane)``: round eight sums, two per matrix, and store four matrices transposed.

    ``index`` is where this lane's row begins in the tile. A lane's two sums of a matrix, from ``first`` on, go to
    column g, rows 2t and 2t+1.
    """

    def store_transposed(tile: Array, index: Index, sums: Array, first: Index, lane: Index) -> None:
        mine = tuple(formats.rounded(np.asarray(sums[first : first + 2 * MATRICES], np.float32), dtype))
        given = [cuda.shfl_sync(ALL_LANES, mine, 4 * column + lane % 8 // 2) for column in range(8)]
        tile[_row(tile, index)] = tuple(_at(each, lane // 8 * 2 + lane % 2) for each in given)

    def lower(context: Context, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
        kinds = signature.args

        def loaded(number: int) -> ir.Value:
            place = builder.add(args[3], ir.Constant(args[3].type, number))
            pointer = pointer_to(context, builder, kinds[2], kinds[3], args[2], place)
            return builder.load(builder.bitcast(pointer, _FLOAT.as_pointer()))

        pairs = [_rounded_pair(builder, dtype, loaded(2 * i), loaded(2 * i + 1)) for i in range(MATRICES)]
        address = shared_address(context, builder, kinds[0], kinds[1], args[0], args[1])
        assembly = "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [$0], {$1, $2, $3, $4};"
        assemble(builder, assembly, "r,r,r,r,r,", address, *pairs)
        return context.get_dummy_value()

    def typer(tile: Type, index: Type, sums: Type, first: Type, lane: Type) -> Type | None:
        return types.void if tile.dtype == number(dtype) and sums.dtype == types.float32 else None

    register(store_transposed, lambda _context: typer, lower, *_PLACES)
    return store_transposed


def _type_pack(_context: Context) -> Typer:
    return lambda low, high: types.uint32 if low == high and low.bitwidth == 16 else None


def _lower_pack(context: Context, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
    low, high = (builder.zext(arg, _WORD) for arg in args)
    return builder.or_(low, builder.shl(high, _WORD(16)))


def _type_load_two(_context: Context) -> Typer:
    def typer(tile: Type, index: Type) -> Type | None:
        return types.uint32 if tile.dtype.bitwidth == 16 and isinstance(index, types.Integer) else None

    return typer


def _lower_load_two(context: Context, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
    pointer = builder.bitcast(pointer_to(context, builder, *signature.args, *args), _WORD.as_pointer())
    loaded = builder.load(pointer)
    loaded.align = 4
    return loaded


def _type_load_matrices(_context: Context) -> Typer:
    def typer(fragments: Type, place: Type, tile: Type, index: Type, lane: Type) -> Type | None:
        known = fragments.dtype == types.uint32 and tile.dtype.bitwidth == 16
        return types.void if known and isinstance(index, types.Integer) else None

    return typer


def _lowering_of(shape: str) -> Any:
    def lower(context: Context, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
        address = shared_address(context, builder, *signature.args[2:4], *args[2:4])
        words = ir.LiteralStructType([_WORD] * MATRICES)
        assembly = ir.InlineAsm(
            ir.FunctionType(words, [_WORD]),
            f"ldmatrix.sync.aligned.m8n8.x4{shape}.shared.b16 {{$0, $1, $2, $3}}, [$4];",
            "=r,=r,=r,=r,r,~{memory}",
            side_effect=True,
        )
        found = builder.call(assembly, [address])
        for matrix in range(MATRICES):
            place = builder.add(args[1], ir.Constant(args[1].type, matrix))
            target = pointer_to(context, builder, signature.args[0], signature.args[1], args[0], place)
            builder.store(builder.extract_value(found, matrix), builder.bitcast(target, _WORD.as_pointer()))
        return context.get_dummy_value()

    return lower


register(pack, _type_pack, _lower_pack, types.Number, types.Number)
register(load_two, _type_load_two, _lower_load_two, types.Array, types.Integer)
register(load_matrices, _type_load_matrices, _lowering_of(""), *_PLACES)
register(load_matrices_transposed, _type_load_matrices, _lowering_of(".trans"), *_PLACES)
