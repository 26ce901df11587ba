"""The arguments of a launch, as text or as Python values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Sized
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401 - so that NumPy knows the name bfloat16
import numpy as np

from smembench.launches.array_argument import Argument, ArrayArgument
from smembench.launches.library_arrays import on_host
from smembench.launches.live import is_token, value_of
from smembench.launches.tensor_map_argument import parsed_map
from smembench.model.errors import UsageError
from smembench.model.formats import FLOAT8, element_type
from smembench.model.text import brief, number_of

_ARRAY = re.compile(
    r"(\w+)\[([\d\s,]+)\](?:\s+strides\s+(\d+(?:[xX×]\d+)*))?(?:\s+offset\s+(\d+))?", re.ASCII | re.IGNORECASE
)
_SCALAR = re.compile(r"(\w+)\s+(\S+)", re.ASCII)
_FILE = re.compile(r"(?:(\w+)\s+)?(\S.*\.npy)", re.ASCII | re.IGNORECASE)
_NAMED = re.compile(r"([A-Za-z_]\w*)=(.+)", re.ASCII)
_WORD = re.compile(r"(?!True$|False$|inf$|nan$)[A-Za-z_][\w.]*(?<!\.npy)", re.ASCII)
"""A constant of Triton's that is text, such as ieee or tl.float16."""
_FORMS = (
    "write float32[4096,4096] for an array, float32[64,100] strides 128x1 offset 4 for one with gaps, in elements, a "
    "number, float32 1.5 for one of this type, or the path of a .npy file for an array with its data"
)
_MOST_BYTES = 2**39
"""More than any GPU has, and less than traced arrays lie apart."""
_ALIGNMENT = 512
"""Alignment of allocations, in bytes."""


def parsed(text: str) -> Argument:
    """An argument from the command line.

    Raises:
        UsageError: for text that is none, and a file that cannot be read.
    """
    if is_token(text):
        return _with_data(value_of(text))
    if match := _FILE.fullmatch(text):
        return _loaded(Path(match[2]), match[1])
    if text.startswith("tensormap("):
        return parsed_map(text)
    if match := _ARRAY.fullmatch(text):
        return _array(text, *match.groups())
    if match := _SCALAR.fullmatch(text):
        try:
            typed = typed_number(_named(match[1]), match[2])
        except (TypeError, ValueError, OverflowError):
            raise UsageError(f"--arg {text!r}: {_FORMS}") from None
        return typed
    for number in (int, float, complex):
        with suppress(ValueError):
            return number(text)
    if text in ("True", "False"):
        return text == "True"
    raise UsageError(f"--arg {text!r}: {_FORMS}")


def typed_number(dtype: np.dtype[Any], text: str) -> np.generic:
    """A number of a type; raises ValueError, TypeError and OverflowError for text that is none of it."""
    if dtype.kind == "b":  # of any text but an empty one NumPy makes True
        return np.bool_(("0", "1", "False", "True").index(text) % 2)
    value: np.generic = dtype.type(text)
    return value


def _named(dtype: str) -> np.dtype[Any]:
    """The type of a name, which may be spelled as elsewhere, such as fp32; of 8 bits only by NumPy's own name."""
    name = element_type(dtype)
    return np.dtype(dtype if name == FLOAT8 else name)


def _array(text: str, dtype: str, shape: str, strides: str | None, offset: str | None) -> ArrayArgument:
    """An array from the parts of its text; strides and offset are in elements.

    Raises:
        UsageError: for what is no type, another number of strides than of dimensions, and more bytes than any GPU has.
    """
    try:
        kind = _named(dtype)
        sides = tuple(int(side) for side in shape.split(","))
    except (TypeError, ValueError):
        raise UsageError(f"--arg {text!r}: {_FORMS}") from None
    if kind.kind in "OSUMm":
        raise UsageError(f"--arg {text!r}: {dtype} is no type of a kernel; give one such as float32")
    steps = None if strides is None else tuple(int(step) * kind.itemsize for step in re.split("[xX×]", strides))
    if steps is not None and len(steps) != len(sides):
        raise UsageError(f"--arg {text!r}: give a stride for each of the {len(sides)} dimensions, such as 128x1 for 2")
    array = ArrayArgument(sides, kind, strides=steps, offset=int(offset or 0) * kind.itemsize)
    if array.bytes > _MOST_BYTES:
        raise UsageError(f"--arg {text!r}: has {array.bytes} bytes, more than any GPU; give a smaller array")
    return array


def from_python(value: Any) -> Argument:
    """An argument as a launch in Python has it: text as above, a number, or an array.

    NumPy's arrays have their data, others their shape, type and strides; those with a CUDA array interface, such as
    CuPy's, Numba's and PyTorch's, have their address's alignment, too. No memory of a GPU is read.

    Raises:
        UsageError: for anything else.
    """
    if isinstance(value, str):
        return parsed(value)
    if isinstance(value, np.ndarray) and value.ndim:
        return _of_data(value)
    if isinstance(value, int | float | complex | np.number | np.bool_):
        return value if isinstance(value, int | float | complex) else value.item()
    try:
        if (interface := _interface(value, "__cuda_array_interface__")) is not None:
            return _on_device(interface, _type(value))
        return ArrayArgument(tuple(map(int, value.shape)), _type(value))
    except (AttributeError, TypeError):
        given = brief(" ".join(repr(value).split()), 60)
        raise UsageError(f"{given}: is no argument of a kernel; give an array, a number or text: {_FORMS}") from None


