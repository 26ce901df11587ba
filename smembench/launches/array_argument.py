"""An array as an argument of a launch: how its elements lie in memory, and their data if that was given."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smembench.launches.tensor_map_argument import TensorMapArgument


@dataclass(frozen=True, slots=True)
class ArrayArgument:
    """An array on the device, in an allocation of its own, which begins at an address that every GPU aligns.

    Attributes:
        shape: elements along each dimension.
        dtype: of an element.
        data: of the same shape and type, if the trace may read it.
        strides: bytes from an element to the next along each dimension; row by row without gaps if None.
        offset: bytes of the allocation before the lowest element.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    data: NDArray[Any] | None = None
    strides: tuple[int, ...] | None = None
    offset: int = 0

    @property
    def steps(self) -> tuple[int, ...]:
        """The strides, if none are given those without gaps."""
        if self.strides is not None:
            return self.strides
        return tuple(self.dtype.itemsize * prod(self.shape[axis + 1 :]) for axis in range(len(self.shape)))

    @property
    def begin(self) -> int:
        """The byte of the allocation at which the first element begins, to which a pointer points."""
        if not self.element_bytes:
            return self.offset
        return self.offset - sum(min((side - 1) * step, 0) for side, step in zip(self.shape, self.steps, strict=True))

    @property
    def element_bytes(self) -> int:
        """The bytes of all elements."""
        return prod(self.shape) * self.dtype.itemsize

    @property
    def bytes(self) -> int:
        """The bytes of the allocation, which ends with the highest element."""
        if not self.element_bytes:
            return self.offset
        above = sum(max((side - 1) * step, 0) for side, step in zip(self.shape, self.steps, strict=True))
        return self.begin + above + self.dtype.itemsize

    def content(self) -> NDArray[np.uint8] | None:
        """A copy of the allocation, zeros where there are no elements; None without data."""
        if self.data is None:
            return None
        content = np.zeros(self.bytes, np.uint8)
        if self.element_bytes:
            np.ndarray(self.shape, self.dtype, content.data, self.begin, self.steps)[...] = self.data
        return content


Argument = ArrayArgument | TensorMapArgument | int | float | complex | np.generic
