"""Constant memory that the host fills: ``__constant__`` and cudaMemcpyToSymbol for Numba kernels.

Numba's own ``cuda.const.array_like`` writes the values into the module when it is compiled. Here the module gets an
array of zeros that is visible by its name, as ``__constant__ float name[count];`` of CUDA C is. A program that names it
as its ``constant`` has the device copy that input there before a launch. Linking with optimisation of the whole program
would hide the name, so such a program is compiled with ``lto=False``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from llvmlite import ir

from smembench.kernels.intrinsics.lowering import register, types
from smembench.kernels.types import Array

if TYPE_CHECKING:
    from numba.cuda.core.base import BaseContext as Context
    from numba.cuda.types import Type
    from numba.cuda.typing.templates import Signature

_ADDRESS_SPACE = 4
"""Constant memory in NVVM IR (NVVM IR Specification, "Address Spaces")."""


def constant_array(array: Array, name: str, count: int) -> Array:
    """The input ``array`` of ``count`` elements in constant memory, as the module's variable ``name``.

    ``name`` and ``count`` are literals or constants around the kernel; a kernel uses a name once. In the
    simulator and in a trace it is the array itself.
    """
    return array


def _type(_context: Context) -> Callable[..., Type | None]:
    def typer(array: Type, name: Type, count: Type) -> Type | None:
        literal = isinstance(name, types.StringLiteral) and isinstance(count, types.IntegerLiteral)
        return types.Array(array.dtype, 1, "C", readonly=True) if literal and isinstance(array, types.Array) else None

    return typer


def _lower(context: Context, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]) -> ir.Value:
    _, name, count = signature.args
    element = context.get_data_type(signature.return_type.dtype)
    size = context.get_abi_sizeof(element)
    space = ir.ArrayType(element, count.literal_value)
    variable = ir.GlobalVariable(builder.module, space, name.literal_value, addrspace=_ADDRESS_SPACE)
    variable.initializer = ir.Constant(space, None)
    variable.align = size
    array = context.make_array(signature.return_type)(context, builder)
    generic = builder.addrspacecast(variable, space.as_pointer())
    context.populate_array(
        array,
        data=builder.bitcast(generic, array.data.type),
        shape=[context.get_constant(types.intp, count.literal_value)],
        strides=[context.get_constant(types.intp, size)],
        itemsize=context.get_constant(types.intp, size),
        meminfo=None,
    )
    return array._getvalue()


register(constant_array, _type, _lower, types.Array, types.StringLiteral, types.IntegerLiteral)
