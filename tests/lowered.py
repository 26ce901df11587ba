"""Executes what an intrinsic is lowered to, on the host, and records its accesses: the IR builder that computes.

It takes the place of Numba's context and llvmlite's builder, so the lowering itself runs, an instruction at a time.
Numbers wrap at their width, vectors are bytes, and a pointer is the array it points into with an index.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from smembench.kernels.intrinsics.declaration import TABLE
from smembench.kernels.intrinsics.lowering import lower

Access = tuple[str, str, int, int]
"""Load or store, the array, the first element and their number."""


class Recorded:
    """An array as an intrinsic's Python body sees it: its contents, and what was accessed of it."""

    def __init__(self, name: str, contents: NDArray[Any], accesses: list[Access]) -> None:
        self.name, self.contents, self.accesses = name, contents.copy(), accesses
        self.itemsize = contents.itemsize

    def note(self, kind: str, index: Any) -> slice:
        first, end = (int(index.start), int(index.stop)) if isinstance(index, slice) else (int(index), int(index) + 1)
        assert 0 <= first < end <= len(self.contents), f"{kind} of {self.name} at {first}"
        self.accesses.append((kind, self.name, first, end - first))
        return slice(first, end)

    def __getitem__(self, index: Any) -> Any:
        outcome = self.contents[self.note("load", index)]
        return tuple(outcome) if isinstance(index, slice) else outcome[0]

    def __setitem__(self, index: Any, value: Any) -> None:
        self.contents[self.note("store", index)] = value


@dataclass
class Value:
    """A value of an LLVM type: a number, bytes of a vector, fields of a struct, or an array and an index."""

    value: Any
    type: Any = None


def _wrapped(value: int, kind: Any) -> Value:
    return Value(value % 2**kind.width, kind)


def _dtype(kind: Any) -> str:
    return {"float": "f4", "double": "f8", "i32": "u4"}[str(kind)]


def _number(operand: Any) -> Any:
    return operand.constant if isinstance(operand, ir.Constant) else operand.value


