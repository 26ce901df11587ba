"""Arrays in the memory of the current GPU and in page-locked host memory, freed with their last use.

The primary context is the one that Numba, PyTorch and CuPy use, too: they take these arrays by their address or by
the CUDA array interface. Memory is cudaMalloc's, not a pool's, whose addresses depend on what was freed before.
"""

from __future__ import annotations

import ctypes
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
from cuda.bindings import driver

from smembench.kernels.driver import checked

if TYPE_CHECKING:
    from smembench.model.problem import Array


class DeviceArray:
    """A one-dimensional array in a GPU's memory.

    Attributes:
        address: of its first element.
        size: its elements.
        dtype: their type.
    """

    def __init__(self, address: int, size: int, dtype: Any, memory: Any) -> None:
        self.address, self.size, self.dtype = address, size, np.dtype(dtype)
        self._memory = memory

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return int(self.size * self.dtype.itemsize)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": (self.size,), "typestr": self.dtype.str, "data": (self.address, False), "version": 3}

    def __getitem__(self, part: slice) -> DeviceArray:
        """Some elements in a row, in the same memory."""
        first, end, step = part.indices(self.size)
        assert step == 1, part
        return DeviceArray(self.address + first * self.dtype.itemsize, max(end - first, 0), self.dtype, self._memory)

    def view(self, dtype: Any) -> DeviceArray:
        """The same memory as elements of another type."""
        return DeviceArray(self.address, self.nbytes // np.dtype(dtype).itemsize, dtype, self._memory)

    def copy_from_host(self, array: Array) -> None:
        """Copy an array of as many bytes, and wait."""
        assert array.nbytes == self.nbytes, (array.nbytes, self.nbytes)
        checked(driver.cuMemcpyHtoD(self.address, np.ascontiguousarray(array).ctypes.data, self.nbytes))

    def copy_to_host(self) -> Array:
        """Copy, after what the default stream waits for."""
        array = np.empty(self.size, self.dtype)
        checked(driver.cuMemcpyDtoH(array.ctypes.data, self.address, self.nbytes))
        return array


class _Memory:
    """Memory of the current GPU. It is not freed at the process's end, when a call to the driver may not return."""

    def __init__(self, size: int) -> None:
        self.address = int(checked(driver.cuMemAlloc(size)))
        weakref.finalize(self, driver.cuMemFree, self.address).atexit = False


def device_array(size: int, dtype: Any) -> DeviceArray:
    """An uninitialised array on the current GPU.

    Raises:
        RuntimeError: CUDA's, if there is too little memory.
    """
    memory = _Memory(max(size, 1) * np.dtype(dtype).itemsize)
    return DeviceArray(memory.address, size, dtype, memory)


def to_device(array: Array) -> DeviceArray:
    """A copy of a host array's elements on the current GPU; raises as ``device_array``."""
    placed = device_array(array.size, array.dtype)
    placed.copy_from_host(array)
    return placed


def pinned_array(size: int, dtype: Any) -> Array:
    """An uninitialised array in page-locked host memory."""
    from cuda.core import LegacyPinnedMemoryResource

    buffer = LegacyPinnedMemoryResource().allocate(max(size, 1) * np.dtype(dtype).itemsize)
    memory = (ctypes.c_byte * buffer.size).from_address(int(buffer.handle))
    weakref.finalize(memory, buffer.close).atexit = False
    return np.frombuffer(memory, dtype, size)
