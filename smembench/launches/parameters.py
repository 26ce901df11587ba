"""Arguments as the bytes of a kernel's parameters."""

from __future__ import annotations

import numpy as np

from smembench.launches.array_argument import Argument, ArrayArgument
from smembench.launches.ptx_entry import TYPES
from smembench.model.errors import UsageError
from smembench.toolchains.loaded import Parameter

_FLOATS = {2: ("float16", "bfloat16"), 4: ("float32",), 8: ("float64",)}
"""Types by their bytes."""


def is_structure(parameter: Parameter, argument: ArrayArgument) -> bool:
    """True for data that is a structure, of a pointer's size; a pointer gets an array without data."""
    return parameter.type == "b8" and argument.data is not None and argument.data.nbytes == parameter.bytes


def structure_bytes(parameter: Parameter, argument: Argument) -> bytes:
    """The bytes of a structure, given as an array with its data, or as a number of a type that is one, such as float16.

    Raises:
        UsageError: for anything else, and for another number of bytes.
    """
    if isinstance(argument, np.generic) and argument.nbytes == parameter.bytes:
        return argument.tobytes()
    data = argument.data if isinstance(argument, ArrayArgument) else None
    if data is None or data.nbytes != parameter.bytes:
        ways = f"float16 {argument} or bfloat16 {argument}, or " if parameter.bytes == 2 and data is None else ""
        raise UsageError(f"{parameter.name}: is a structure; give {ways}its {parameter.bytes} bytes as a .npy file")
    return np.ascontiguousarray(data).tobytes()


def untyped(parameter: Parameter, argument: Argument) -> str:
    """A note on the type as which a number is passed; "" where the kernel's code or the number has a type."""
    if type(argument) is not int or not parameter.type.startswith("b") or parameter.bytes not in _FLOATS:
        return ""
    of_float = " or ".join(f"'{name} {argument}'" for name in _FLOATS[parameter.bytes])
    return f"{argument} is passed as int{8 * parameter.bytes}: if it is a float to the kernel, write {of_float}"


def scalar_bytes(parameter: Parameter, argument: float | complex | np.generic) -> bytes:
    """The bytes of a number as the kernel gets it.

    Raises:
        UsageError: for a number whose type PTX does not define, and one that does not fit.
    """
    kind = np.dtype(TYPES[parameter.type])
    if isinstance(argument, np.generic):
        if argument.nbytes != parameter.bytes:
            raise UsageError(f"{parameter.name}: has {parameter.bytes} bytes; {argument.dtype} has {argument.nbytes}")
        if kind.kind == "f" and argument.dtype.kind != "f":
            raise UsageError(
                f"{parameter.name}: is of type {parameter.type}, not {argument.dtype}; write {kind} {argument}"
            )
        if parameter.type.startswith(("u", "s")) and argument.dtype.kind == "f":
            of_type = f"{parameter.name}: is of type {parameter.type}, not {argument.dtype}"
            raise UsageError(f"{of_type}; give a whole number without a type")
        return argument.tobytes()
    if isinstance(argument, complex) or parameter.bytes > 8:
        raise UsageError(f"{parameter.name}: has {parameter.bytes} bytes; {argument} is not taken for it")
    if isinstance(argument, float) and kind.kind != "f":
        ways = " or ".join(f"{name} {argument}" for name in _FLOATS.get(parameter.bytes, ()))
        hint = f", or {ways} if it is a float to its kernel" if ways else ""
        raise UsageError(f"{parameter.name}: is of type {parameter.type}; give a whole number{hint}")
    if kind.kind == "f":
        return np.array(argument, kind).tobytes()
    try:
        return int(argument).to_bytes(parameter.bytes, "little", signed=argument < 0)
    except OverflowError:
        limits = f"{-(2 ** (8 * parameter.bytes - 1))} to {2 ** (8 * parameter.bytes) - 1}"
        raise UsageError(
            f"{parameter.name}: {argument} does not fit in {parameter.bytes} bytes; give {limits}"
        ) from None