class Builder:
    """The instructions that the intrinsics use."""

    def _integer(self, operation: Callable[[int, int], int], x: Any, y: Any) -> Value:
        return _wrapped(operation(_number(x), _number(y)), x.type)

    def add(self, x: Any, y: Any) -> Value:
        return self._integer(operator.add, x, y)

    def sub(self, x: Any, y: Any) -> Value:
        return self._integer(operator.sub, x, y)

    def mul(self, x: Any, y: Any) -> Value:
        return self._integer(operator.mul, x, y)

    def zext(self, x: Any, kind: Any) -> Value:
        return Value(_number(x), kind)

    def icmp_unsigned(self, sign: str, x: Any, y: Any) -> Value:
        return Value({"<": operator.lt, "==": operator.eq}[sign](_number(x), _number(y)))

    def select(self, condition: Any, x: Any, y: Any) -> Any:
        return x if condition.value else y

    def fma(self, x: Any, y: Any, addend: Any) -> Value:
        return Value(_number(x) * _number(y) + _number(addend), addend.type)

    def gep(self, pointer: Any, indices: Sequence[Any]) -> Value:
        (index,), (array, first) = indices, pointer.value
        return Value((array, first + _number(index)), pointer.type)

    def bitcast(self, x: Any, kind: Any) -> Value:
        return Value(x.value, kind)

    ptrtoint = addrspacecast = bitcast

    def _count(self, array: Recorded, kind: Any) -> int:
        size: int = kind.count * np.dtype(_dtype(kind.element)).itemsize
        return size // array.itemsize

    def load(self, pointer: Any, align: int | None = None) -> Value:
        (array, index), kind = pointer.value, pointer.type.pointee
        if not isinstance(kind, ir.VectorType):
            return Value(array[index], kind)
        return Value(np.array(array[index : index + self._count(array, kind)], array.contents.dtype).tobytes(), kind)

    def store(self, value: Any, pointer: Any, align: int | None = None) -> Value:
        array, index = pointer.value
        if isinstance(value.value, bytes):
            elements = np.frombuffer(value.value, array.contents.dtype)
            array[index : index + len(elements)] = elements
        else:
            array[index] = _number(value)
        return Value(None)

    def extract_value(self, struct: Any, index: int) -> Any:
        return struct.value[index]

    def extract_element(self, vector: Any, lane: Any) -> Value:
        kind = vector.type.element
        return Value(np.frombuffer(vector.value, _dtype(kind))[_number(lane)], kind)

    def insert_element(self, vector: Any, element: Any, lane: Any) -> Value:
        elements = np.frombuffer(vector.value if isinstance(vector, Value) else bytes(16), _dtype(vector.type.element))
        elements = elements.copy()
        elements[_number(lane)] = _number(element)
        return Value(elements.tobytes(), vector.type)

    def call(self, function: Any, args: Sequence[Any]) -> Any:
        """Inline assembly, by its text."""
        assembly = function.asm
        if assembly.startswith("fma."):
            return self.fma(*args)
        if assembly.startswith("red.relaxed.gpu.global.add."):
            array, index = args[0].value
            array[index] += _number(args[1])
            return None
        words = ir.VectorType(ir.IntType(32), 4)
        if assembly.startswith("ld.global.cs.v4.b32"):
            vector = self.load(Value(args[0].value, words.as_pointer()))
            return Value([self.extract_element(vector, Value(lane)) for lane in range(4)])
        if assembly.startswith("st.global.cs.v4.b32"):
            packed = b"".join(np.array(_number(word), "u4").tobytes() for word in args[1:])
            return self.store(Value(packed, words), args[0])
        copy = re.fullmatch(r"cp\.async\.(cg|ca)\.shared\.global \[\$0\], \[\$1\], (\d+);", assembly)
        assert copy, assembly
        (tile, place), (array, index) = (arg.value for arg in args)
        size = int(copy[2])
        assert (size == 16) == (copy[1] == "cg")
        count = size // array.itemsize
        tile[place : place + count] = array[index : index + count]
        return Value(None)


def execute(
    intrinsic: Callable[..., Any], types: Sequence[Any], args: Sequence[Any], result: Any = numba.types.void
) -> Any:
    """Run an intrinsic's lowering on arguments of Numba types: arrays, numbers, and tuples of them.

    ``result`` is the Numba type of a tuple that it returns, whose elements are returned.
    """
    (declared,) = [item for item in TABLE if item.function is intrinsic]

    class Models:
        """By an array's type, its model, whose one field here is the address of the data."""

        def __getitem__(self, kind: Any) -> Any:
            pointee = {4: ir.FloatType(), 8: ir.DoubleType()}[kind.dtype.bitwidth // 8]
            return SimpleNamespace(get=lambda _builder, array, _field: Value((array, 0), pointee.as_pointer()))

    def value_of(kind: Any, argument: Any) -> Any:
        if isinstance(argument, Recorded):
            return argument
        if isinstance(argument, tuple):
            fields = tuple(value_of(item, one) for item, one in zip(kind, argument, strict=True))
            return Value(fields, fields)
        if "float" in str(kind):
            return Value(argument, float_of(kind))
        return Value(int(argument), ir.IntType(kind.bitwidth))

    def float_of(kind: Any) -> Any:
        return ir.FloatType() if kind.bitwidth == 32 else ir.DoubleType()

    context = SimpleNamespace(
        data_model_manager=Models(),
        get_dummy_value=lambda: None,
        get_value_type=float_of,
        make_tuple=lambda _builder, _type, values: tuple(value.value for value in values),
    )
    signature = SimpleNamespace(args=tuple(types), return_type=result)
    return lower(declared, context, Builder(), signature, [value_of(*pair) for pair in zip(types, args, strict=True)])
