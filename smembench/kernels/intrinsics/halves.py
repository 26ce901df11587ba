"""16-bit floating-point numbers in kernels, whose arrays are of bits, since Numba has no bfloat16.

A kernel converts what it loads to float32 and what it stores to the array's type; both are exact or rounded to nearest,
ties to even. For wider types the functions return the number as it is. bfloat16 needs compute capability 8.0.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir

from smembench.kernels.intrinsics.declaration import VALUE, Ptx, register, types
from smembench.kernels.intrinsics.lowering import FLOAT, Code, Value
from smembench.kernels.numba_cuda import DeviceFunction, device, number
from smembench.kernels.types import Array, Index, Scalar
from smembench.model import formats
from smembench.model.formats import HALVES

PTX = {"bfloat16": "bf16", "float16": "f16"}
"""Types in PTX."""
_HALF = ir.HalfType()
_WIDEN = "{ .reg .b32 wide; cvt.u32.u16 wide, $1; shl.b32 $0, wide, 16; }"


def _same(number: Scalar) -> Scalar:
    return number


@cache
def widened(dtype: str) -> DeviceFunction:
    """``(number)``: an element of an array of this type in float32."""
    if dtype not in HALVES:
        return device(_same)

    def widen(number: Scalar) -> Any:
        return formats.widened(np.asarray(number), dtype, "float32")[()]

    # LLVM IR for float16, which LLVM knows: it orders its own conversions otherwise than PTX text.
    def lower(code: Code, given: Value) -> Any:
        return code.builder.fpext(code.builder.bitcast(given.ir, _HALF), FLOAT)

    emits = (Ptx(_WIDEN, VALUE, volatile=False),) if dtype == "bfloat16" else lower
    return register(widen, emits, number(dtype), result=types.float32)


@cache
def narrowed(dtype: str) -> DeviceFunction:
    """``(number)``: a float32 as an element of an array of this type."""
    if dtype not in HALVES:
        return device(_same)

    def narrow(number: Scalar) -> Any:
        return formats.rounded(np.asarray(number, np.float32), dtype)[()]

    def lower(code: Code, given: Value) -> Any:
        return code.builder.bitcast(code.builder.fptrunc(given.ir, _HALF), ir.IntType(16))

    emits = (Ptx("cvt.rn.bf16.f32 $0, $1;", VALUE, volatile=False),) if dtype == "bfloat16" else lower
    return register(narrow, emits, types.float32, result=number(dtype))


@cache
def store_pair(dtype: str) -> DeviceFunction:
    """``(array, index, one, other)``: store two float32 as neighbouring elements at once; ``index`` is even."""

    def store(array: Array, index: Index, one: Scalar, other: Scalar) -> None:
        both: Any = formats.rounded(np.array([one, other], np.float32), dtype)
        array[index : index + 2] = both

    def lower(code: Code, array: Value, index: Value, one: Value, other: Value) -> None:
        # The address before the conversion, and a store for which LLVM finds the space: otherwise machine code changes.
        place = code.pointer(array, index)
        if dtype in HALVES:
            both = code.emit(rounded_pair(dtype), other, one, result=types.uint32)
        else:
            both = code.joined(FLOAT, [one.ir, other.ir])
        code.store(both, place, 2 * array.kind.dtype.bitwidth // 8)

    return register(store, lower, number(dtype)[::1], types.Integer, types.float32, types.float32)


def rounded_pair(dtype: str) -> Ptx:
    """Two float32, the upper half first, as a register of two elements of this type."""
    return Ptx(f"cvt.rn.{PTX[dtype]}x2.f32 $0, $1, $2;", VALUE, VALUE, volatile=False)
