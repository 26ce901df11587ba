"""The source of functions and constants in files of Python, wherever they are defined."""

import ast
from collections.abc import Callable
from pathlib import Path


def source(file: Path, path: str, decorated: Callable[[str], bool] = lambda decorator: True) -> str:
    """The text of a function or of the assignment of a constant, at the margin.

    Args:
        file: where it is defined, at the top or inside of other functions and classes.
        path: its name behind those of what it is defined in, with dots between. The last function of this name is
            taken, which of two branches is the usual one, or else the last assignment.
        decorated: whether a function keeps a decorator.

    Raises:
        LookupError: if there is none.
    """
    scopes: list[ast.AST] = [ast.parse(file.read_text())]
    for name in path.split("."):
        scopes = [item for scope in scopes for item in _defined(scope) if _name(item) == name]
    if not scopes:
        raise LookupError(f"{file.name} has no {path}")
    result = ([item for item in scopes if isinstance(item, ast.FunctionDef)] or scopes)[-1]
    if isinstance(result, ast.FunctionDef):
        result.decorator_list = [item for item in result.decorator_list if decorated(ast.unparse(item))]
    return ast.unparse(result)


def _name(definition: ast.AST) -> str:
    """The name that a definition gives; "" if it gives several."""
    if isinstance(definition, ast.FunctionDef | ast.ClassDef):
        return definition.name
    targets = definition.targets if isinstance(definition, ast.Assign) else []
    return targets[0].id if len(targets) == 1 and isinstance(targets[0], ast.Name) else ""


def _defined(scope: ast.AST) -> list[ast.AST]:
    """What is defined in a scope itself, in branches and other blocks of it, too."""
    result: list[ast.AST] = []
    for child in ast.iter_child_nodes(scope):
        if isinstance(child, ast.FunctionDef | ast.ClassDef | ast.Assign):
            result.append(child)
        else:
            result += _defined(child)
    return result