def _with_data(value: Any) -> Argument:
    """An argument from a Python object, an array with a copy of its data."""
    if isinstance(value, np.generic):
        return value  # a Numba kernel is compiled for its type
    argument = from_python(value)
    if isinstance(argument, ArrayArgument) and argument.data is None:
        return replace(argument, data=on_host(value))
    return argument


def _of_data(data: np.ndarray[Any, Any]) -> ArrayArgument:
    """An array of NumPy's in the byte order of GPUs.

    Raises:
        UsageError: for elements that are none of a kernel's.
    """
    if data.dtype.kind in "OSUMm":
        raise UsageError(f"{data.dtype} is no type of a kernel; give an array of one such as float32")
    data = data if data.dtype.isnative else data.astype(data.dtype.newbyteorder("="))
    return ArrayArgument(data.shape, data.dtype, data, data.strides)


def _type(value: Any) -> np.dtype[Any]:
    """The type of an array's elements, of PyTorch's, too, which are none of NumPy's: ``torch.float32``."""
    dtype = value.dtype
    return dtype if isinstance(dtype, np.dtype) else np.dtype(str(dtype).rpartition(".")[2])


def _on_device(interface: Mapping[str, Any], dtype: np.dtype[Any]) -> ArrayArgument:
    """An array in a GPU's memory, whose allocation begins at the last multiple of its alignment."""
    shape, strides = tuple(map(int, interface["shape"])), interface.get("strides")
    steps = None if strides is None else tuple(map(int, strides))
    array = ArrayArgument(shape, dtype, strides=steps)
    return replace(array, offset=(interface["data"][0] - array.begin) % _ALIGNMENT)


def _interface(value: Any, name: str) -> Mapping[str, Any] | None:
    """What a library says of an array's memory, of a tensor's with gradients, too; None if it says nothing.

    A library may raise what it likes: for a type of which its interface has no name, or memory that was given back.
    """
    with suppress(Exception):
        value = value.detach() if hasattr(value, "detach") else value  # with gradients it hands out no memory
        interface = getattr(value, name, None)
        return interface if isinstance(interface, Mapping) else None
    return None


def share_memory(values: Iterable[Any]) -> bool:
    """True if two of several arrays, of NumPy's or on a GPU, have bytes in common, those between elements included."""
    extents = sorted(extent for extent in map(_extent, values) if extent is not None)
    return any(begin < end for (_, end), (begin, _) in pairwise(extents))


def _extent(value: Any) -> tuple[int, int] | None:
    """The addresses of an array's first byte and of that behind its last; None for a scalar, and without elements."""
    interface = _interface(value, "__cuda_array_interface__") or _interface(value, "__array_interface__")
    if interface is None or isinstance(value, np.generic) or 0 in interface["shape"]:
        return None
    array = ArrayArgument(interface["shape"], np.dtype(interface["typestr"]), strides=interface.get("strides"))
    lowest = int(interface["data"][0]) - array.begin
    return lowest, lowest + array.bytes


def check_count(target: str, names: Sequence[str], arguments: Sized) -> None:
    """Raise UsageError unless a kernel has an argument for each name."""
    if len(arguments) != len(names):
        given = number_of(len(arguments), "argument")
        raise UsageError(f"{target}: takes ({', '.join(names)}), not {given}; give one for each name")


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
            named[match[1]] = named_value(match[2])
    return in_order, named


def named_value(value: Any) -> Any:
    """The value of a named argument: an array or a number as in ``from_python``, or a constant as it is.

    Raises:
        UsageError: for text that is neither a word nor an argument.
    """
    if isinstance(value, str):
        return value if _WORD.fullmatch(value) else parsed(value)
    return from_python(value) if hasattr(value, "shape") else value


def _loaded(path: Path, dtype: str | None) -> ArrayArgument:
    """An array of a file; with a type, such as bfloat16, which NumPy's format does not name, its bits are that type's.

    Raises:
        UsageError: for a file that cannot be read, and a type of another size.
    """
    try:
        data = np.load(path, mmap_mode="r", allow_pickle=False)
        if not isinstance(data, np.ndarray):  # of several arrays
            raise ValueError(f"{path}: is a {type(data).__name__}")
    except (OSError, ValueError, EOFError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "is no array in NumPy's format"
        raise UsageError(f"--arg {path}: {reason}") from None
    if dtype is not None:
        try:
            data = data.view(np.dtype(dtype))
        except (TypeError, ValueError):
            raise UsageError(f"--arg {dtype} {path}: its elements have {data.itemsize} bytes") from None
    try:
        return _of_data(data)
    except UsageError as error:
        raise UsageError(f"--arg {path}: {error}") from None
