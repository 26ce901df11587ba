"""Arrays of a launch in a GPU's memory, as kernels and libraries take them."""

from __future__ import annotations

from typing import Any

from smembench.launches.array_argument import ArrayArgument


class PlacedArray:
    """An array at an address, with the shape, type and strides of an argument.

    Attributes:
        address: of its first element.
    """

    def __init__(self, address: int, argument: ArrayArgument) -> None:
        self.address, self._argument = address, argument
        self.shape, self.dtype = argument.shape, argument.dtype

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Types that NumPy lacks, such as bfloat16, are unsigned integers there."""
        typestr = self.dtype.str if self.dtype.isbuiltin == 1 else f"<u{self.dtype.itemsize}"
        steps = self._argument.strides
        return {"shape": self.shape, "typestr": typestr, "strides": steps, "data": (self.address, False), "version": 3}
