"""A launch of a Numba kernel by its PTX, with real values: what it leaves in its arrays, and what its accesses cost."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from textwrap import dedent
from types import FunctionType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smembench.explain.costs import Costs
from smembench.explain.foreign import costs_of
from smembench.explain.ptx.content import GlobalArray
from smembench.explain.ptx.memory import SPACING
from smembench.explain.ptx.parse import parse
from smembench.explain.ptx.registers import Launch
from smembench.explain.ptx.trace import trace
from smembench.launches.dimensions import Dimensions, as_text, check_launch
from smembench.model.errors import UsageError
from smembench.model.text import number_of
from smembench.toolchains.numba_function import function_ptx

_SHARED = r"\b_cudapy_smem_(\d+)\b"
"""Numba's names of shared arrays in PTX."""


def run_numba(
    kernel: Any,
    arrays: Sequence[NDArray[Any]],
    *,
    grid: Dimensions,
    block: Dimensions,
    capability: str = "9.0",
    most_steps: int | None = None,
) -> Costs:
    """Run all blocks of a launch, one after the other, on arrays by rows, which are changed in place.

    Args:
        kernel: a function with or without ``cuda.jit``, whose parameters are all arrays.
        arrays: in the order of the parameters.
        grid, block: in 1 to 3 dimensions.
        capability: the compute capability that the PTX is for.
        most_steps: instructions that a block may run, for a kernel that may never end.

    Raises:
        UsageError: for what Numba does not compile, another number of arrays, and as ``trace``.
    """
    check_launch(grid, block)
    function: FunctionType = getattr(kernel, "py_func", kernel)
    names = [*inspect.signature(function).parameters]
    if len(names) != len(arrays):
        taken = number_of(len(arrays), "array")
        raise UsageError(f"{function.__name__}: takes ({', '.join(names)}); it is launched with {taken}")
    path = Path(function.__code__.co_filename)
    (found,) = parse(_named(function_ptx(kernel, arrays, capability), function)).kernels.values()
    found.name = function.__name__
    placed = [
        GlobalArray(name, number * SPACING, each.nbytes, each.reshape(-1).view(np.uint8), "global", each.shape, True)
        for number, (name, each) in enumerate(zip(names, arrays, strict=True), 1)
    ]
    values = [value for at, each in zip(placed, arrays, strict=True) for value in _descriptor(at, each)]
    parameters = {
        each.name: value.to_bytes(each.bytes, "little") for each, value in zip(found.parameters, values, strict=True)
    }
    x, y, z = (*grid, 1, 1)[:3]
    width, height, depth = (*block, 1, 1)[:3]
    launch = Launch((x, y, z), (width, height, depth), parameters, most_steps=most_steps)
    traced = trace(found, launch, placed, str(path))
    return costs_of(
        traced,
        f"{function.__name__} in {path.name} · grid {as_text(grid)} · block {as_text(block)}",
        sizes={at.name: at.bytes for at in placed},
        shared_bytes=found.shared_bytes,
        launched=(prod(grid), prod(block)),
        code=(capability, None),
    )


def _descriptor(at: GlobalArray, array: NDArray[Any]) -> Sequence[int]:
    """An array as Numba passes it: two owners, elements, bytes of one, address, sides, strides."""
    return [0, 0, array.size, array.itemsize, at.begin, *array.shape, *array.strides]


def _named(ptx: str, function: FunctionType) -> str:
    """PTX whose shared arrays have the names that the function gives them, or numbers if it does not name each once."""
    tree = ast.parse(dedent(inspect.getsource(function)))
    assigned = [node for node in ast.walk(tree) if isinstance(node, ast.Assign)]
    made = [each for each in assigned if re.search(r"\bshared\.array\(", ast.unparse(each.value))]
    names = [ast.unparse(each.targets[0]) for each in sorted(made, key=lambda each: each.lineno)]
    numbers = sorted({int(number) for number in re.findall(_SHARED, ptx)})
    parameters = inspect.signature(function).parameters
    distinct = len({*names, *parameters}) == len(names) + len(parameters) and all(map(str.isidentifier, names))
    if len(numbers) != len(names) or not distinct:
        names = [f"shared{place}" for place in range(len(numbers))]
    new: Mapping[int, str] = dict(zip(numbers, names, strict=True))
    return re.sub(_SHARED, lambda match: new[int(match[1])], ptx)
