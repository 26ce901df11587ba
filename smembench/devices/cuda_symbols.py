"""Variables of a module on a GPU, filled from the host: what cudaMemcpyToSymbol does, by the driver's functions."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from cuda.bindings import driver
from cuda.core import ObjectCode

from smembench.kernels.numba_cuda import checked

if TYPE_CHECKING:
    from smembench.model.problem import Array


_LOAD: Any = attrgetter("library.get_cufunc")
"""Of a kernel that Numba has compiled, what loads it and returns the driver's function."""


def loaded(code: Any, arguments: Sequence[Any]) -> Any:
    """The handle (CUlibrary) of loaded machine code: cuda.core's, or that of Numba's dispatcher for such arguments.

    A dispatcher compiles at its first launch, but the variables are to be filled before it: it is made to compile here.
    """
    if isinstance(code, ObjectCode):
        return code.handle
    kernel = code.compile(tuple(code.typeof_pyval(argument) for argument in arguments))
    return _LOAD(kernel)().module.handle


def copy_to_symbol(library: Any, name: str, array: Array, stream: int) -> None:
    """Enqueue a copy of a host array to a variable of a library, such as a ``__constant__`` array.

    Raises:
        RuntimeError: CUDA's, when the library has no variable of that name.
        ValueError: when the variable is not as long as the array.
    """
    address, size = checked(driver.cuLibraryGetGlobal(library, name.encode()))
    if size != array.nbytes:
        raise ValueError(f"variable {name} has {size} bytes, its input {array.nbytes}")
    checked(driver.cuMemcpyHtoDAsync(address, array.ctypes.data, size, stream))
