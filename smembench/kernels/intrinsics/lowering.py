"""How a function becomes an intrinsic: a typing and a lowering beside its Python body, registered with Numba.

A typing gives the Numba type of the result for those of the arguments, None if they do not fit. A lowering emits LLVM
IR by an ``ir.IRBuilder``, given Numba's target context, the signature, and the arguments as IR values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numba
from llvmlite import ir

from smembench.kernels.numba_cuda import DeviceFunction, lower_builtin, type_callable

if TYPE_CHECKING:
    from numba.cuda.core.base import BaseContext as Context
    from numba.cuda.types import Type
    from numba.cuda.typing.templates import Signature

    Typing = Callable[[Context], Callable[..., Type | None]]
    Lowering = Callable[[Context, ir.IRBuilder, Signature, Sequence[ir.Value]], ir.Value]

types: Any = numba.types  # its stub lacks UniTuple


def register(function: DeviceFunction, typing: Typing, lowering: Lowering, *arguments: type[Type]) -> None:
    """Make a plain function callable from kernels, by its typing and its lowering."""
    type_callable(function)(typing)
    lower_builtin(function, *arguments)(lowering)


def assemble(builder: ir.IRBuilder, assembly: str, constraints: str = "", *args: ir.Value) -> None:
    """Emit inline assembly with a memory clobber, so that no memory access moves across it."""
    function = ir.FunctionType(ir.VoidType(), [arg.type for arg in args])
    builder.call(ir.InlineAsm(function, assembly, f"{constraints}~{{memory}}", side_effect=True), args)
