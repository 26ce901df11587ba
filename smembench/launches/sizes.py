"""Sizes by name in the texts of a launch: ``float32[n,n]``, ``cdiv(n, 32),n``."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from smembench.launches.dimensions import Dimensions, dimensions
from smembench.launches.expression import FUNCTIONS, evaluated, parsed
from smembench.launches.live import is_token
from smembench.model.errors import UsageError

Sizes = Mapping[str, int]
_SHAPE = re.compile(r"(?<=\w)\[([^\]]*)\]")
_NAMED = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)


def number(text: str | int, sizes: Sizes, name: str) -> int:
    """The value of an expression, such as ``2*n*n*n``.

    Raises:
        UsageError: for text that is none, and for a name that is no size.
    """
    try:
        return evaluated(parsed(str(text)), sizes)
    except ValueError as error:
        hint = "" if sizes else "; give a size with --sweep, such as n=1024"
        raise UsageError(f"{name} {str(text)!r}: {error}{hint}") from None


def dimensions_of(text: str | int, sizes: Sizes, name: str) -> Dimensions:
    """The dimensions of ``32x8``, or of expressions with commas between them: ``cdiv(n, 32),n//8``.

    Raises:
        UsageError: for anything else.
    """
    if re.fullmatch(r"[\dxX×]+", str(text), re.ASCII):
        return dimensions(str(text), name)
    try:
        tree = parsed(f"({text},)")
    except ValueError as error:
        raise UsageError(f"{name} {text!r}: {error}") from None
    parts = [ast.unparse(side) for side in tree.elts] if isinstance(tree, ast.Tuple) else []
    return dimensions("x".join(str(number(part, sizes, name)) for part in parts), name)


def argument(text: str, sizes: Sizes) -> str:
    """An argument with numbers in place of the sizes that it names.

    Raises:
        UsageError: for a shape of something else than sizes and whole numbers.
    """
    if is_token(text):
        return text
    if (named := _NAMED.fullmatch(text)) is not None:
        return f"{named[1]}={argument(named[2], sizes)}"
    if "[" in text:
        return _SHAPE.sub(lambda shape: f"[{','.join(map(str, _shape(shape[1], sizes, text)))}]", text)
    try:
        names = {node.id for node in ast.walk(parsed(text)) if isinstance(node, ast.Name)} - FUNCTIONS.keys()
    except ValueError:
        return text
    return str(number(text, sizes, "--arg")) if names and names <= sizes.keys() else text


def _shape(text: str, sizes: Sizes, whole: str) -> Dimensions:
    tree = parsed(f"({text},)") if text.strip() else None
    if not isinstance(tree, ast.Tuple):
        raise UsageError(f"--arg {whole!r}: write the sides of an array, as in float32[1024,n]")
    return tuple(number(ast.unparse(side), sizes, f"--arg {whole!r}: side") for side in tree.elts)
