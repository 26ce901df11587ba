"""How a function becomes an intrinsic: a typing and a lowering beside its Python body.

A typing gives the Numba type of the result for those of the arguments, None if they do not fit. A lowering emits LLVM
IR by an ``ir.IRBuilder``, given Numba's target context, the signature, and the arguments as IR values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numba
from llvmlite import ir
from numba.cuda.typing.templates import CallableTemplate

from smembench.kernels.numba_cuda import DeviceFunction

if TYPE_CHECKING:
    from numba.cuda.core.base import BaseContext
    from numba.cuda.types import Type as NumbaType
    from numba.cuda.typing.templates import Signature as NumbaSignature

Context: TypeAlias = "BaseContext"
Signature: TypeAlias = "NumbaSignature"
Type: TypeAlias = "NumbaType"
Typer: TypeAlias = "Callable[..., Type | None]"
Values: TypeAlias = "Sequence[ir.Value]"

types: Any = numba.types  # its stub lacks UniTuple

LOWERINGS: list[tuple[Callable[..., ir.Value], DeviceFunction, tuple[type[Type], ...]]] = []
"""Lowerings with their functions and the types of the arguments, for Numba while it compiles here."""


def register(
    function: DeviceFunction,
    typing: Callable[[Context], Typer],
    lowering: Callable[..., ir.Value],
    *arguments: type[Type],
) -> None:
    """Make a plain function callable from kernels, by its typing and its lowering."""
    template = {"key": function, "generic": lambda self: typing(self.context)}
    intrinsic: Any = function
    intrinsic._numba_type_ = types.Function(type(function.__name__, (CallableTemplate,), template))
    LOWERINGS.append((lowering, function, arguments))


def assemble(builder: ir.IRBuilder, assembly: str, constraints: str = "", *args: ir.Value) -> None:
    """Emit inline assembly with a memory clobber, so that no memory access moves across it."""
    function = ir.FunctionType(ir.VoidType(), [arg.type for arg in args])
    builder.call(ir.InlineAsm(function, assembly, f"{constraints}~{{memory}}", side_effect=True), args)


def register_instruction(function: DeviceFunction, assembly: str, *, constant: bool = False) -> None:
    """Make a function without a result callable from kernels as inline assembly.

    With ``constant`` it has an argument, an integer literal that stands in place of ``{}``.
    """

    def lower(context: Context, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
        assemble(builder, assembly.format(*(kind.literal_value for kind in signature.args)))
        return context.get_dummy_value()

    def of_literal(value: Type) -> Type | None:
        return types.void if isinstance(value, types.IntegerLiteral) else None

    typer: Typer = of_literal if constant else lambda: types.void
    register(function, lambda _context: typer, lower, *[types.IntegerLiteral] * constant)
