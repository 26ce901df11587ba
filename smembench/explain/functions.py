"""Python's, math's and NumPy's functions, for numbers, for numbers per thread and for unknown ones."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Iterator
from functools import reduce
from types import ModuleType
from typing import Any

import numpy as np

from smembench.explain.lockstep import Values
from smembench.explain.unknown import Unknown

_IN_NUMPY = {"fabs": "abs", "pow": "power", "atan2": "arctan2"} | {
    f"a{name}{h}": f"arc{name}{h}" for name in ("sin", "cos", "tan") for h in ("", "h")
}
"""Functions of ``math`` that NumPy calls otherwise."""

_WHOLE = ("ceil", "floor", "trunc")
"""Functions of ``math`` that return integers."""


def following(function: Callable[..., Any], per_thread: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """A function that returns an argument that is unknown, and takes numbers per thread, by ``per_thread`` if given."""

    def followed(*arguments: Any, **options: Any) -> Any:
        for argument in arguments:
            if isinstance(argument, Unknown):
                return argument
        if per_thread is not None and any(isinstance(argument, Values) for argument in arguments):
            return per_thread(*arguments)
        return function(*arguments, **options)

    return followed


def integer(number: Any) -> Any:
    """A number, or one per thread, as Numba's arithmetic has it: 64 bits, whatever its type."""
    return number.astype(np.int64) if isinstance(number, np.ndarray | np.generic) else int(number)


class Cast:
    """In place of a type of Numba or NumPy: ``float32(x)`` converts, and shared arrays take its name."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._dtype = dtype

    def __str__(self) -> str:
        return str(self._dtype)

    def __call__(self, value: Any = 0) -> Any:
        """The number in this type; integers of fewer than 64 bits then have 64, as in Numba's arithmetic."""
        if isinstance(value, Unknown):
            return value
        cast = value.astype(self._dtype) if isinstance(value, Values) else np.asarray(value).astype(self._dtype)[()]
        return integer(cast) if self._dtype.kind in "iu" and self._dtype.itemsize < 8 else cast


def _range(*bounds: Any) -> Any:
    if not any(isinstance(bound, Values | Unknown) for bound in bounds):
        return range(*map(int, bounds))
    for bound in bounds:
        if isinstance(bound, Unknown):
            bound.needed("the length of a loop")
            return range(0)
    start, stop, step = bounds if len(bounds) == 3 else (*((0, *bounds)[-2:]), 1)
    return _counted(start, stop, step)


def _counted(number: Any, stop: Any, step: Any) -> Iterator[Any]:
    upwards = bool(step > 0)
    while number < stop if upwards else number > stop:
        yield number
        number = number + step


def _extreme(plain: Callable[..., Any], both: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return following(plain, lambda *values: reduce(both, values))


BUILTINS: dict[str, Any] = {
    **vars(builtins),
    "abs": following(abs, np.abs),
    "bool": following(bool, lambda value: value != 0),
    "complex": following(complex, lambda real, imag=0: real + 1j * imag),
    "float": following(float, lambda value: value.astype(np.float64)),
    "int": following(int, lambda value: np.trunc(value).astype(np.int64)),
    "max": _extreme(max, np.maximum),
    "min": _extreme(min, np.minimum),
    "pow": following(pow, np.power),
    "print": lambda *values: None,
    "range": _range,
    "round": following(round, np.round),
}
"""The built-in names of a traced function."""


def from_module(module: ModuleType, name: str) -> Any:
    """What a function of ``math`` or NumPy is replaced by; None for anything else."""
    found = getattr(module, name)
    if module is math and callable(found):
        in_numpy = getattr(np, _IN_NUMPY.get(name, name), None)
        if name in _WHOLE:
            return following(found, lambda value: integer(in_numpy(value)))  # type: ignore[misc]
        return following(found, in_numpy)
    if isinstance(found, np.ufunc):
        return following(found)
    return None
