"""The arguments of a launch, as text or as Python values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from smembench.explain.foreign import Argument, ArrayArgument, Dimensions
from smembench.explain.tensor_maps import parsed_map
from smembench.model.errors import UsageError

_ARRAY = re.compile(r"(\w+)\[([\d\s,]+)\]", re.ASCII)
_SCALAR = re.compile(r"(\w+)\s+(\S+)", re.ASCII)
_NAMED = re.compile(r"([A-Za-z_]\w*)=(.+)", re.ASCII)
_WORD = re.compile(r"(?!True$|False$|inf$|nan$)[A-Za-z_][\w.]*(?<!\.npy)", re.ASCII)
"""A constant of Triton's that is text, such as ieee or tl.float16."""
_FORMS = (
    "write float32[4096,4096] for an array, a number, float32 1.5 for one of this type, or the path of a .npy file for "
    "an array with its data"
)


def dimensions(text: str, name: str) -> Dimensions:
    """The dimensions of a grid or a block from text such as ``32x8``.

    Raises:
        UsageError: for anything else.
    """
    sides = re.split("[xX×]", text)
    if not all(re.fullmatch(r"\d{1,10}", side, re.ASCII) for side in sides) or len(sides) > 3:
        raise UsageError(f"{name} {text!r}: write 1 to 3 dimensions, such as 128, 32x8 or 8x8x4")
    return tuple(map(int, sides))


def parsed(text: str) -> Argument:
    """An argument from the command line.

    Raises:
        UsageError: for text that is none, and a file that cannot be read.
    """
    if text.lower().endswith(".npy"):
        return _loaded(Path(text))
    if text.startswith("tensormap("):
        return parsed_map(text)
    if match := _ARRAY.fullmatch(text):
        try:
            dtype = np.dtype(match[1])
            shape = tuple(int(side) for side in match[2].split(","))
        except (TypeError, ValueError):
            raise UsageError(f"--arg {text!r}: {_FORMS}") from None
        return ArrayArgument(shape, dtype)
    if match := _SCALAR.fullmatch(text):
        try:
            typed: np.generic = np.dtype(match[1]).type(match[2])
        except (TypeError, ValueError, OverflowError):
            raise UsageError(f"--arg {text!r}: {_FORMS}") from None
        return typed
    for number in (int, float, complex):
        try:
            return number(text)
        except ValueError:
            continue
    if text in ("True", "False"):
        return text == "True"
    raise UsageError(f"--arg {text!r}: {_FORMS}")


def from_python(value: Any) -> Argument:
    """An argument as a launch in Python has it: text as above, a number, or an array; NumPy's have their data.

    Raises:
        UsageError: for anything else.
    """
    if isinstance(value, str):
        return parsed(value)
    if isinstance(value, np.ndarray) and value.ndim:
        return ArrayArgument(value.shape, value.dtype, value)
    if isinstance(value, int | float | complex | np.number | np.bool_):
        return value if isinstance(value, int | float | complex) else value.item()
    try:
        return ArrayArgument(tuple(map(int, value.shape)), np.dtype(value.dtype))
    except (AttributeError, TypeError):
        raise UsageError(f"{value!r}: is no argument of a kernel; give an array, a number or text: {_FORMS}") from None


def in_order_and_named(values: Iterable[Any]) -> tuple[list[Argument], dict[str, Any]]:
    """Arguments as ``from_python`` takes them; those of text such as ``BLOCK=128``, which have a name, apart.

    Raises:
        UsageError: for anything else, and a name that comes twice.
    """
    in_order: list[Argument] = []
    named: dict[str, Any] = {}
    for value in values:
        if not isinstance(value, str) or (match := _NAMED.fullmatch(value)) is None:
            in_order.append(from_python(value))
        elif match[1] in named:
            raise UsageError(f"--arg {value!r}: {match[1]} was given before")
        else:
            named[match[1]] = match[2] if _WORD.fullmatch(match[2]) else parsed(match[2])
    return in_order, named


def sides(value: int | Sequence[int]) -> Dimensions:
    """The dimensions of a grid or a block as a launch in Python has them."""
    return (value,) if isinstance(value, int) else tuple(map(int, value))


def _loaded(path: Path) -> ArrayArgument:
    try:
        data = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "is no array in NumPy's format"
        raise UsageError(f"--arg {path}: {reason}") from None
    return ArrayArgument(data.shape, data.dtype, data)
