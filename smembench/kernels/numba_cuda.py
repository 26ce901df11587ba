"""The one place that imports ``numba.cuda``, for kernels and for the CUDA device; with it, CUDA's error check and copy.

numba-cuda is in maintenance; a successor with the same dialect is taken up here and nowhere else.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np
from cuda.bindings import driver
from numba import cuda, typeof
from numba.cuda.core import config

from smembench.kernels.types import Index
from smembench.model.formats import carried

__all__ = [
    "SIMULATED",
    "DeviceFunction",
    "checked",
    "copy",
    "cuda",
    "device",
    "int64",
    "number",
    "typeof",
    "uint32",
    "uint64",
]

DeviceFunction = Callable[..., Any]
"""A function that kernels call, and that ``device``, ``Ptx`` or ``register`` gave a type for Numba."""

Function = TypeVar("Function", bound=DeviceFunction)

SIMULATED: bool = bool(config.ENABLE_CUDASIM)
"""Whether kernels run in Numba's simulator (NUMBA_ENABLE_CUDASIM=1 at import), one Python thread per CUDA thread."""

# The same casts in the simulator, without the detour over Numba's signatures that takes most of a simulated launch.
_integers: Any = np if SIMULATED else numba
int64: Callable[[Index], Index] = _integers.int64
uint32: Callable[[Index], Index] = _integers.uint32
uint64: Callable[[Index], Index] = _integers.uint64


def number(dtype: str) -> Any:
    """Numba's type of the elements of arrays of a dtype, for shared arrays and for constants."""
    return getattr(numba.types, carried(dtype))


def device(function: Function) -> Function:
    """Make a function callable from kernels, inlined where it is called.

    It stays a plain Python function for the simulator and for traces. To Numba it looks like a
    dispatcher with ``inline="always"``, and so is inlined before anything is compiled: a device function of
    ``cuda.jit`` would need a GPU to compile for. The type is that of the name that remains.
    """
    inlined: Any = function
    inlined.targetoptions, inlined.py_func = {"inline": "always"}, function
    inlined._numba_type_ = numba.types.Dummy("inlined")
    return function


def checked(result: tuple[Any, ...]) -> Any:
    """The value of a call of the CUDA driver.

    Raises:
        RuntimeError: with CUDA's name and text for the error.
    """
    error, *values = result
    if error != driver.CUresult.CUDA_SUCCESS:
        _, name = driver.cuGetErrorName(error)
        _, text = driver.cuGetErrorString(error)
        raise RuntimeError(f"{name.decode()}: {text.decode()}")
    return values[0] if len(values) == 1 else values


def copy(stream: int, target: Any, source: Any) -> None:
    """Enqueue a copy of ``source`` on a stream, between arrays on the device and NumPy arrays in any direction.

    For pageable host memory cuMemcpyAsync may do part or all of the copy before it returns.
    """
    checked(driver.cuMemcpyAsync(_address(target), _address(source), source.size * source.dtype.itemsize, stream))


def _address(array: Any) -> int:
    on_device = hasattr(array, "device_ctypes_pointer")
    return int(array.device_ctypes_pointer.value if on_device else array.ctypes.data)
