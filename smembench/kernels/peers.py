"""What kernels of other libraries share: whether the library is there, and its view of an array on the device."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from smembench.case import Case


def needs(package: str, install: str) -> Callable[[Case], str | None]:
    """A ``Kernel.refuse`` that says how to install a package that is not there."""

    def refuse(case: Case) -> str | None:
        return None if find_spec(package) else f"{package} is not installed: pip install {install}"

    return refuse


def as_cupy(array: Any, shape: tuple[int, int]) -> Any:
    """A CuPy view of a Numba device array."""
    import cupy

    # Through __cuda_array_interface__ CuPy may wait for the exporter's stream, which a capture forbids.
    memory = cupy.cuda.UnownedMemory(array.device_ctypes_pointer.value, array.nbytes, array)
    return cupy.ndarray(shape, array.dtype, cupy.cuda.MemoryPointer(memory, 0))


def as_torch(array: Any, shape: tuple[int, int]) -> Any:
    """A PyTorch view of a Numba device array."""
    import torch

    return torch.as_tensor(array, device="cuda").view(shape)
