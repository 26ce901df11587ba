"""How a function becomes an intrinsic: what it compiles to, beside its Python body.

Most intrinsics are declared by ``Ptx``, the decorator of the function: PTX text, and of each operand what it is and
which arguments give it. Where PTX text would change the machine code, or one call stands for many instructions, a
function emits LLVM IR by ``Code``, and such declarations too. A compiler of Numba's dialect other than Numba's needs of
``Code`` the methods that operands name, with its own values.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import numba
from llvmlite import ir

from smembench.kernels.numba_cuda import DeviceFunction, private

if TYPE_CHECKING:
    from numba.types import Type as NumbaType

Function = TypeVar("Function", bound=DeviceFunction)
Type: TypeAlias = "NumbaType"
Wanted: TypeAlias = "Type | type[Type]"
"""A type, a class of types, or an array's type for any array with such elements."""
Result: TypeAlias = "Type | Callable[..., Type | None]"

types: Any = numba.types  # its stub lacks UniTuple

BYTES = 16
"""Bytes of a vector, the most per thread and instruction (PTX ISA, ``ld``)."""
WORD, WIDE, FLOAT = ir.IntType(32), ir.IntType(64), ir.FloatType()
WORDS = ir.VectorType(WORD, BYTES // 4)

_GLOBAL_SPACE, _SHARED_SPACE = 1, 3
"""Address spaces in NVVM IR; a pointer to shared memory has 32 bits there."""
_DESCRIBED = 0x3FFFF
"""The bits of a shared address that a matrix descriptor takes; the higher ones tell the blocks of a cluster apart."""
_LETTERS = {"i16": "h", "i32": "r", "i64": "l", "float": "f", "double": "d"}
"""LLVM type to the letter of its registers in a constraint; a pointer has that of 64 bits."""

LOWERINGS: list[tuple[Callable[..., ir.Value], DeviceFunction, tuple[Any, ...]]] = []
"""Lowerings with their functions and the types of the arguments, for Numba while it compiles here."""


_untyped: list[tuple[DeviceFunction, Callable[..., Any]]] = []
"""Intrinsics without a type yet, and what gives it by the types of the arguments; it needs numba-cuda loaded."""


class Value(NamedTuple):
    """An argument: its Numba type, and its value in LLVM IR."""

    kind: Type
    ir: ir.Value


class Operand(NamedTuple):
    """What stands for one ``$n`` in PTX text, or for one per register.

    Attributes:
        kind: the method of ``Code`` that makes it of arguments.
        arguments: the types of these.
        parameters: what the method is given after them.
        written: whether the instruction writes the registers.
        read: whether it reads them.
    """

    kind: str
    arguments: tuple[Wanted, ...]
    parameters: tuple[Any, ...] = ()
    written: bool = False
    read: bool = True


PLACE = (types.Array, types.Integer)
"""Types of the arguments that give an element."""
SHARED = Operand("shared_address", PLACE)
"""The address of an element in shared memory, 32 bits."""
GLOBAL = Operand("pointer", PLACE)
"""The address of an element in global memory."""
ARRAY = Operand("pointer", (types.Array,))
"""The address of an array in global memory."""
VALUE = Operand("unchanged", (types.Number,))
"""A number, in a register of its type."""
MAP = Operand("unchanged", (types.Integer,))
"""The address of a tensor map."""
INTEGER = Operand("narrow", (types.Integer,))
"""An integer, cut to 32 bits."""
LITERAL = Operand("nothing", (types.IntegerLiteral,))
"""An integer literal that stands in the text for ``%literal``. As an operand it would change what LLVM unrolls."""
VECTOR = Operand("words", (types.UniTuple,))
"""A tuple of elements, in four words."""
BYTES_IF = Operand("bytes_if", (types.Boolean,))
"""``BYTES`` if a condition holds, otherwise 0."""
UNUSED = Operand("nothing", (types.Integer,))
"""An argument that the Python body alone needs."""


def in_module(name: str, kind: Type, elements: int) -> Operand:
    """The address of an element of an array of the module."""
    return Operand("in_module", (types.Integer,), (name, kind, elements))


def loaded(count: int) -> Operand:
    """``count`` registers of an array from a place on, which are read."""
    return Operand("loaded", PLACE, (count,))


def written(count: int) -> Operand:
    """``count`` registers of an array from a place on, which are written."""
    return Operand("places", PLACE, (count,), written=True, read=False)


def changed(count: int) -> Operand:
    """``count`` registers of an array from a place on, which are read and written."""
    return Operand("places", PLACE, (count,), written=True)


class Ptx:
    """PTX text that a function compiles to, as its decorator.

    Args:
        text: with ``$0``, ``$1`` and so on for the function's result, then for the registers that are written or
            changed, then for the other operands. ``%bits`` and ``%bytes`` are the size of the first array's elements.
        operands: in the order of the function's arguments.
        volatile: whether it does more than to compute its result; it stays in order with others that do.
        memory: whether no memory access moves across it.
        typing: as for ``register``. A tuple as the result comes in four words.
    """

    def __init__(
        self, text: str, *operands: Operand, volatile: bool = True, memory: bool = True, **typing: Any
    ) -> None:
        self.text, self.operands, self.volatile, self.memory, self._typing = text, operands, volatile, memory, typing

    def __call__(self, function: Function) -> Function:
        """Make a function callable from kernels as this text."""

        def lower(code: Code, *args: Value) -> ir.Value | None:
            return code.emit(self, *args, result=code.result)

        arguments = [kind for operand in self.operands for kind in operand.arguments]
        return register(function, lower, *arguments, **self._typing)


def _suits(kind: Type, wanted: Wanted) -> bool:
    if isinstance(wanted, type):
        return isinstance(kind, wanted)
    if isinstance(wanted, types.Array):
        return isinstance(kind, types.Array) and kind.dtype == wanted.dtype
    return bool(kind == wanted)


def register(
    function: Function,
    lower: Callable[..., ir.Value | None],
    *arguments: Wanted,
    fits: Callable[..., bool] | None = None,
    result: Result = types.void,
) -> Function:
    """Make a function callable from kernels, by the types of its arguments and what emits its code.

    Args:
        function: what the simulator and a trace run.
        lower: gets ``Code`` and a ``Value`` for each argument.
        arguments: their types.
        fits: whether these suit each other, too.
        result: the function's type, or what gives it by the types of the arguments.
    """

    def typer(*kinds: Type) -> Type | None:
        if not all(map(_suits, kinds, arguments)) or (fits and not fits(*kinds)):
            return None
        return result if isinstance(result, types.Type) else result(*kinds)

    def lowering(context: Any, builder: ir.IRBuilder, signature: Any, args: Sequence[ir.Value]) -> ir.Value:
        values = map(Value, signature.args, args)
        emitted = lower(Code(context, builder, signature.return_type), *values)
        return context.get_dummy_value() if emitted is None else emitted

    typer.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    _untyped.append((function, typer))
    LOWERINGS.append((lowering, function, (types.VarArg(types.Any),)))
    return function


def give_types() -> None:
    """Give the functions that were registered meanwhile their types for Numba, before it compiles."""
    while _untyped:
        _give_type(*_untyped.pop())


def _give_type(function: DeviceFunction, typer: Callable[..., Type | None]) -> None:
    intrinsic: Any = function
    template = {"key": function, "generic": lambda self: typer}
    base = private("numba.cuda.typing.templates.CallableTemplate")
    intrinsic._numba_type_ = types.Function(type(function.__name__, (base,), template))


class Code:
    """LLVM IR of a call in the making, and what arguments are in it.

    Attributes:
        result: the Numba type of the call's result.
    """

    def __init__(self, context: Any, builder: ir.IRBuilder, result: Type) -> None:
        self.context, self.builder, self.result = context, builder, result

    def emit(self, ptx: Ptx, *args: Value | int, result: Type = types.void) -> ir.Value | None:
        """Emit PTX text as inline assembly, with arguments as a call's or known indices; returns its result."""
        given = iter(args)
        places: list[ir.Value] = []
        read: list[ir.Value] = []
        kept: list[ir.Value] = []
        for operand in ptx.operands:
            made = getattr(self, operand.kind)(*islice(given, len(operand.arguments)), *operand.parameters)
            if not operand.written:
                read += made if isinstance(made, list) else [made]
                continue
            places += made
            if operand.read:
                kept += [self.builder.load(place) for place in made]
        results = self._registers_of(result)
        outputs = results + [place.type.pointee for place in places]
        constraints = [f"={_letter(kind)}" for kind in outputs] + [_letter(value.type) for value in read]
        constraints += [str(index) for index in range(len(kept))] + ["~{memory}"] * (ptx.volatile and ptx.memory)
        function = ir.FunctionType(_together(outputs), [value.type for value in read + kept])
        text = _filled(ptx.text, args)
        assembly = ir.InlineAsm(function, text, ",".join(constraints), side_effect=ptx.volatile)
        found = self.builder.call(assembly, read + kept)

        # One by one, each stored at once: LLVM looks only so far back for a value, and would duplicate other blocks.
        def output(index: int) -> ir.Value:
            return found if len(outputs) == 1 else self.builder.extract_value(found, index)

        for index, place in enumerate(places, len(results)):
            self.builder.store(output(index), place)
        if isinstance(result, types.UniTuple):
            return self.tuple_of(result, self.joined(WORD, [output(index) for index in range(len(results))]))
        return output(0) if results else None

    def _registers_of(self, result: Type) -> list[ir.Type]:
        if isinstance(result, types.UniTuple):
            return [WORD] * WORDS.count
        return [] if result == types.void else [self.context.get_value_type(result)]

    def pointer(self, array: Value, index: Value | int = 0) -> ir.Value:
        """The address of an element."""
        (place,) = self.places(array, index, 1)
        return place

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

    def shared_address(self, array: Value, index: Value) -> ir.Value:
        """The address of an element in shared memory's own space, 32 bits."""
        pointer = self.pointer(array, index)
        inside = self.builder.addrspacecast(pointer, pointer.type.pointee.as_pointer(_SHARED_SPACE))
        return self.builder.ptrtoint(inside, WORD)

    def unchanged(self, number: Value) -> ir.Value:
        """A number as it is."""
        return number.ir

    def narrow(self, number: Value) -> ir.Value:
        """An integer, cut to 32 bits."""
        return number.ir if number.ir.type == WORD else self.builder.trunc(number.ir, WORD)

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
        """What lies at an address, in one access of ``size`` bytes."""
        loaded = self.builder.load(self.builder.bitcast(pointer, kind.as_pointer()))
        loaded.align = size
        return loaded

    def store(self, value: ir.Value, pointer: ir.Value, size: int = BYTES) -> None:
        """Store at an address, in one access of ``size`` bytes."""
        stored = self.builder.store(value, self.builder.bitcast(pointer, value.type.as_pointer()))
        stored.align = size

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
        data = self.builder.bitcast(self.builder.addrspacecast(variable, content.as_pointer()), array.data.type)
        size = kind.dtype.bitwidth // 8
        shape, strides = ([self.context.get_constant(types.intp, number)] for number in (elements, size))
        self.context.populate_array(array, data=data, shape=shape, strides=strides, itemsize=size, meminfo=None)
        return array._getvalue()

    def in_module(self, index: Value, name: str, kind: Type, elements: int) -> ir.Value:
        """The address of an element of an array of the module."""
        return self.pointer(Value(kind, self.module_array(name, kind, elements)), index)


def _letter(kind: ir.Type) -> str:
    return _LETTERS.get(str(kind), "l")


def _together(kinds: list[ir.Type]) -> ir.Type:
    """What inline assembly returns that writes values of these types."""
    if len(kinds) > 1:
        return ir.LiteralStructType(kinds)
    return kinds[0] if kinds else ir.VoidType()


def _filled(text: str, args: Sequence[Value | int]) -> str:
    """PTX text with the size of the first array's elements, or with a literal."""
    kinds = [each.kind for each in args if isinstance(each, Value)]
    if "%b" in text:
        bits = next(kind.dtype.bitwidth for kind in kinds if hasattr(kind, "dtype"))
        text = text.replace("%bits", str(bits)).replace("%bytes", str(bits // 8))
    if "%literal" in text:
        text = text.replace("%literal", str(kinds[0].literal_value))
    return text
