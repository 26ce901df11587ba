"""Variables of a GPU module, found by name through the driver API, and copies to and from them.

They are CUDA's symbols: cudaGetSymbolAddress and cudaGetSymbolSize, cudaMemcpyToSymbol and cudaMemcpyFromSymbol.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from smembench.model.problem import Array


def symbol(library: Any, name: str) -> tuple[int, int]:
    """Address and bytes of a variable of a library (CUlibrary), such as a ``__constant__`` array.

    Raises:
        RuntimeError: CUDA's, if the library has no variable of that name.
    """
    from cuda.bindings import driver

    from smembench.kernels.driver import checked

    address, size = checked(driver.cuLibraryGetGlobal(library, name.encode()))
    return int(address), int(size)


def copy_to_symbol(library: Any, name: str, array: Array, stream: int) -> None:
    """Enqueue a copy of a host array to a variable.

    Raises:
        RuntimeError: CUDA's, if the library has no variable of that name.
        ValueError: if the variable and the array differ in length.
    """
    from cuda.bindings import driver

    from smembench.kernels.driver import checked

    address, size = _as_long_as(array, library, name)
    checked(driver.cuMemcpyHtoDAsync(address, array.ctypes.data, size, stream))


def copy_from_symbol(library: Any, name: str, array: Array, stream: int) -> None:
    """Enqueue a copy of a variable to a host array; raises as ``copy_to_symbol``."""
    from cuda.bindings import driver

    from smembench.kernels.driver import checked

    address, size = _as_long_as(array, library, name)
    checked(driver.cuMemcpyDtoHAsync(array.ctypes.data, address, size, stream))


def _as_long_as(array: Array, library: Any, name: str) -> tuple[int, int]:
    address, size = symbol(library, name)
    if size != array.nbytes:
        raise ValueError(f"variable {name} has {size} bytes, the array {array.nbytes}")
    return address, size
