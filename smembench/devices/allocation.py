"""An array of a launch of the user's on a GPU, between guards."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from smembench.devices.base import GUARD_BYTES, POISON, OutOfBounds, check_guards
from smembench.devices.buffers import fill
from smembench.kernels.device_memory import DeviceArray, to_device
from smembench.launches.array_argument import ArrayArgument
from smembench.launches.placed_array import PlacedArray

if TYPE_CHECKING:
    from smembench.model.problem import Array


class Allocation:
    """An array's memory between guards."""

    def __init__(self, whole: DeviceArray, argument: ArrayArgument, content: Array) -> None:
        self.argument, self.content, self._whole = argument, content, whole
        self._filled = self._guard = POISON
        self.memory = self._whole[GUARD_BYTES : GUARD_BYTES + argument.bytes]
        self.placed = PlacedArray(self.memory.address + argument.begin, argument)

    def poison(self, stream: int, byte: int = POISON, guard: int = POISON) -> None:
        """Fill the array and gaps between its rows with a byte, guards with another."""
        fill(stream, self._whole, guard)
        if byte != guard and self.argument.bytes:
            fill(stream, self.memory, byte)
        self._filled, self._guard = byte, guard

    def place(self, stream: int, content: Array, guard: int = POISON) -> None:
        """Poison gaps, fill guards, and write the elements."""
        self.poison(stream, guard=guard)
        self.memory.copy_from_host(self._laid_out(content))

    def read(self, name: str) -> Array:
        """The elements on the host; ``name`` is the array's in an error.

        Raises:
            OutOfBounds: if a byte of the guards, or of the gaps, is no longer what it was filled with.
        """
        host, argument = self._whole.copy_to_host(), self.argument
        check_guards(host[:GUARD_BYTES], host[GUARD_BYTES + argument.bytes :], name, self._guard)
        memory = host[GUARD_BYTES : GUARD_BYTES + argument.bytes]
        if argument.bytes != argument.element_bytes:
            gaps = np.ones(argument.bytes, np.bool_)
            shape, steps = (*argument.shape, argument.dtype.itemsize), (*argument.steps, 1)
            np.ndarray(shape, np.bool_, gaps.data, argument.begin, steps)[...] = False
            if (memory[gaps] != self._filled).any():
                raise OutOfBounds(f"the kernel wrote outside {name}, between its elements")
        return self._elements(memory).copy()

    def bytes_on_host(self) -> Array:
        """The memory with its guards."""
        return self._whole.copy_to_host()

    def saved(self, content: Array) -> DeviceArray:
        """A copy on the device of what each launch is to find."""
        return to_device(self._laid_out(content))

    def _laid_out(self, content: Array) -> Array:
        host = np.full(self.argument.bytes, POISON, np.uint8)
        self._elements(host)[...] = content
        return host

    def _elements(self, memory: Array) -> Array:
        argument = self.argument
        return np.ndarray(argument.shape, argument.dtype, memory.data, argument.begin, argument.steps)
