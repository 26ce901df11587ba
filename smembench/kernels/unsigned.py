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

``install`` puts the rule before Numba's own for all CUDA kernels of the process, those from other files included. To
Numba an ``int`` is an ``int64``: a kernel that computes with negative numbers converts its unsigned operands first.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from numba.cuda import types
from numba.cuda.descriptor import cuda_target
from numba.cuda.types.ext_types import dim3
from numba.cuda.typing.templates import AbstractTemplate, AttributeTemplate, signature

_NAMES = ("add", "sub", "mul", "floordiv", "mod", "and_", "or_", "xor", "lshift", "rshift")
_IN_PLACE = ("iadd", "isub", "imul", "ifloordiv", "imod", "iand", "ior", "ixor", "ilshift", "irshift")
_ARITHMETIC = [min, max, *(getattr(operator, name) for name in (*_NAMES, *_IN_PLACE))]
_COMPARISON = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]
_UNSIGNED = (types.uint32, types.uint64)


def common(one: Any, other: Any) -> Any:
    """The unsigned type in which Numba should compute with two operands of these types; None to leave it to Numba."""
    for kind in _UNSIGNED:
        if kind in (one, other) and all(operand == kind or _is_int(operand, kind.bitwidth) for operand in (one, other)):
            return kind
    return None


def _is_int(operand: Any, bits: int) -> bool:
    """Whether an operand is Python's ``int`` to Numba, of a value that fits if it is known."""
    if isinstance(operand, types.IntegerLiteral):
        return bool(0 <= operand.literal_value < 2**bits)
    return bool(operand == types.int64)


def _rule(operation: Callable[..., Any], result: Any = None) -> type[Any]:
    """A typing template of an operation; its result has the operands' common type where ``result`` is None."""

    class Rule(AbstractTemplate):  # type: ignore[misc]
        key = operation

        def generic(self, args: Any, kws: Any) -> Any:
            kind = common(*args) if len(args) == 2 else None
            return None if kind is None else signature(result or kind, kind, kind)

    return Rule


class _Dim3(AttributeTemplate):  # type: ignore[misc]
    key = dim3

    def generic_resolve(self, value: Any, attr: str) -> Any:
        return types.uint32 if attr in ("x", "y", "z") else None


def install() -> None:
    """Put the rule before Numba's typing of operators and of ``threadIdx`` and its like, for the CUDA target alone."""
    context = cuda_target.typing_context
    context.refresh()
    for operations, result in ((_ARITHMETIC, None), (_COMPARISON, types.boolean)):
        for operation in operations:
            function = context.resolve_value_type(operation)
            function.templates = (_rule(operation, result), *function.templates)
    context._attributes[dim3].insert(0, _Dim3(context))
