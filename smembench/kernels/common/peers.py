"""Common parts of other libraries' kernels: a check for the library, and its view of an array on the device."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from smembench.model.case import Case


def needs(package: str, install: str) -> Callable[[Case], str | None]:
    """A ``Kernel.unsupported`` that says how to install a package that is not there."""

    def unsupported(case: Case) -> str | None:
        return None if find_spec(package) else f"{package} is not installed: pip install {install}"

    return unsupported


class _Stream:
    """A stream by its handle, as CUDA's stream protocol has it."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._handle


def cupy_stream(handle: int) -> Any:
    """CuPy's view of a stream, a context in which CuPy works on it."""
    import cupy

    # CuPy 14 has deprecated ExternalStream, and before it there is no from_external.
    if hasattr(cupy.cuda.Stream, "from_external"):
        return cupy.cuda.Stream.from_external(_Stream(handle))
    return cupy.cuda.ExternalStream(handle)


def as_cupy(array: Any, shape: tuple[int, ...]) -> Any:
    """A CuPy view of an array on the device."""
    import cupy

    # Through __cuda_array_interface__ CuPy may wait for the exporter's stream, which a capture forbids.
    memory = cupy.cuda.UnownedMemory(array.address, array.nbytes, array)
    return cupy.ndarray(shape, array.dtype, cupy.cuda.MemoryPointer(memory, 0))


def as_torch(array: Any, shape: tuple[int, ...]) -> Any:
    """A PyTorch view of an array on the device."""
    import torch

    return torch.as_tensor(array, device="cuda").view(shape)
