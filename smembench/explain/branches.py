"""The statements of a source file of which a thread runs one or the other."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import cache
from linecache import getlines


@cache
def partners(filename: str) -> Mapping[int, int]:
    """Lines of statements in a branch of an ``if``, each with that of the statement in its place in the other branch.

    Only of branches without statements that have others in them, and of equal length.
    """
    found: dict[int, int] = {}
    for node in ast.walk(ast.parse("".join(getlines(filename)))):
        if isinstance(node, ast.If) and len(node.body) == len(node.orelse):
            both = (*node.body, *node.orelse)
            if not any(hasattr(statement, "body") for statement in both):
                for one, other in zip(node.body, node.orelse, strict=True):
                    found |= {one.lineno: other.lineno, other.lineno: one.lineno}
    return found
