"""Kernels in Numba's dialect as numba-cuda-mlir reads them: the names that they use, and the rule of unsigned integers.

numba-cuda-mlir has Numba's dialect under names of its own. A kernel is compiled from the same bytecode, with its
``cuda``, its types and the functions that it calls replaced by those of numba-cuda-mlir.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any

from smembench.kernels.rebound import Rebound


def translated(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function of the names of numba-cuda-mlir."""
    from numba.core.types import Type
    from numba_cuda_mlir import cuda as mlir_cuda
    from numba_cuda_mlir.numba_cuda import types

    from smembench.kernels.numba_cuda import cuda

    def other(value: Any, name: str) -> Any:
        if value is cuda:
            return mlir_cuda
        if isinstance(value, Type):
            return getattr(types, value.name)
        return mlir_cuda.jit(device=True)(copies.function(value)) if isinstance(value, FunctionType) else value

    copies = Rebound(other)
    assert isinstance(function, FunctionType), function
    return copies.function(function)


@cache
def install() -> None:
    """Put the rule of kernels/intrinsics/unsigned.py before the typing of numba-cuda-mlir.

    Its lowering computes in the type of the result, so that the rule needs none of its own.
    """
    from numba_cuda_mlir.descriptor import mlir_target
    from numba_cuda_mlir.install_registry import register_lowering
    from numba_cuda_mlir.numba_cuda import types
    from numba_cuda_mlir.numba_cuda.types.ext_types import dim3
    from numba_cuda_mlir.numba_cuda.typing.templates import AbstractTemplate, AttributeTemplate, signature

    from smembench.kernels.intrinsics.unsigned import ARITHMETIC, COMPARISON, IN_PLACE, common

    def adapted(operation: Callable[..., Any]) -> type[Any]:
        class Adapted(AbstractTemplate):  # type: ignore[misc]
            key, prefer_literal = operation, True

            def generic(self, args: Any, kws: Any) -> Any:
                if len(args) != 2:
                    return None
                one, other = args
                kind = common(one, other, types)
                result = types.boolean if operation in COMPARISON else kind
                return None if kind is None else signature(result, kind, kind)

        return Adapted

    class Dim3(AttributeTemplate):  # type: ignore[misc]
        key = dim3

        def generic_resolve(self, value: Any, attr: str) -> Any:
            return types.uint32 if attr in ("x", "y", "z") else None

    register_lowering()
    mlir_target.ensure_initialized()
    context = mlir_target.typing_context
    for operation in (*ARITHMETIC, *IN_PLACE, *COMPARISON):
        function = context.resolve_value_type(operation)
        function.templates = (adapted(operation), *function.templates)
    context._attributes[dim3].insert(0, Dim3(context))
