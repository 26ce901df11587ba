"""The arguments of a launch, as text or as Python values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from smembench.explain.foreign import Argument, ArrayArgument, Dimensions
from smembench.explain.tensor_maps import parsed_map
from smembench.model.errors import UsageError

_ARRAY = re.compile(r"(\w+)\[([\d\s,]+)\]", re.ASCII)
_SCALAR = re.compile(r"(\w+)\s+(\S+)", re.ASCII)
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
