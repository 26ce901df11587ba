"""Explain a function of ``triton.jit``: compile it as its first launch does, and trace its PTX."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from ml_dtypes import bfloat16

from smembench.explain.costs import Costs
from smembench.explain.ptx.costs import Call, explain_ptx
from smembench.explain.ptx.parse import parse
from smembench.launches.array_argument import Argument, ArrayArgument
from smembench.launches.dimensions import Dimensions, as_text
from smembench.model.errors import UsageError
from smembench.model.hardware import WARP
from smembench.toolchains.machine_code import parse as parse_code
from smembench.toolchains.triton_function import CompiledFunction, compile_function, constant, inner

_OPTIONS = ("num_warps", "num_stages")
_TYPES = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64", "bool": "u1"}
_TYPES |= {"float8_e4m3fn": "fp8e4nv", "float8_e5m2": "fp8e5"}
_TYPES |= {f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)} | {
    f"uint{bits}": f"u{bits}" for bits in (8, 16, 32, 64)
}
_FLOATS = {"fp16": np.float16, "bf16": bfloat16, "fp32": np.float32, "fp64": np.float64}
_MULTIPLE = 16


class Launch(NamedTuple):
    """A launch of any kernel.

    Attributes:
        grid, block: in 1 to 3 dimensions; Triton decides on the block, so None will do.
        arguments: in the kernel's order.
        named: arguments by name, and Triton's ``num_warps`` and ``num_stages``.
        shared_bytes: bytes of dynamic shared memory; Triton decides on them, too.
        cluster: in 1 to 3 dimensions; None for that of the kernel, if it has one.
    """

    grid: Dimensions
    block: Dimensions | None
    arguments: Sequence[Argument]
    named: Mapping[str, Any]
    shared_bytes: int = 0
    cluster: Dimensions | None = None


def explain_triton(function: Any, launch: Launch, *, capability: str = "9.0") -> Costs:
    """Explain a function of ``triton.jit``.

    Raises:
        UsageError: for arguments that it does not take, a block that is not that of ``num_warps``, what does not
            compile, and as ``explain_ptx``.
    """
    function = inner(function)
    if launch.shared_bytes:
        raise UsageError(f"{launch.shared_bytes} bytes of shared memory: Triton decides on them; leave them out")
    options = {name: value for name, value in launch.named.items() if name in _OPTIONS}
    for name, value in options.items():
        if not isinstance(value, int):
            raise UsageError(f"{name}={value}: give a whole number, such as {name}=4")
    values = _bound(function, launch)
    types, divisible = specialization(function, values)
    constants = {name: values[name] for name, kind in types.items() if kind == "constexpr"}
    compiled = compile_function(function, types, constants, divisible, capability, options)
    passed = {name: _typed(values[name], kind) for name, kind in types.items() if kind != "constexpr"}
    return _traced(function, compiled, passed, launch, capability)


def _bound(function: Any, launch: Launch) -> Mapping[str, Any]:
    """The values of all parameters by name.

    Raises:
        UsageError: for one too many, and for one that is missing.
    """
    named = {name: value for name, value in launch.named.items() if name not in _OPTIONS}
    try:
        bound = function.signature.bind(*launch.arguments, **named)
    except TypeError as error:
        names = ", ".join([*function.arg_names, *_OPTIONS])
        raise UsageError(f"{function.__name__}: takes ({names}): {error}; name a constant as in BLOCK=128") from None
    bound.apply_defaults()
    return {name: constant(value) for name, value in bound.arguments.items()}


def specialization(function: Any, values: Mapping[str, Any]) -> tuple[Mapping[str, str], Collection[str]]:
    """Triton's types of the parameters at the first launch with these values, and which are multiples of 16.

    Raises:
        UsageError: for a value that is none of a kernel's.
    """
    kinds = {each.name: _kind(each, values[each.name]) for each in function.params}
    return {name: kind.type for name, kind in kinds.items()}, {name for name, kind in kinds.items() if kind.divisible}


class _Kind(NamedTuple):
    """The type of a parameter in Triton, and whether its value is a multiple of 16, which Triton's compiler uses."""

    type: str
    divisible: bool = False


def _kind(parameter: Any, value: Any) -> _Kind:
    """What the first launch makes of a parameter: an integer 1 and None are constants of the code.

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
    """A value as PTX gets it, which does not tell the types of all numbers."""
    if kind in _FLOATS:
        return cast("np.generic", _FLOATS[kind](value))
    return cast("Argument", value)


def _traced(
    function: Any, compiled: CompiledFunction, passed: Mapping[str, Argument], launch: Launch, capability: str
) -> Costs:
    """The costs of compiled code. Behind the parameters of its source it has pointers to scratch memory."""
    name, path = function.__name__, function.fn.__code__.co_filename
    (kernel,) = parse(compiled.ptx).kernels.values()
    hidden = [f"scratch{number}" for number in range(len(kernel.parameters) - len(passed))]
    kernel.name_parameters([*passed, *hidden])
    scratch: list[Argument] = [0] * len(hidden)
    if compiled.scratch_bytes:
        scratch[0] = ArrayArgument((compiled.scratch_bytes * prod(launch.grid),), np.dtype(np.uint8))
    block = launch.block or (compiled.threads,)
    if prod(block) != compiled.threads:
        raise UsageError(
            f"block {as_text(block)}: {name} has {compiled.threads} threads, by num_warps={compiled.threads // WARP}; "
            "leave the block out"
        )
    return explain_ptx(
        kernel,
        Call(launch.grid, block, [*passed.values(), *scratch], compiled.shared_bytes),
        title=f"{name} in {Path(path).name}",
        filename=path,
        code=(capability, parse_code("", compiled.code)),
    )
