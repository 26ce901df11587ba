"""Constant memory that the host fills: ``__constant__`` and cudaMemcpyToSymbol for Numba kernels.

Numba's own ``cuda.const.array_like`` writes the values into the module when it is compiled. Here the module gets an
array of zeros that is visible by its name, as ``__constant__ float name[count];`` of CUDA C is. A program that names it
as its ``constant`` has the device copy that input there before a launch. Linking with optimisation of the whole program
would hide the name, so such a program is compiled with ``lto=False``.
"""

from __future__ import annotations

from typing import Any

from smembench.kernels.intrinsics.declaration import Type, register, types
from smembench.kernels.intrinsics.lowering import Code, Value
from smembench.kernels.types import Array

_ADDRESS_SPACE = 4
"""Constant memory in NVVM IR (NVVM IR Specification, "Address Spaces")."""


def constant_array(array: Array, name: str, count: int) -> Array:
    """The input ``array`` of ``count`` elements in constant memory, as the module's variable ``name``.

    ``name`` and ``count`` are literals or constants around the kernel; a kernel uses a name once. In the
    simulator it is the array itself.
    """
    return array


# LLVM IR: by the variable's space LLVM loads from constant memory.
def _lower(code: Code, array: Value, name: Value, count: Value) -> Any:
    return code.module_array(name.kind.literal_value, code.result, count.kind.literal_value, _ADDRESS_SPACE)


def _in_constant_memory(array: Type, name: Type, count: Type) -> Type:
    return types.Array(array.dtype, 1, "C", readonly=True)


register(constant_array, _lower, types.Array, types.StringLiteral, types.IntegerLiteral, result=_in_constant_memory)
