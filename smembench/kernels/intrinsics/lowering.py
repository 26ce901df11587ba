"""The lowering of every intrinsic, which reads its declaration, and ``Code``, by which some emit LLVM IR.

It is Numba's, and that of numba-cuda-mlir, whose context and builder ``toolchains/mlir/intrinsics.py`` replaces.
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from llvmlite import ir

from smembench.kernels.intrinsics.declaration import BYTES, TABLE, Intrinsic, Ptx, Type, types
from smembench.kernels.numba_cuda import private

WORD, WIDE, FLOAT = ir.IntType(32), ir.IntType(64), ir.FloatType()
WORDS = ir.VectorType(WORD, BYTES // 4)

_GLOBAL_SPACE, _SHARED_SPACE = 1, 3
"""Address spaces in NVVM IR; a pointer to shared memory has 32 bits there."""
_DESCRIBED = 0x3FFFF
"""The bits of a shared address that a matrix descriptor takes; the higher ones tell the blocks of a cluster apart."""
_LETTERS = defaultdict(lambda: "l", {"i16": "h", "i32": "r", "float": "f", "double": "d"})
"""LLVM type to the letter of its registers in a constraint; a pointer has that of 64 bits."""


class Value(NamedTuple):
    """An argument: its Numba type, and its value in LLVM IR."""

    kind: Type
    ir: ir.Value


def lower(intrinsic: Intrinsic, context: Any, builder: ir.IRBuilder, signature: Any, args: Sequence[ir.Value]) -> Any:
    """Emit a call, as Numba asks for it; returns the result."""
    code, values = Code(context, builder, signature.return_type), list(map(Value, signature.args, args))
    emitted = None
    if callable(intrinsic.emits):
        emitted = intrinsic.emits(code, *values)
    else:
        result = code.result if intrinsic.constant is None else types.void
        for instruction in intrinsic.emits:
            emitted = code.emit(instruction, *values, result=result)
    if intrinsic.constant is not None:
        return context.get_constant(code.result, intrinsic.constant)
    return context.get_dummy_value() if emitted is None else emitted


def definitions() -> Iterator[tuple[Callable[..., Any], Any, tuple[Any, ...]]]:
    """Per intrinsic the lowering, the function and the types of the arguments, as Numba takes them.

    Those that are new get the type by which Numba knows them.
    """
    template = private("numba.cuda.typing.templates.CallableTemplate")
    for intrinsic in TABLE:
        function: Any = intrinsic.function
        if not hasattr(function, "_numba_type_"):
            typer = partial(intrinsic.type_of)
            typer.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
            fields = {"key": function, "generic": lambda self, typer=typer: typer}
            function._numba_type_ = types.Function(type(function.__name__, (template,), fields))
        yield partial(lower, intrinsic), function, (types.VarArg(types.Any),)


class Code:
    """LLVM IR of a call in the making, and what arguments are in it.

    Attributes:
        result: the Numba type of the call's result.
    """

    def __init__(self, context: Any, builder: ir.IRBuilder, result: Type) -> None:
        self.context, self.builder, self.result = context, builder, result

    def emit(self, ptx: Ptx, *args: Value, result: Type = types.void) -> ir.Value | None:
        """Emit PTX text as inline assembly, with a call's arguments; returns its result."""
        remaining = iter(args)
        places: list[ir.Value] = []
        read: list[ir.Value] = []
        changed: list[ir.Value] = []
        for operand in ptx.operands:
            made = getattr(self, operand.kind)(*islice(remaining, len(operand.arguments)), *operand.parameters)
            if not operand.written:
                read += made if isinstance(made, list) else [made]
                continue
            places += made
            if operand.read:
                changed += [self.builder.load(place) for place in made]
        registers = self._registers_of(result)
        outputs = registers + [place.type.pointee for place in places]
        constraints = [f"={_LETTERS[str(kind)]}" for kind in outputs] + [_LETTERS[str(value.type)] for value in read]
        constraints += [str(index) for index in range(len(changed))] + ["~{memory}"] * (ptx.volatile and ptx.memory)
        function = ir.FunctionType(_together(outputs), [value.type for value in read + changed])
        text = ptx.filled([argument.kind for argument in args])
        assembly = ir.InlineAsm(function, text, ",".join(constraints), side_effect=ptx.volatile)
        output = self.builder.call(assembly, read + changed)

        # One by one, each stored at once: LLVM looks only so far back for a value, and would duplicate other blocks.
        values: Iterator[ir.Value] = (self.builder.extract_value(output, index) for index in range(len(outputs)))
        if len(outputs) == 1:
            values = iter([output])
        results = list(islice(values, len(registers)))
        for place, value in zip(places, values, strict=True):
            self.builder.store(value, place)
        if isinstance(result, types.UniTuple):
            return self.tuple_of(result, self.joined(WORD, results))
        return results[0] if results else None

    def _registers_of(self, result: Type) -> list[ir.Type]:
        if isinstance(result, types.UniTuple):
            return [WORD] * WORDS.count
        return [] if result == types.void else [self.context.get_value_type(result)]

    def pointer(self, array: Value, index: Value | int = 0) -> ir.Value:
        """The address of an element."""
        return self.places(array, index, 1)[0]

    def places(self, array: Value, first: Value | int, count: int) -> list[ir.Value]:
        """The addresses of elements in a row."""
        # Not by a proxy of the array, for which Numba looks through all its registries.
        data = self.context.data_model_manager[array.kind].get(self.builder, array.ir, "data")
        if isinstance(first, int):
            return [self.builder.gep(data, [WIDE(first + index)]) for index in range(count)]
        numbers = [first.ir] + [self.builder.add(first.ir, first.ir.type(index)) for index in range(1, count)]
        if first.kind.bitwidth < 64:
            widen = self.builder.sext if first.kind.signed else self.builder.zext
            numbers = [widen(number, WIDE) for number in numbers]
        return [self.builder.gep(data, [number]) for number in numbers]

    def loaded(self, array: Value, first: Value | int, count: int) -> list[ir.Value]:
        """Elements in a row."""
        return [self.builder.load(place) for place in self.places(array, first, count)]

    def in_row(self, array: Value, index: Value, stride: Value, below: int, along: int) -> ir.Value:
        """The address of an element rows below and some along, by 32-bit arithmetic up to its row's constant."""
        row = self.builder.add(index.ir, self.builder.mul(stride.ir, WORD(below)))
        return self.pointer(array, Value(types.uint64, self.builder.add(self.builder.zext(row, WIDE), WIDE(along))))

    def shared_address(self, array: Value, index: Value, offset: int = 0) -> ir.Value:
        """The address of an element, ``offset`` behind ``index``, in shared memory's own space, 32 bits."""
        if offset:
            index = Value(index.kind, self.builder.add(index.ir, index.ir.type(offset)))
        pointer = self.pointer(array, index)
        inside = self.builder.addrspacecast(pointer, pointer.type.pointee.as_pointer(_SHARED_SPACE))
        return self.builder.ptrtoint(inside, WORD)

    def unchanged(self, number: Value) -> ir.Value:
        """A number as it is."""
        return number.ir

    def narrow(self, number: Value) -> ir.Value:
        """An integer, cut to 32 bits."""
        return self.builder.trunc(number.ir, WORD)

    def bytes_if(self, condition: Value) -> ir.Value:
        """The bytes of a vector if a condition holds, otherwise 0."""
        return self.builder.select(condition.ir, WORD(BYTES), WORD(0))

    def descriptor(self, tiles: Value, place: Value, constant: int) -> ir.Value:
        """A matrix descriptor: where an operand in shared memory begins, in units of 16 bytes, and what is constant."""
        within = self.builder.and_(self.shared_address(tiles, place), WORD(_DESCRIBED))
        start = self.builder.zext(self.builder.lshr(within, WORD(4)), WIDE)
        return self.builder.or_(start, WIDE(constant))

    def nothing(self, number: Value) -> list[ir.Value]:
        """No operand."""
        return []

    def words(self, elements: Value) -> list[ir.Value]:
        """The four words of a tuple of elements."""
        vector = self.vector_of(elements)
        return [self.builder.extract_element(vector, WORD(index)) for index in range(WORDS.count)]

    def vector_of(self, elements: Value) -> ir.Value:
        """The four words of a tuple of elements, as a vector."""
        values = [self.builder.extract_value(elements.ir, lane) for lane in range(elements.kind.count)]
        return self.builder.bitcast(self.joined(self.context.get_value_type(elements.kind.dtype), values), WORDS)

    def tuple_of(self, kind: Type, vector: ir.Value) -> ir.Value:
        """A tuple of the elements that lie in a vector of words."""
        elements = self.builder.bitcast(vector, ir.VectorType(self.context.get_value_type(kind.dtype), kind.count))
        values = [self.builder.extract_element(elements, WORD(lane)) for lane in range(kind.count)]
        return self.context.make_tuple(self.builder, kind, values)

    def joined(self, kind: ir.Type, values: Sequence[ir.Value]) -> ir.Value:
        """A vector of these values."""
        vector = ir.Constant(ir.VectorType(kind, len(values)), ir.Undefined)
        for lane, value in enumerate(values):
            vector = self.builder.insert_element(vector, value, WORD(lane))
        return vector

    def load(self, pointer: ir.Value, kind: ir.Type = WORDS, size: int = BYTES) -> ir.Value:
        """The value at an address, in one access of ``size`` bytes."""
        return self.builder.load(self.builder.bitcast(pointer, kind.as_pointer()), align=size)

    def store(self, value: ir.Value, pointer: ir.Value, size: int = BYTES) -> None:
        """Store at an address, in one access of ``size`` bytes."""
        self.builder.store(value, self.builder.bitcast(pointer, value.type.as_pointer()), align=size)

    def module_array(self, name: str, kind: Type, elements: int, space: int = _GLOBAL_SPACE) -> ir.Value:
        """An array of the module, of zeros: in global memory its own, in another space one that the host finds."""
        content = ir.ArrayType(self.context.get_data_type(kind.dtype), elements)
        variable = self.builder.module.globals.get(name)
        if variable is None:
            variable = ir.GlobalVariable(self.builder.module, content, name, addrspace=space)
            variable.initializer = ir.Constant(content, None)
            if space == _GLOBAL_SPACE:
                variable.align, variable.linkage = BYTES, "internal"
        array = self.context.make_array(kind)(self.context, self.builder)
        data = self.builder.bitcast(
            self.builder.addrspacecast(variable, content.as_pointer()), content.element.as_pointer()
        )
        size = kind.dtype.bitwidth // 8
        shape, strides = ([self.context.get_constant(types.intp, number)] for number in (elements, size))
        self.context.populate_array(array, data=data, shape=shape, strides=strides, itemsize=size, meminfo=None)
        return array._getvalue()


def _together(kinds: list[ir.Type]) -> ir.Type:
    """The type that inline assembly returns if it writes values of these types."""
    return ir.LiteralStructType(kinds) if len(kinds) > 1 else (*kinds, ir.VoidType())[0]
