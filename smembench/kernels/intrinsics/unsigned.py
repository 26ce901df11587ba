"""Unsigned integers in CUDA kernels follow NumPy 2: ``uint32`` stays ``uint32``, and an ``int`` adapts to it.

Numba alone widens ``uint32 + uint32`` to ``uint64`` and turns ``uint64 + 1`` into a float, so index arithmetic would
need a cast around every operation. Under this rule it has the types of NumPy 2 (NEP 50) and of CUDA C:

| operands | result |
|---|---|
| two ``uint32`` | ``uint32`` |
| ``uint32`` and an ``int``: a literal, a constant, a loop variable | ``uint32`` |
| ``uint64`` and an ``int`` | ``uint64`` |
| ``uint32`` and ``uint64`` | ``uint64``, as before |
| any of them compared | ``bool``, compared in that type |

``min`` and ``max`` follow it too.

So results wrap around at their width, a difference too: write ``ix + 1 < nx``, not ``ix < nx - 1``, where nx may be 0.
``threadIdx``, ``blockIdx``, ``blockDim`` and ``gridDim`` count in ``uint32``.

``install`` puts the rule before Numba's own for all CUDA kernels of the process, those from other files included, but
not for what is compiled while it is ``suspended``. A literal that does not fit, such as -1, is an error as in NumPy; a
variable wraps around. To compute with negative or larger numbers, convert the unsigned operand.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir
from numba.cuda import types
from numba.cuda.extending import lower_builtin
from numba.cuda.types.ext_types import dim3
from numba.cuda.typing.templates import AbstractTemplate, AttributeTemplate, signature

ARITHMETIC = [
    operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod,
    operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift,
]  # fmt: skip
IN_PLACE = [
    operator.iadd, operator.isub, operator.imul, operator.ifloordiv, operator.imod,
    operator.iand, operator.ior, operator.ixor, operator.ilshift, operator.irshift,
]  # fmt: skip
COMPARISON = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]


_suspended = False


@contextmanager
def suspended() -> Iterator[None]:
    """Compile as Numba does alone."""
    global _suspended
    _suspended = True
    try:
        yield
    finally:
        _suspended = False


def common(one: Any, other: Any, types: Any = types) -> Any:
    """The unsigned type in which operands of these types are computed; None to leave it to Numba.

    An ``int`` of Python is an ``int64`` to Numba. ``types`` are Numba's or those of another compiler of its dialect.

    Raises:
        OverflowError: for a literal that the type does not hold.
    """
    for kind in (types.uint32, types.uint64):
        if kind in (one, other) and {types.unliteral(one), types.unliteral(other)} <= {kind, types.int64}:
            for operand in (one, other):
                if isinstance(operand, types.IntegerLiteral) and not 0 <= operand.literal_value < 2**kind.bitwidth:
                    raise OverflowError(f"{operand.literal_value} is out of bounds for {kind}")
            return kind
    return None


def _adapted(operation: Callable[..., Any]) -> type[Any]:
    """A typing template: an ``int`` is converted to the unsigned type of the other operand, and then Numba decides."""

    class Adapted(AbstractTemplate):  # type: ignore[misc]
        key, prefer_literal = operation, True

        def generic(self, args: Any, kws: Any) -> Any:
            kind = common(*args) if len(args) == 2 and not _suspended else None
            if kind is None or args == (kind, kind):
                return None
            return self.context.resolve_function_type(operation, (kind, kind), {})

    return Adapted


def _narrowed(operation: Callable[..., Any], computed: Callable[..., Any]) -> type[Any]:
    """A typing template: ``uint32`` gives ``uint32``, computed in 64 bits as Numba does and cut to the lower 32.

    LLVM narrows that again. The kernels' machine code is what explicit casts gave; 32-bit operations from the start
    lead LLVM to unroll and schedule loops differently.
    """

    def implementation() -> None:
        """Numba finds the lowering by this name."""

    class Narrowed(AbstractTemplate):  # type: ignore[misc]
        key, prefer_literal = operation, True

        def generic(self, args: Any, kws: Any) -> Any:
            fits = len(args) == 2 and not _suspended and common(*args) == types.uint32
            return signature(types.uint32, types.uint32, types.uint32) if fits else None

        def get_impl_key(self, sig: Any) -> Any:
            return implementation

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        compute = context.get_function(computed, signature(types.uint64, types.uint64, types.uint64))
        wide = compute(builder, [builder.zext(arg, ir.IntType(64)) for arg in args])
        return builder.trunc(wide, ir.IntType(32))

    lower_builtin(implementation, types.uint32, types.uint32)(lower)
    return Narrowed


class _Dim3(AttributeTemplate):  # type: ignore[misc]
    key = dim3

    def generic_resolve(self, value: Any, attr: str) -> Any:
        return types.uint32 if attr in ("x", "y", "z") and not _suspended else None


def install() -> None:
    """Put the rule before Numba's typing of operators and of ``threadIdx`` and its like, for the CUDA target alone.

    Numba loads its own rules when it first compiles, which takes half a second; this waits for that.
    """
    from numba.cuda.descriptor import cuda_target  # cannot be imported where Numba simulates

    context = cuda_target.typing_context
    load = context.refresh

    def refresh() -> None:
        load()
        if context.refresh is refresh:
            context.refresh = load
            _put_first(context)

    context.refresh = refresh


def _put_first(context: Any) -> None:
    operations: list[Any] = [*ARITHMETIC, *IN_PLACE, *COMPARISON, min, max]
    rules = {operation: [_adapted(operation)] for operation in operations}
    for narrowed in (ARITHMETIC, IN_PLACE):
        for operation, computed in zip(narrowed, ARITHMETIC, strict=True):
            rules[operation].insert(0, _narrowed(operation, computed))
    for operation, templates in rules.items():
        function = context.resolve_value_type(operation)
        function.templates = (*templates, *function.templates)
    context._attributes[dim3].insert(0, _Dim3(context))
