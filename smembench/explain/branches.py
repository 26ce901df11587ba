"""The statements of a source file that a thread runs or not, and those that it repeats, by lines."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from linecache import getlines


@cache
def partners(filename: str) -> Mapping[int, int]:
    """Lines of statements in a branch of an ``if``, each with that of the statement in its place in the other branch.

    Only of branches without statements that have others in them, and of equal length.
    """
    found: dict[int, int] = {}
    for node in _branches(filename):
        if len(node.body) == len(node.orelse):
            for one, other in zip(node.body, node.orelse, strict=True):
                found |= {one.lineno: other.lineno, other.lineno: one.lineno}
    return found


@cache
def decided(filename: str) -> Mapping[int, Sequence[int]]:
    """Lines of conditions, each with those of the statements that only threads run for which it is true."""
    alone = (node for node in _branches(filename) if not node.orelse)
    return {node.test.lineno: [statement.lineno for statement in node.body] for node in alone}


@cache
def counted(filename: str) -> Mapping[int, Sequence[str]]:
    """Lines in loops over a range from a literal number on, each with the loops' variables, the outermost first.

    In a thread's n-th pass of such a loop the variable is the same for all threads, whatever it skipped before.
    """
    found: dict[int, list[str]] = {}
    for node in ast.walk(ast.parse("".join(getlines(filename)))):
        match node:
            case ast.For(ast.Name(variable), ast.Call(ast.Name("range"), [_] | [ast.Constant(), _, *_])):
                for line in range(node.body[0].lineno, (node.end_lineno or 0) + 1):
                    found.setdefault(line, []).append(variable)
    return found


def _branches(filename: str) -> Iterator[ast.If]:
    for node in ast.walk(ast.parse("".join(getlines(filename)))):
        if isinstance(node, ast.If) and not any(hasattr(each, "body") for each in (*node.body, *node.orelse)):
            yield node
