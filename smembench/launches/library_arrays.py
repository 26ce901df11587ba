"""Arrays and streams as a function of PyTorch's or CuPy's takes them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from types import ModuleType
from typing import Any

import ml_dtypes  # noqa: F401 - so that NumPy knows the name bfloat16
import numpy as np
from numpy.typing import NDArray

from smembench.launches.placed_array import PlacedArray

_INTEGERS = {"bfloat16": "int16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}
"""Types that NumPy and the CUDA array interface lack, and integers of PyTorch's with as many bytes."""
Current = Callable[[], AbstractContextManager[Any]]


def as_the_function_takes(
    function: Callable[..., Any], stream: int, arrays: Mapping[int, PlacedArray]
) -> tuple[Mapping[int, Any], Current]:
    """The arrays as tensors or as CuPy's arrays, by the library that the function's module imports, without a copy.

    Also a context in which the stream is the library's current one. A function of neither gets the arrays with a CUDA
    array interface.
    """
    used = _libraries(function)
    if "torch" in used:
        torch: Any = sys.modules["torch"]
        queue = torch.cuda.ExternalStream(stream)
        return {place: _tensor(torch, array) for place, array in arrays.items()}, lambda: torch.cuda.stream(queue)
    if "cupy" in used:
        cupy: Any = sys.modules["cupy"]
        queue = cupy.cuda.ExternalStream(stream)
        return {place: cupy.asarray(array) for place, array in arrays.items()}, lambda: queue
    return arrays, nullcontext


def _libraries(function: Any) -> set[str]:
    """The packages whose modules, functions or classes the module of a function has, and its own."""
    while isinstance(function, partial):
        function = function.func
    module = str(getattr(function, "__module__", None) or type(function).__module__)
    named = getattr(function, "__globals__", None) or vars(sys.modules.get(module, sys))
    names = (
        item.__name__ if isinstance(item, ModuleType) else getattr(item, "__module__", "") for item in named.values()
    )
    return {str(name).partition(".")[0] for name in (module, *names)}


def on_host(value: Any) -> NDArray[Any]:
    """A copy of an array of NumPy's, PyTorch's or CuPy's, or with a CUDA array interface, in NumPy's types."""
    if hasattr(value, "detach"):
        tensor, own = value.detach().cpu().contiguous(), str(value.dtype).rpartition(".")[2]
        if own in _INTEGERS:  # NumPy has no such type, so its bits are copied
            return np.array(tensor.view(getattr(sys.modules["torch"], _INTEGERS[own]))).view(np.dtype(own))
        return np.array(tensor)
    for method in ("get", "copy_to_host"):  # CuPy's and Numba's
        if hasattr(value, method) and hasattr(value, "__cuda_array_interface__"):
            return np.array(getattr(value, method)())
    return np.array(value)


def _tensor(torch: Any, array: PlacedArray) -> Any:
    """A tensor in the array's memory; types that NumPy lacks are views of integers."""
    tensor = torch.as_tensor(array, device="cuda")
    own = array.dtype.name
    return tensor.view(getattr(torch, own)) if own in _INTEGERS else tensor
