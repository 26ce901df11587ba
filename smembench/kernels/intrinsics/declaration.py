"""The table of intrinsics: what each compiles to, as data that ``lowering`` reads, beside its Python body.

Most are PTX text, declared by ``Ptx``, the decorator of the Python body: the name and the arguments are the function's,
and of each operand the declaration has what it is and which arguments give it. ``register`` declares one of several
instructions, and where PTX text would cost speed what emits LLVM IR by ``lowering.Code``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import numba

from smembench.kernels.numba_cuda import DeviceFunction

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


class TensorMapType(types.Type):  # type: ignore[misc]
    """The type of a parameter that is a tensor map, passed by value; kernels use its address."""


TENSOR_MAP = TensorMapType("CUtensorMap")


class Operand(NamedTuple):
    """The operand for a ``$n`` of PTX text, or for one per register.

    Attributes:
        kind: the method of ``lowering.Code`` that makes it of arguments.
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

    def at(self, first: int) -> Operand:
        """Registers from a constant place on, which no argument gives."""
        return self._replace(arguments=self.arguments[:1], parameters=(first, *self.parameters))


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
MAP = Operand("unchanged", (TensorMapType,))
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
        more: ``fits``, ``result`` and ``constant`` of ``Intrinsic``. A tuple as the result comes in four words.
    """

    def __init__(self, text: str, *operands: Operand, volatile: bool = True, memory: bool = True, **more: Any) -> None:
        self.text, self.operands, self.volatile, self.memory, self._more = text, operands, volatile, memory, more

    def __call__(self, function: Function) -> Function:
        """Make a function callable from kernels as this text."""
        arguments = [kind for operand in self.operands for kind in operand.arguments]
        return register(function, (self,), *arguments, **self._more)

    def filled(self, kinds: Sequence[Type]) -> str:
        """The text for arguments of these types."""
        text = self.text
        if "%b" in text:
            bits = next(kind.dtype.bitwidth for kind in kinds if hasattr(kind, "dtype"))
            text = text.replace("%bits", str(bits)).replace("%bytes", str(bits // 8))
        return text.replace("%literal", str(kinds[0].literal_value)) if "%literal" in text else text


@dataclass(frozen=True)
class Intrinsic:
    """A line of the table.

    Attributes:
        function: its name, the names of its arguments, and what the simulator and a trace run.
        emits: what a call compiles to: instructions in order, or what emits LLVM IR, by ``lowering.Code`` and a
            ``lowering.Value`` per argument.
        arguments: their types.
        fits: whether these suit each other, too.
        result: the function's type, or what gives it by the types of the arguments.
        constant: the result, if instructions do not give it, for the compiler to know.
    """

    function: DeviceFunction
    emits: tuple[Ptx, ...] | Callable[..., Any]
    arguments: tuple[Wanted, ...]
    fits: Callable[..., bool] | None = None
    result: Result = types.void
    constant: int | None = None

    def type_of(self, *kinds: Type) -> Type | None:
        """The type of a call with arguments of these types; None if it does not take them."""
        if not all(map(_suits, kinds, self.arguments)) or (self.fits and not self.fits(*kinds)):
            return None
        return self.result if isinstance(self.result, types.Type) else self.result(*kinds)


TABLE: list[Intrinsic] = []
"""Every intrinsic; a kernel adds those that are made for its constants when it is built."""


def register(
    function: Function, emits: tuple[Ptx, ...] | Callable[..., Any], *arguments: Wanted, **typing: Any
) -> Function:
    """Make a function callable from kernels; the parameters are the fields of ``Intrinsic``."""
    TABLE.append(Intrinsic(function, emits, arguments, **typing))
    return function


def _suits(kind: Type, wanted: Wanted) -> bool:
    if isinstance(wanted, type):
        return isinstance(kind, wanted)
    arrays = isinstance(kind, types.Array) and isinstance(wanted, types.Array)
    return bool(kind.dtype == wanted.dtype if arrays else kind == wanted)
