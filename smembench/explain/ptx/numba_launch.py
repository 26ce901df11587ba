"""A launch of a Numba kernel by its PTX, with real values: what it leaves in its arrays, and what its accesses cost."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from math import prod
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smembench.explain.costs import Costs
from smembench.explain.numba_kernel import names_of_arrays, numba_kernel, passed_as
from smembench.explain.ptx.content import GlobalArray
from smembench.explain.ptx.costs import costs_of
from smembench.explain.ptx.memory import SPACING
from smembench.explain.ptx.registers import Launch
from smembench.explain.ptx.trace import trace
from smembench.launches.array_argument import ArrayArgument
from smembench.launches.dimensions import Dimensions, as_text, check_launch
from smembench.launches.parameters import scalar_bytes
from smembench.model.errors import UsageError
from smembench.model.text import number_of
from smembench.toolchains.numba_function import function_code


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
        self._kernel = numba_kernel(function_code(kernel, arrays, capability).ptx, names_of_arrays(self._function))
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
        words: list[Any] = [
            at.begin if isinstance(word, ArrayArgument) else word
            for at, array in zip(placed, arrays, strict=True)
            for _, word in passed_as(at.name, ArrayArgument(array.shape, array.dtype))
        ]
        parameters = {
            parameter.name: scalar_bytes(parameter, word)
            for parameter, word in zip(self._kernel.parameters, words, strict=True)
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
