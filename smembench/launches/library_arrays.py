"""Arrays and streams as a function of PyTorch's or CuPy's takes them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from types import ModuleType
from typing import Any

from smembench.launches.placed_array import PlacedArray

Current = Callable[[], AbstractContextManager[Any]]


def as_the_function_takes(
    function: Callable[..., Any], stream: int, arrays: Mapping[int, PlacedArray]
) -> tuple[Mapping[int, Any], Current]:
    """The arrays as tensors or as CuPy's arrays, by the library that the function's module imports, without a copy.

    Also a context in which the stream is the library's current one. A function of neither gets the arrays with a CUDA
    array interface.
    """
    used = {value.__name__ for value in getattr(function, "__globals__", {}).values() if isinstance(value, ModuleType)}
    if "torch" in used:
        torch: Any = sys.modules["torch"]
        queue = torch.cuda.ExternalStream(stream)
        return {place: _tensor(torch, array) for place, array in arrays.items()}, lambda: torch.cuda.stream(queue)
    if "cupy" in used:
        cupy: Any = sys.modules["cupy"]
        queue = cupy.cuda.ExternalStream(stream)
        return {place: cupy.asarray(array) for place, array in arrays.items()}, lambda: queue
    return arrays, nullcontext


def _tensor(torch: Any, array: PlacedArray) -> Any:
    """A tensor in the array's memory; types that NumPy lacks are views of integers."""
    found = torch.as_tensor(array, device="cuda")
    own = {"bfloat16": "bfloat16", "float8_e4m3fn": "float8_e4m3fn", "float8_e5m2": "float8_e5m2"}.get(array.dtype.name)
    return found if own is None else found.view(getattr(torch, own))
