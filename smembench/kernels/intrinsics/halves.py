"""16-bit floating-point numbers in kernels, whose arrays are of bits, since Numba has no bfloat16.

A kernel converts what it loads to float32 and what it stores to the array's type; both are exact or rounded to nearest,
ties to even. For wider types the functions return the number as it is. bfloat16 needs compute capability 8.0.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir

from smembench.kernels.intrinsics.lowering import Context, Signature, Type, Typer, Values, register, types
from smembench.kernels.intrinsics.vector import pointer_to
from smembench.kernels.numba_cuda import DeviceFunction, device, number
from smembench.kernels.types import Array, Index, Scalar
from smembench.model import formats
from smembench.model.formats import HALVES

_WORD, _FLOAT, _HALF = ir.IntType(32), ir.FloatType(), ir.HalfType()


def _same(number: Scalar) -> Scalar:
    return number


@cache
def widened(dtype: str) -> DeviceFunction:
    """``(number)``: an element of an array of this type in float32."""
    if dtype not in HALVES:
        return device(_same)

    def widen(number: Scalar) -> Any:
        return formats.widened(np.asarray(number), dtype, "float32")[()]

    def lower(context: Context, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
        if dtype == "float16":
            return builder.fpext(builder.bitcast(args[0], _HALF), _FLOAT)
        bits = builder.shl(builder.zext(args[0], _WORD), _WORD(16))
        return builder.bitcast(bits, _FLOAT)

    register(widen, _typed(number(dtype), types.float32), lower, types.Number)
    return widen


@cache
def narrowed(dtype: str) -> DeviceFunction:
    """``(number)``: a float32 as an element of an array of this type."""
    if dtype not in HALVES:
        return device(_same)

    def narrow(number: Scalar) -> Any:
        return formats.rounded(np.asarray(number, np.float32), dtype)[()]

    def lower(context: Context, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
        if dtype == "float16":
            return builder.bitcast(builder.fptrunc(args[0], _HALF), ir.IntType(16))
        rounding = ir.InlineAsm(ir.FunctionType(ir.IntType(16), [_FLOAT]), "cvt.rn.bf16.f32 $0, $1;", "=h,f")
        return builder.call(rounding, args)

    register(narrow, _typed(types.float32, number(dtype)), lower, types.Number)
    return narrow


@cache
def store_pair(dtype: str) -> DeviceFunction:
    """``(array, index, one, other)``: store two float32 as neighbouring elements at once; ``index`` is even."""

    def store(array: Array, index: Index, one: Scalar, other: Scalar) -> None:
        both: Any = formats.rounded(np.array([one, other], np.float32), dtype)
        array[index : index + 2] = both

    def lower(context: Context, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
        array, index, one, other = args
        if dtype == "float32":
            zero, first = ir.Constant(ir.VectorType(_FLOAT, 2), ir.Undefined), ir.Constant(_WORD, 0)
            both = builder.insert_element(builder.insert_element(zero, one, first), other, ir.Constant(_WORD, 1))
        else:
            kind = {"float16": "f16x2", "bfloat16": "bf16x2"}[dtype]
            packing = ir.InlineAsm(ir.FunctionType(_WORD, [_FLOAT, _FLOAT]), f"cvt.rn.{kind}.f32 $0, $1, $2;", "=r,f,f")
            both = builder.call(packing, [other, one])
        pointer = pointer_to(context, builder, signature.args[0], signature.args[1], array, index)
        builder.store(both, builder.bitcast(pointer, both.type.as_pointer()))
        return context.get_dummy_value()

    def typer(array: Type, index: Type, one: Type, other: Type) -> Type | None:
        return types.void if array.dtype == number(dtype) and one == other == types.float32 else None

    register(store, lambda _context: typer, lower, types.Array, types.Integer, types.Float, types.Float)
    return store


def _typed(given: Type, result: Type) -> Any:
    def typing(_context: Context) -> Typer:
        return lambda number: result if number == given else None

    return typing
