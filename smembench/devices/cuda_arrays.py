"""Arrays of a case on a GPU or in host memory, and a kernel between copies of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from cuda.bindings import driver

from smembench.cuda_api import checked, copy, cuda
from smembench.devices.base import GUARD_BYTES, POISON, check_guards
from smembench.kernels.registry import Place

if TYPE_CHECKING:
    from smembench.problems.base import Array

Enqueue = Callable[[], Any]


def allocate(count: int, dtype: Any, place: Place) -> Any:
    """A one-dimensional array without content: a NumPy array unless it is on the device."""
    match place:
        case "device":
            return cuda.device_array(count, dtype)
        case "pinned":
            return cuda.pinned_array(count, dtype)
        case "pageable":
            return np.empty(count, dtype)


def place_input(array: Array, place: Place) -> Any:
    """An input where a program wants it. NumPy's own memory is pageable: such an input stays where it is."""
    match place:
        case "device":
            return cuda.to_device(array)
        case "pinned":
            pinned = allocate(array.size, array.dtype, place)
            np.copyto(pinned, array)
            return pinned
        case "pageable":
            return array


class Output:
    """An output between two guards."""

    def __init__(self, count: int, dtype: Any, place: Place) -> None:
        self._guard = GUARD_BYTES // np.dtype(dtype).itemsize
        self._buffer = allocate(count + 2 * self._guard, dtype, place)
        self.array = self._buffer[self._guard : -self._guard]

    def poison(self, stream: int) -> None:
        """Fill the output and its guards."""
        if isinstance(self._buffer, np.ndarray):
            self._buffer.view("u1")[:] = POISON
            return
        size = self._buffer.size * self._buffer.dtype.itemsize
        checked(driver.cuMemsetD8Async(self._buffer.device_ctypes_pointer.value, POISON, size, stream))

    def read(self) -> Array:
        """The output on the host, after a look at its guards.

        Raises:
            OutOfBounds: when something was written there.
        """
        host: Array = self._buffer if isinstance(self._buffer, np.ndarray) else self._buffer.copy_to_host()
        check_guards(host[: self._guard], host[-self._guard :])
        return host[self._guard : -self._guard]


def between_copies(
    stream: int, launch: Callable[..., Any], inputs: Sequence[Any], output: Output
) -> tuple[Enqueue, Output]:
    """Enqueue copies of host inputs to the device, a launch on them, and a copy of its output to the host.

    Args:
        stream: its handle.
        launch: called with the output and the inputs on the device.
        inputs: host arrays.
        output: on the host.

    Returns:
        What enqueues all of it, and the output on the device, whose guards are to be looked at as well.
    """
    staged = [allocate(array.size, array.dtype, "device") for array in inputs]
    result = Output(output.array.size, output.array.dtype, "device")
    steps: list[Enqueue] = [
        *(partial(copy, stream, there, here) for there, here in zip(staged, inputs, strict=True)),
        partial(launch, result.array, *staged),
        partial(copy, stream, output.array, result.array),
    ]

    def enqueue() -> None:
        for step in steps:
            step()

    return enqueue, result
