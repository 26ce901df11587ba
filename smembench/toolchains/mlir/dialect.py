"""Kernels in Numba's dialect as numba-cuda-mlir reads them: the names that they use, and the rule of unsigned integers.

numba-cuda-mlir has Numba's dialect under names of its own. A kernel is compiled from the same bytecode, with its
``cuda``, its types and the functions that it calls replaced by those of numba-cuda-mlir.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any

from smembench.kernels.rebound import Rebound


def translated(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function of the names of numba-cuda-mlir."""
    from numba.core.types import Type
    from numba_cuda_mlir import cuda as mlir_cuda
    from numba_cuda_mlir import types

    from smembench.kernels.intrinsics.declaration import TABLE
    from smembench.kernels.numba_cuda import cuda
    from smembench.toolchains.mlir.intrinsics import counterpart
    from smembench.toolchains.mlir.replaced import made_in_kernels

    def other(value: Any, name: str) -> Any:
        if value is cuda:
            return mlir_cuda
        if isinstance(value, Type):
            return getattr(types, value.name)
        if isinstance(value, type) and issubclass(value, tuple):
            made_in_kernels(value)
        if not isinstance(value, FunctionType):
            return value
        known = intrinsics.get(value)
        return counterpart(known) if known else mlir_cuda.jit(device=True)(copies.function(value))

    intrinsics = {intrinsic.function: intrinsic for intrinsic in TABLE}
    copies = Rebound(other)
    assert isinstance(function, FunctionType), function
    return copies.function(function)


@contextmanager
def compiling(capability: tuple[int, int]) -> Iterator[None]:
    """numba-cuda-mlir with the rule of kernels/intrinsics/unsigned.py before its typing, for one kernel at a time.

    Most of its lowerings compute in the type of the result, so that the rule needs none of its own; those that take
    unsigned integers for signed ones get other ones. It asks the driver for the GPU's compute capability, whatever it
    compiles for; given one, it compiles without a GPU, too.
    """
    from smembench.kernels.intrinsics.unsigned import ARITHMETIC, COMPARISON, IN_PLACE, common
    from smembench.kernels.numba_cuda import private
    from smembench.toolchains.mlir.replaced import fences_in_kernels, replaced

    mlir_target, tools = private("numba_cuda_mlir.descriptor.mlir_target"), private("numba_cuda_mlir.tools")
    dim3 = private("numba_cuda_mlir.numba_cuda.types.ext_types.dim3")
    types = private("numba_cuda_mlir.numba_cuda.types")
    templates: Any = private("numba_cuda_mlir.numba_cuda.typing.templates")

    def adapted(operation: Callable[..., Any]) -> type[Any]:
        class Adapted(templates.AbstractTemplate):  # type: ignore[misc]
            key, prefer_literal = operation, True

            def generic(self, args: Any, kws: Any) -> Any:
                if len(args) != 2:
                    return None
                one, other = args
                kind = common(one, other, types)
                result = types.boolean if operation in COMPARISON else kind
                return None if kind is None else templates.signature(result, kind, kind)

        return Adapted

    class Dim3(templates.AttributeTemplate):  # type: ignore[misc]
        key = dim3

        def generic_resolve(self, value: Any, attr: str) -> Any:
            return types.uint32 if attr in ("x", "y", "z") else None

    with private("numba_cuda_mlir.numba_cuda.core.compiler_lock.global_compiler_lock"):
        private("numba_cuda_mlir.install_registry.register_lowering")()
        mlir_target.ensure_initialized()
        fences_in_kernels()
        context, known = mlir_target.typing_context, tools._cached_cc
        functions = [context.resolve_value_type(op) for op in (*ARITHMETIC, *IN_PLACE, *COMPARISON, min, max)]
        rules = [adapted(function.templates[0].key) for function in functions]
        axes = Dim3(context)
        for function, rule in zip(functions, rules, strict=True):
            function.templates = (rule, *function.templates)
        context._attributes[dim3].insert(0, axes)
        definitions = mlir_target.target_context._defns
        others = replaced(definitions, types)
        own = {operation: definitions[operation] for operation in others}
        definitions.update(others)
        tools._cached_cc = capability
        try:
            yield
        finally:
            tools._cached_cc = known
            definitions.update(own)
            context._attributes[dim3].remove(axes)
            for function, rule in zip(functions, rules, strict=True):
                function.templates = tuple(template for template in function.templates if template is not rule)
