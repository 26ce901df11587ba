"""Integer expressions that people type, such as ``lane // 8 * 64``: checked against a short list, then evaluated."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_MOST_BITS = 64
_OPERATORS: Mapping[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
    ast.Not: operator.not_,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


FUNCTIONS: Mapping[str, Callable[..., int]] = {
    "cdiv": lambda number, by: -(-number // by),
    "min": lambda *numbers: min(numbers),
    "max": lambda *numbers: max(numbers),
}
"""``cdiv`` divides and rounds up, as grids are counted."""


def parsed(text: str) -> ast.expr:
    """The expression.

    Raises:
        ValueError: for text that is none; it says why.
    """
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"is no expression: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError):
        raise ValueError("is no expression") from None


def evaluated(node: ast.expr, names: Mapping[str, int]) -> int:
    """The value of an expression.

    Raises:
        ValueError: for what is no integer arithmetic with these names; it says why.
    """
    match node:
        case ast.Constant(value=int(value)):
            result = int(value)
        case ast.Name(id=name):
            result = _named(name, names)
        case ast.BinOp(left=left, op=op, right=right):
            result = _binary(op, evaluated(left, names), evaluated(right, names))
        case ast.UnaryOp(op=op, operand=operand):
            result = int(_operator(op)(evaluated(operand, names)))
        case ast.Compare(left=left, ops=ops, comparators=others):
            result = _compared(ops, [evaluated(part, names) for part in (left, *others)])
        case ast.BoolOp(op=op, values=parts):
            result = int((all if isinstance(op, ast.And) else any)([evaluated(part, names) for part in parts]))
        case ast.Call(func=ast.Name(id=name), args=given, keywords=[]) if name in FUNCTIONS and given:
            result = _called(FUNCTIONS[name], [evaluated(part, names) for part in given], ast.unparse(node))
        case ast.IfExp(test=test, body=body, orelse=other):
            result = evaluated(body if evaluated(test, names) else other, names)
        case _:
            raise ValueError(f"has {ast.unparse(node)}; it takes integers, their operators and comparisons alone")
    if result.bit_length() > _MOST_BITS:
        raise ValueError(f"has values of more than {_MOST_BITS} bits")
    return result


def _named(name: str, names: Mapping[str, int]) -> int:
    if name not in names:
        raise ValueError(f"names {name}; there is {'only ' if names else ''}{', '.join(names) or 'no name'}")
    return names[name]


def _compared(operators: Sequence[ast.cmpop], values: Sequence[int]) -> int:
    pairs = zip(operators, values[:-1], values[1:], strict=True)
    return int(all(_operator(op)(one, other) for op, one, other in pairs))


def _called(function: Callable[..., int], values: Sequence[int], text: str) -> int:
    try:
        return function(*values)
    except (TypeError, ZeroDivisionError):
        raise ValueError(f"has {text}, which has no value") from None


def _operator(op: ast.AST) -> Callable[..., Any]:
    if type(op) not in _OPERATORS:
        hint = ", write // for whole numbers" if isinstance(op, ast.Div) else ""
        raise ValueError(
            f"has the operator {type(op).__name__}{hint}; it takes + - * // % << >> & | ^ ~ and comparisons"
        )
    return _OPERATORS[type(op)]


def _binary(op: ast.AST, left: int, right: int) -> int:
    compute = _operator(op)
    if isinstance(op, ast.LShift | ast.RShift) and not 0 <= right <= _MOST_BITS:
        raise ValueError(f"shifts by {right} bits")
    try:
        return int(compute(left, right))
    except ZeroDivisionError:
        raise ValueError("divides by zero") from None
