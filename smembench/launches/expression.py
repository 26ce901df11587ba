"""Integer expressions that people type, such as ``lane // 8 * 64``: checked against a short list, then evaluated."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
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
            found = int(value)
        case ast.Name(id=name):
            if name not in names:
                raise ValueError(f"names {name}; there is only {', '.join(names) or 'no name'}")
            found = names[name]
        case ast.BinOp(left=left, op=op, right=right):
            found = _binary(op, evaluated(left, names), evaluated(right, names))
        case ast.UnaryOp(op=op, operand=operand):
            found = int(_operator(op)(evaluated(operand, names)))
        case ast.Compare(left=left, ops=ops, comparators=others):
            values = [evaluated(each, names) for each in (left, *others)]
            pairs = zip(ops, values[:-1], values[1:], strict=True)
            found = int(all(_operator(op)(one, other) for op, one, other in pairs))
        case ast.BoolOp(op=op, values=parts):
            joined = all if isinstance(op, ast.And) else any
            found = int(joined([evaluated(each, names) for each in parts]))
        case ast.IfExp(test=test, body=body, orelse=other):
            found = evaluated(body if evaluated(test, names) else other, names)
        case _:
            raise ValueError(f"has {ast.unparse(node)}; it takes integers, their operators and comparisons alone")
    if found.bit_length() > _MOST_BITS:
        raise ValueError(f"has values of more than {_MOST_BITS} bits")
    return found


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
