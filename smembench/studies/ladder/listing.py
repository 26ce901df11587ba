"""The functions of a kernel with the constants that they close over, as text."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from pprint import pformat
from textwrap import dedent
from types import CodeType, FunctionType
from typing import TypeGuard

from smembench.kernels import intrinsics

_WIDTH = 100
"""Characters per line of a constant."""


@dataclass(frozen=True, slots=True)
class Part:
    """A function of a kernel: its file's name, its constants by name, and its lines.

    Where a function is made several times, such as per step along k, ``source`` of all but the first says so.
    """

    name: str
    file: str
    constants: Mapping[str, str]
    source: tuple[str, ...]


def parts(kernel: Callable[..., None]) -> list[Part]:
    """A kernel and the device functions that it calls, without intrinsics.

    Among the constants are the functions that it calls by another name than their own.
    """
    listed: list[Part] = []
    shown: set[tuple[CodeType, str]] = set()
    functions: list[Callable[..., object]] = [kernel]
    for function in functions:  # grows by what each calls
        closure = inspect.getclosurevars(function)
        known = dict(sorted({**closure.globals, **closure.nonlocals}.items()))
        constants = {name: text for name, value in known.items() if (text := _text(value)) not in ("", name)}
        code = function.__code__
        if (code, str(constants)) not in shown:
            again = any(code is other for other, _ in shown)
            source = f"def {function.__name__}: as above" if again else dedent(inspect.getsource(function))
            file = Path(code.co_filename).name
            listed.append(Part(function.__name__, file, constants, tuple(source.splitlines())))
            shown.add((code, str(constants)))
        functions += dict.fromkeys(value for value in known.values() if _is_shown(value) and value not in functions)
    return listed


def listing(kernel: Iterable[Part]) -> list[str]:
    """The lines of a kernel: those of each function, below its constants."""
    lines: list[str] = []
    for part in kernel:
        constants = [line for name, text in part.constants.items() for line in f"{name} = {text}".splitlines()]
        lines += [*constants, *part.source, ""]
    return lines[:-1]


def _text(value: object) -> str:
    """A constant, or a function's name; "" for modules, types and whatever else a kernel refers to."""
    if isinstance(value, FunctionType):
        return value.__name__
    return pformat(value, width=_WIDTH, compact=True) if isinstance(value, (int, str, tuple)) else ""


def _is_shown(value: object) -> TypeGuard[Callable[..., object]]:
    """True if a value is a function that is a part of the kernel, and no intrinsic."""
    return isinstance(value, FunctionType) and not value.__module__.startswith((intrinsics.__name__, "numba"))
