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


class NumbaPtx:
    """A Numba kernel of arrays as PTX, compiled once for launches on arrays of the same types.

    Args:
        kernel: a function with or without ``cuda.jit``.
        arrays: by rows, one per parameter.
        capability: the compute capability to compile for.

    Attributes:
        parameters: their names.

    Raises:
        UsageError: for what Numba does not compile, and for another number of arrays.
    """

    def __init__(self, kernel: Any, arrays: Sequence[NDArray[Any]], capability: str = "9.0") -> None:
        self._function: FunctionType = getattr(kernel, "py_func", kernel)
        self.parameters = [*inspect.signature(self._function).parameters]
        self._capability = capability
        name = self._function.__name__
        if len(self.parameters) != len(arrays):
            given = number_of(len(arrays), "array")
            raise UsageError(f"{name}: takes ({', '.join(self.parameters)}); it is launched with {given}")
        ptx = _named(function_ptx(kernel, arrays, capability), self._function)
        (self._kernel,) = parse(ptx).kernels.values()
        self._kernel.name = name

    def run(
        self, arrays: Sequence[NDArray[Any]], *, grid: Dimensions, block: Dimensions, most_steps: int | None = None
    ) -> Costs:
        """Run all blocks, one after the other; the arrays are changed in place.

        Args:
            arrays: of the types that it is compiled for.
            grid, block: in 1 to 3 dimensions.
            most_steps: instructions that a block may run, for a kernel that may never end.

        Raises:
            UsageError: for a grid or a block that no GPU takes, and as ``trace``.
        """
        check_launch(grid, block)
        placed = [
            GlobalArray(
                name, number * SPACING, array.nbytes, array.reshape(-1).view(np.uint8), "global", array.shape, True
            )
            for number, (name, array) in enumerate(zip(self.parameters, arrays, strict=True), 1)
        ]
        values = [value for at, array in zip(placed, arrays, strict=True) for value in _descriptor(at, array)]
        parameters = {
            parameter.name: value.to_bytes(parameter.bytes, "little")
            for parameter, value in zip(self._kernel.parameters, values, strict=True)
        }
        x, y, z = (*grid, 1, 1)[:3]
        width, height, depth = (*block, 1, 1)[:3]
        launch = Launch((x, y, z), (width, height, depth), parameters, most_steps=most_steps)
        path = Path(self._function.__code__.co_filename)
        traced = trace(self._kernel, launch, placed, str(path))
        return costs_of(
            traced,
            f"{self._kernel.name} in {path.name} · grid {as_text(grid)} · block {as_text(block)}",
            sizes={at.name: at.bytes for at in placed},
            shared_bytes=self._kernel.shared_bytes,
            launched=(prod(grid), prod(block)),
            code=(self._capability, None),
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
