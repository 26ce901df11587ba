"""CUDA's driver as the whole package calls it: its error check, and copies between arrays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cuda.bindings import driver


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


def latest(name: str) -> Any:
    """A function of the driver as CUDA 13 has it; CUDA 12 calls it by another name."""
    return getattr(driver, f"{name}_v2", None) or getattr(driver, name)


@contextmanager
def own_context() -> Iterator[None]:
    """Make whatever context is current now the current one again at the end; without a driver nothing."""
    try:
        before = checked(driver.cuCtxGetCurrent())
    except Exception:  # no driver, or one that nobody initialised: nothing was current
        before = None
    try:
        yield
    finally:
        if before is not None:
            checked(driver.cuCtxSetCurrent(before))


def copy(stream: int, target: Any, source: Any) -> None:
    """Enqueue a copy of ``source`` on a stream, between arrays on the device and NumPy arrays in any direction.

    For pageable host memory cuMemcpyAsync may do part or all of the copy before it returns.
    """
    checked(driver.cuMemcpyAsync(_address(target), _address(source), source.size * source.dtype.itemsize, stream))


def _address(array: Any) -> int:
    return int(array.address if hasattr(array, "address") else array.ctypes.data)
