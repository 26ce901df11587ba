"""Unsigned integers in this package's kernels follow NumPy 2: ``uint32`` stays ``uint32``, and an ``int`` adapts to it.

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

The rule is ``applied`` to one kernel, those in kernel files included, with what is inlined into it, and only while that
is compiled: any other kernel, and a device function of ``cuda.jit`` that this one calls, is what Numba makes of it. A
literal that does not fit, such as -1, is an error as in NumPy; a variable wraps around. To compute with negative or
larger numbers, convert the unsigned operand.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from smembench.kernels.intrinsics.declaration import register, types
from smembench.kernels.intrinsics.lowering import WIDE, WORD, Code, Value
from smembench.kernels.numba_cuda import private

Operation = Callable[..., Any]

ARITHMETIC = [
    operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod,
    operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift,
]  # fmt: skip
IN_PLACE = [
    operator.iadd, operator.isub, operator.imul, operator.ifloordiv, operator.imod,
    operator.iand, operator.ior, operator.ixor, operator.ilshift, operator.irshift,
]  # fmt: skip
COMPARISON = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]


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


def _signature(*kinds: Any) -> Any:
    """The result's type, then those of the arguments."""
    return private("numba.cuda.typing.templates.signature")(*kinds)


def _narrow(computed: Operation) -> Operation:
    """An operation on two ``uint32``, computed in 64 bits as Numba does and cut to the lower 32.

    LLVM narrows that again. The kernels' machine code is what explicit casts gave; 32-bit operations from the start
    lead LLVM to unroll and schedule loops differently.
    """

    def narrow(one: Any, other: Any) -> None:
        """Numba finds the lowering by this function."""

    def lower(code: Code, *operands: Value) -> Any:
        compute = code.context.get_function(computed, _signature(types.uint64, types.uint64, types.uint64))
        wide = compute(code.builder, [code.builder.zext(operand.ir, WIDE) for operand in operands])
        return code.builder.trunc(wide, WORD)

    return register(narrow, lower, types.uint32, types.uint32, result=types.uint32)


_NARROW = {
    operation: _narrow(computed)
    for operations in (ARITHMETIC, IN_PLACE)
    for operation, computed in zip(operations, ARITHMETIC, strict=True)
}


def _rule(operation: Operation, applies: Callable[[], bool]) -> type[Any]:
    """A typing template: two ``uint32`` give one, and an ``int`` is converted to the other operand's unsigned type."""
    template: Any = private("numba.cuda.typing.templates.AbstractTemplate")

    class Rule(template):  # type: ignore[misc]
        key, prefer_literal = operation, True

        def generic(self, args: Any, kws: Any) -> Any:
            kind = common(*args) if len(args) == 2 and applies() else None
            if kind == types.uint32 and operation in _NARROW:
                return _signature(kind, kind, kind)
            if kind is None or args == (kind, kind):
                return None
            return self.context.resolve_function_type(operation, (kind, kind), {})

        def get_impl_key(self, sig: Any) -> Any:
            return _NARROW.get(operation, operation) if sig.return_type == types.uint32 else operation

    return Rule


@contextmanager
def applied(context: Any, function: Operation) -> Iterator[None]:
    """Put the rule before the rules of Numba's typing ``context`` for one kernel.

    For whoever has Numba's compiler lock. A function that the kernel calls and that is not inlined is typed meanwhile,
    and kept for other kernels; the rule is not for it.
    """

    def applies() -> bool:
        typed = context.callstack
        return not typed or typed[0].func_id.func is function

    dim3 = private("numba.cuda.types.ext_types.dim3")
    template: Any = private("numba.cuda.typing.templates.AttributeTemplate")

    class Dim3(template):  # type: ignore[misc]
        key = dim3

        def generic_resolve(self, value: Any, attr: str) -> Any:
            return types.uint32 if attr in ("x", "y", "z") and applies() else None

    axes = Dim3(context)
    operations: list[Operation] = [*ARITHMETIC, *IN_PLACE, *COMPARISON, min, max]
    rules = {operation: _rule(operation, applies) for operation in operations}
    for operation, rule in rules.items():
        _replace(context, operation, (rule, *context.resolve_value_type(operation).templates))
    context._attributes[dim3].insert(0, axes)
    try:
        yield
    finally:
        context._attributes[dim3].remove(axes)
        for operation, rule in rules.items():
            # What Numba has learned of an operation meanwhile stays.
            kept = [template for template in context.resolve_value_type(operation).templates if template is not rule]
            _replace(context, operation, kept)


def _replace(context: Any, operation: Operation, templates: Sequence[type[Any]]) -> None:
    context._remove_global(operation)
    context.insert_global(operation, types.Function(templates))
