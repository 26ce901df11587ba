"""Arrays of a case on a GPU or in host memory, the buffer pool of a run, and what surrounds a launch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from cuda.bindings import driver

from smembench.devices.base import GUARD_BYTES, POISON, aligned, check_guards, with_copies
from smembench.kernels.device_memory import device_array, pinned_array
from smembench.kernels.driver import checked, copy
from smembench.kernels.program import MemoryKind

if TYPE_CHECKING:
    from smembench.model.problem import Array

Enqueue = Callable[[], Any]


def new_stream() -> Any:
    """A stream of the current GPU. As copies are, work on it is ordered after that on the default stream."""
    from cuda.core import Device, StreamOptions

    return Device().create_stream(options=StreamOptions(nonblocking=False))


def allocate(count: int, dtype: Any, place: MemoryKind) -> Any:
    """An uninitialised one-dimensional array: a NumPy array unless it is on the device."""
    match place:
        case "device":
            return device_array(count, dtype)
        case "pinned":
            return pinned_array(count, dtype)
        case "pageable":
            return np.empty(count, dtype)


def fill(stream: int, array: Any, byte: int) -> None:
    """Enqueue the filling of an array on the device with a byte."""
    size = array.size * array.dtype.itemsize
    checked(driver.cuMemsetD8Async(array.address, byte, size, stream))


class BufferPool:
    """GPU buffers that the cases of a run use in turn: one for outputs and one per input.

    Every array begins at the start of its buffer. The time of some kernels, above all those with strided writes,
    depends on the addresses of arrays; so all kernels of a run, and a kernel in two runs, get the same addresses.
    Measurements: results/reference/notes/timing.md.
    """

    def __init__(self) -> None:
        self._buffers: dict[int, Any] = {}

    def reserve(self, sizes: Sequence[int], free: int) -> None:
        """Enlarge the buffers to ``sizes`` bytes, the output's first, if ``free`` bytes suffice.

        A buffer that grows later moves, and its address would then depend on the order of the cases.
        """
        missing = sum(size for slot, size in enumerate(sizes) if self._size(slot) < size)
        if missing <= free:
            for slot, size in enumerate(sizes):
                self._at_least(slot, size)

    def make_room(self, sizes: Sequence[int], free: int) -> None:
        """Free all buffers if those that are too small for ``sizes`` bytes cannot grow into ``free`` bytes."""
        if sum(max(size - self._size(slot), 0) for slot, size in enumerate(sizes)) > free:
            self.clear()

    def take(self, slot: int, count: int, dtype: Any, copies: int = 1) -> Sequence[Any]:
        """Uninitialised one-dimensional arrays, copies of one: slot 0 is the output, the others are inputs."""
        size = count * np.dtype(dtype).itemsize
        whole = self._at_least(slot, with_copies(size, copies))
        return [whole[begin : begin + size].view(dtype) for begin in (aligned(size) * copy for copy in range(copies))]

    def clear(self) -> None:
        """Free the buffers that no array uses."""
        self._buffers.clear()

    def _size(self, slot: int) -> int:
        return self._buffers[slot].size if slot in self._buffers else 0

    def _at_least(self, slot: int, size: int) -> Any:
        if self._size(slot) < size:
            self._buffers.pop(slot, None)  # freed before the next is allocated
            self._buffers[slot] = device_array(size, np.uint8)
        return self._buffers[slot]


def place_input(array: Array, place: MemoryKind, pool: BufferPool, slot: int, copies: int = 1) -> Sequence[Any]:
    """Copy an input to where a program needs it, in host memory once."""
    if place == "device":
        placed = pool.take(slot, array.size, array.dtype, copies)
        for target in placed:
            target.copy_from_host(array)
        return placed
    on_host = allocate(array.size, array.dtype, place)
    np.copyto(on_host, array)
    return [on_host]


class Output:
    """An output between two guards, by default in memory of its own."""

    def __init__(self, count: int, dtype: Any, place: MemoryKind, buffer: Any = None) -> None:
        self._guard = GUARD_BYTES // np.dtype(dtype).itemsize
        self._buffer = allocate(count + 2 * self._guard, dtype, place) if buffer is None else buffer
        self.array = self._buffer[self._guard : -self._guard]

    def poison(self, stream: int = 0) -> None:
        """Fill the output and its guards, on the device by a stream."""
        if isinstance(self._buffer, np.ndarray):
            self._buffer.view("u1")[:] = POISON
        else:
            fill(stream, self._buffer, POISON)

    def read(self) -> Array:
        """The output on the host, after a check of its guards.

        Raises:
            OutOfBounds: if the kernel wrote to a guard.
        """
        host: Array = self._buffer if isinstance(self._buffer, np.ndarray) else self._buffer.copy_to_host()
        check_guards(host[: self._guard], host[-self._guard :])
        return host[self._guard : -self._guard]


def pooled_outputs(count: int, dtype: Any, pool: BufferPool, copies: int) -> list[Output]:
    """An output on the device, and copies of it, from a pool."""
    whole = count + 2 * (GUARD_BYTES // np.dtype(dtype).itemsize)
    return [Output(count, dtype, "device", buffer) for buffer in pool.take(0, whole, dtype, copies)]


class FreshOutput(Output):
    """An output on the device that each launch allocates anew; the first one after ``poison`` fills it."""

    def __init__(self, count: int, dtype: Any) -> None:
        self._count, self._dtype = count, dtype
        self._to_fill = self._filled = False
        self.free()

    def poison(self, stream: int = 0) -> None:
        """Have the next allocation filled."""
        self._to_fill = True

    def free(self) -> None:
        """Drop the array."""
        self._buffer = self.array = None

    def allocate(self, stream: int) -> None:
        """Make the array, filled and with guards if it was to be poisoned."""
        super().__init__(self._count, self._dtype, "device")
        self._filled, self._to_fill = self._to_fill, False
        if self._filled:
            super().poison(stream)

    def read(self) -> Array:
        """The output on the host; guards that were not filled are not checked.

        Raises:
            OutOfBounds: if the kernel wrote to a guard.
        """
        if self._filled:
            return super().read()
        host: Array = self.array.copy_to_host()
        return host


def after_zeros(stream: int, launch: Callable[..., Any]) -> Callable[..., Any]:
    """A launch, called with the output and the inputs on the device, that fills the output with zeros before it."""

    def enqueue(output: Any, *inputs: Any) -> None:
        fill(stream, output, 0)
        launch(output, *inputs)

    return enqueue


def from_element(first: int, launch: Callable[..., Any]) -> Callable[..., Any]:
    """A launch, called with whole arrays, of a kernel that gets what begins at their element ``first``."""
    return lambda *arrays: launch(*(array[first:] for array in arrays))


def between_copies(
    stream: int, launch: Callable[..., Any], inputs: Sequence[Any], output: Output
) -> tuple[Enqueue, Output, Sequence[Any]]:
    """Surround a launch with copies: host inputs to the device before it, its output to the host after it.

    ``launch`` is called with the output and the inputs on the device. Returns a function that enqueues all of it on the
    stream, the output on the device, whose guards need checking too, and the inputs on the device.
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

    return enqueue, result, staged


def between_allocations(
    stream: int, launch: Callable[..., Any], inputs: Sequence[Any], output: Output
) -> tuple[Enqueue, Output, Sequence[Any]]:
    """Surround a launch as ``between_copies`` does, but free the last launch's arrays and allocate new ones in each."""
    result = FreshOutput(output.array.size, output.array.dtype)
    staged: list[Any] = []

    def enqueue() -> None:
        staged.clear()
        result.free()
        for here in inputs:
            staged.append(allocate(here.size, here.dtype, "device"))
            copy(stream, staged[-1], here)
        result.allocate(stream)
        launch(result.array, *staged)
        copy(stream, output.array, result.array)

    return enqueue, result, staged
