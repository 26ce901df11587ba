"""Copies of functions under whose names stand other values: a kernel for another ``cuda``, while no module changes."""

from __future__ import annotations

import builtins
import dis
from collections.abc import Callable
from functools import cache
from types import CellType, CodeType, FunctionType
from typing import Any


class Rebound:
    """Copies of functions and of those that they call.

    Args:
        replace: what a value, given with its name, is replaced by; for a function usually ``self.function`` of it.
    """

    def __init__(self, replace: Callable[[Any, str], Any]) -> None:
        self._replace = replace
        self._copies: dict[FunctionType, FunctionType] = {}

    def function(self, function: FunctionType) -> FunctionType:
        """The copy of a function, the same for each call."""
        if function in self._copies:
            return self._copies[function]
        code, own = function.__code__, function.__globals__
        names = {"__builtins__": vars(builtins), "__name__": function.__module__}
        cells = tuple(CellType() for _ in code.co_freevars)
        copy = FunctionType(code, names, function.__name__, function.__defaults__, cells)
        copy.__kwdefaults__ = function.__kwdefaults__
        self._copies[function] = copy  # before its names, since it may call itself
        names |= {name: self._replace(own[name], name) for name in _global_names(code) if name in own}
        for name, cell, value in zip(code.co_freevars, cells, function.__closure__ or (), strict=True):
            cell.cell_contents = self._replace(value.cell_contents, name)
        return copy


@cache
def _global_names(code: CodeType) -> frozenset[str]:
    """The global names that a function and those defined in it read; ``co_names`` has those of attributes, too."""
    read = {one.argval for one in dis.get_instructions(code) if one.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return frozenset(read).union(*(_global_names(inner) for inner in code.co_consts if isinstance(inner, CodeType)))
