"""Copies to variables of a GPU module: cudaMemcpyToSymbol through the driver API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from smembench.model.problem import Array


def copy_to_symbol(library: Any, name: str, array: Array, stream: int) -> None:
    """Enqueue a copy of a host array to a variable of a library (CUlibrary), such as a ``__constant__`` array.

    Raises:
        RuntimeError: CUDA's, if the library has no variable of that name.
        ValueError: if the variable and the array differ in length.
    """
    from cuda.bindings import driver

    from smembench.kernels.numba_cuda import checked

    address, size = checked(driver.cuLibraryGetGlobal(library, name.encode()))
    if size != array.nbytes:
        raise ValueError(f"variable {name} has {size} bytes, its input {array.nbytes}")
    checked(driver.cuMemcpyHtoDAsync(address, array.ctypes.data, size, stream))
