"""Launches of ``triton.jit`` functions: the specialization that Triton's first launch with these arguments compiles."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, cast

import numpy as np
from ml_dtypes import bfloat16

from smembench.launches.array_argument import Argument, ArrayArgument
from smembench.launches.launch import Launch
from smembench.model.errors import UsageError
from smembench.toolchains.triton_function import CompiledFunction, compile_function, constant, inner

_OPTIONS = ("num_warps", "num_stages")
_TYPES = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64", "bool": "u1"}
_TYPES |= {"float8_e4m3fn": "fp8e4nv", "float8_e5m2": "fp8e5"}
_TYPES |= {f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)} | {
    f"uint{bits}": f"u{bits}" for bits in (8, 16, 32, 64)
}
_FLOATS = {"fp16": np.float16, "bf16": bfloat16, "fp32": np.float32, "fp64": np.float64}
_MULTIPLE = 16


class TritonLaunch(NamedTuple):
    """A compiled function, and the arguments by name that are no constants of its code."""

    compiled: CompiledFunction
    passed: Mapping[str, Argument]


def compiled_launch(function: Any, launch: Launch, capability: str) -> TritonLaunch:
    """Compile a function of ``triton.jit`` for a launch.

    Raises:
        UsageError: for arguments that it does not take, and what does not compile.
    """
    function = inner(function)
    if launch.shared_bytes:
        raise UsageError(f"{launch.shared_bytes} bytes of shared memory: Triton decides on them; leave them out")
    options = {name: value for name, value in launch.named.items() if name in _options(function)}
    for name, value in options.items():
        if not isinstance(value, int):
            raise UsageError(f"{name}={value}: give a whole number, such as {name}=4")
    values = _bound(function, launch)
    types, divisible = specialization(function, values)
    constants = {name: values[name] for name, kind in types.items() if kind == "constexpr"}
    compiled = compile_function(function, types, constants, divisible, capability, options)
    passed = {name: _typed(values[name], kind) for name, kind in types.items() if kind != "constexpr"}
    return TritonLaunch(compiled, passed)


def _options(function: Any) -> list[str]:
    """The options of a launch; a parameter of such a name gets the value itself."""
    return [name for name in _OPTIONS if name not in function.arg_names]


def _bound(function: Any, launch: Launch) -> Mapping[str, Any]:
    """The values of all parameters by name.

    Raises:
        UsageError: for one too many, and for one that is missing.
    """
    named = {name: value for name, value in launch.named.items() if name not in _options(function)}
    try:
        bound = function.signature.bind(*launch.arguments, **named)
    except TypeError as error:
        names = ", ".join([*function.arg_names, *_options(function)])
        raise UsageError(f"{function.__name__}: takes ({names}): {error}; name a constant as in BLOCK=128") from None
    bound.apply_defaults()
    return {name: constant(value) for name, value in bound.arguments.items()}


def specialization(function: Any, values: Mapping[str, Any]) -> tuple[Mapping[str, str], Collection[str]]:
    """Triton's types of the parameters at the first launch with these values, and which are multiples of 16.

    Raises:
        UsageError: for a value that is none of a kernel's.
    """
    kinds = {parameter.name: _kind(parameter, values[parameter.name]) for parameter in function.params}
    return {name: kind.type for name, kind in kinds.items()}, {name for name, kind in kinds.items() if kind.divisible}


class _Kind(NamedTuple):
    """The type of a parameter in Triton, and whether its value is a multiple of 16, which Triton's compiler uses."""

    type: str
    divisible: bool = False


def _kind(parameter: Any, value: Any) -> _Kind:
    """The specialization of a parameter at the first launch: an integer 1 and None are constants of the code.

    Raises:
        UsageError: for a value that is none of a kernel's.
    """
    if parameter.is_constexpr:
        return _constant(parameter, value)
    specialized = not parameter.do_not_specialize
    aligned = specialized and not parameter.do_not_specialize_on_alignment
    declared = str(parameter.annotation_type)
    if declared and not declared.startswith("*") and not isinstance(value, int | float | np.generic):
        raise UsageError(f"{parameter.name}: is a number of type {declared}; give one")
    if declared == "u1" or declared.startswith(("fp", "bf")):
        return _Kind(declared)
    if isinstance(value, ArrayArgument):
        pointer = declared or f"{'*k' if parameter.is_const else '*'}{_named(parameter, value.dtype)}"
        return _Kind(pointer, aligned and value.begin % _MULTIPLE == 0)
    if isinstance(value, np.generic):
        declared = declared or _named(parameter, value.dtype)
        value = value.item()
    if isinstance(value, bool):
        return _Kind(declared or "u1")
    if isinstance(value, int):
        if value == 1 and specialized and not declared:
            return _Kind("constexpr")
        return _Kind(declared or _integer(value), aligned and value % _MULTIPLE == 0)
    if isinstance(value, float):
        return _Kind(declared or "fp32")
    return _constant(parameter, value)


def _constant(parameter: Any, value: Any) -> _Kind:
    if isinstance(value, ArrayArgument) or (value is not None and not parameter.is_constexpr):
        wanted = "a constant" if parameter.is_constexpr else "an array or a number"
        given = "an array" if isinstance(value, ArrayArgument) else repr(value)
        raise UsageError(f"{parameter.name}: is {wanted}, not {given}")
    return _Kind("constexpr")


def _named(parameter: Any, dtype: np.dtype[Any]) -> str:
    if dtype.name not in _TYPES:
        raise UsageError(f"{parameter.name}: Triton has no type {dtype}; it has {', '.join(_TYPES)}")
    return _TYPES[dtype.name]


def _integer(value: int) -> str:
    if -(2**31) <= value < 2**31:
        return "i32"
    return "i64" if value < 2**63 else "u64"


def _typed(value: Any, kind: str) -> Argument:
    """A value as PTX gets it, in which some numbers have no type."""
    if kind in _FLOATS:
        return cast("np.generic", _FLOATS[kind](value))
    return cast("Argument", value)
