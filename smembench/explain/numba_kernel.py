"""Explain a Numba function by the PTX that is linked for its launch."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from types import FunctionType
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from smembench.explain.costs import Costs
from smembench.explain.ptx.costs import Call, explain_ptx
from smembench.explain.ptx.parse import parse
from smembench.explain.ptx.program import PtxKernel
from smembench.launches.array_argument import Argument, ArrayArgument
from smembench.launches.dimensions import check_launch
from smembench.launches.python_file import plain_function
from smembench.launches.tensor_map_argument import TensorMapArgument
from smembench.model.errors import UsageError
from smembench.model.text import number_of
from smembench.toolchains.llvm import made_by
from smembench.toolchains.numba_function import function_code

_SHARED = re.compile(r"\b_cudapy_smem_(\d+)_(\d+)_(\d+(?:_\d+)*)\b")
"""The names of shared arrays in PTX: a number, bytes of an element, and the sides (``toolchains.nvvm``)."""
_MODULE = re.compile(r"\bsmembench_(?=\w)")
"""The prefix of the package's variables in global memory (``intrinsics.scratch``)."""
_OF_HELPER = re.compile(r"(\.loc\s+(\d+)\s+\d+\s+(?!1\s)(\d+))\s*$", re.MULTILINE)
"""A line of a helper, whose column is the kernel's line that calls it (``toolchains.nvvm``)."""


def explain_numba(function: Any, call: Call, *, capability: str) -> Costs:
    """Explain a function, with or without ``cuda.jit``.

    Raises:
        UsageError: for what is no kernel and does not compile, arguments that it does not take, and as ``explain_ptx``.
    """
    plain = plain_function(function)
    if plain is None:
        raise UsageError(f"{function!r}: is not a kernel; give a function, with or without cuda.jit")
    check_launch(call.grid, call.block)
    named = _named(plain, call.arguments)
    code = function_code(function, [_like(name, argument) for name, argument in named.items()], capability)
    kernel = numba_kernel(code.ptx, names_of_arrays(plain))
    kernel.name = plain.__name__
    passed = [part for name, argument in named.items() for part in passed_as(name, argument)]
    kernel.name_parameters([name for name, _ in passed])
    path = plain.__code__.co_filename
    costs = explain_ptx(
        kernel,
        call._replace(arguments=[value for _, value in passed]),
        title=f"{plain.__name__} in {Path(path).name}",
        filename=path,
        code=(capability, code.machine_code),
    )
    return replace(costs, compiler=made_by(code.ptx))


def numba_kernel(ptx: str, names: Sequence[str] = ()) -> PtxKernel:
    """The only kernel of PTX, with these names of its shared arrays, or shared0, shared1 … if it has not as many."""
    arrays = {int(match[1]): match for match in _SHARED.finditer(ptx)}
    if len(names) != len(arrays):
        names = [f"shared{place}" for place in range(len(arrays))]
    new = dict(zip(sorted(arrays), names, strict=True))
    lined = _OF_HELPER.sub(r"\1, inlined_at \2 \3 0", _SHARED.sub(lambda match: new[int(match[1])], ptx))
    (kernel,) = parse(_MODULE.sub("", lined)).kernels.values()
    kernel.shapes = {
        new[number]: (int(match[2]), tuple(map(int, match[3].split("_")))) for number, match in arrays.items()
    }
    return kernel


def names_of_arrays(function: FunctionType) -> Sequence[str]:
    """The names that a function gives its shared arrays; none if it does not name each once."""
    tree = ast.parse(dedent(inspect.getsource(function)))
    assigned = [node for node in ast.walk(tree) if isinstance(node, ast.Assign)]
    made = [node for node in assigned if re.search(r"\bshared\.array\(", ast.unparse(node.value))]
    names = [ast.unparse(node.targets[0]) for node in sorted(made, key=lambda node: node.lineno)]
    parameters = inspect.signature(function).parameters
    distinct = len({*names, *parameters}) == len(names) + len(parameters)
    return names if distinct and all(map(str.isidentifier, names)) else ()


def passed_as(name: str, argument: Argument) -> Iterator[tuple[str, Argument]]:
    """Parameters that Numba passes: of an array two owners, its elements, bytes of one, address, sides and strides."""
    if isinstance(argument, ArrayArgument):
        words = [0, 0, int(np.prod(argument.shape)), argument.dtype.itemsize]
        yield from ((f"{name}${number}", word) for number, word in enumerate(words))
        yield name, argument
        yield from ((f"{name}$side{axis}", side) for axis, side in enumerate(argument.shape))
        yield from ((f"{name}$step{axis}", step) for axis, step in enumerate(argument.steps))
    elif isinstance(argument, complex | np.complexfloating):
        yield f"{name}$real", argument.real
        yield f"{name}$imag", argument.imag
    else:
        yield name, argument


def _named(function: FunctionType, arguments: Sequence[Argument]) -> Mapping[str, Argument]:
    """The arguments by the kernel's names."""
    try:
        bound = inspect.signature(function).bind(*arguments)
    except TypeError:
        names = ", ".join(inspect.signature(function).parameters)
        given = number_of(len(arguments), "argument")
        raise UsageError(f"{function.__name__}: takes ({names}), not {given}; give one for each name") from None
    bound.apply_defaults()
    return bound.arguments


def _like(name: str, argument: Argument) -> Any:
    """The value that Numba compiles for: a number, or an array of the same layout without its memory."""
    if isinstance(argument, TensorMapArgument):
        raise UsageError(f"{name}: a tensor map is no argument of a Numba kernel; give an array")
    if not isinstance(argument, ArrayArgument):
        return argument
    if argument.dtype.kind not in "biufc":
        raise UsageError(f"{name}: elements of type {argument.dtype} are not traced; give a type of numbers")
    return as_strided(np.empty(1, argument.dtype), argument.shape, argument.steps)
