"""Contents of memory, and what atomic operations leave there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smembench.explain.ptx.operation import OF_BOOLEANS
from smembench.explain.requests import Integers


@dataclass(slots=True)
class GlobalArray:
    """An array in global or constant memory: its name, first byte, size in bytes, and content if that is known.

    With a ``shape`` its elements have an index. A ``result`` is computed: all that is stored to it, and whatever that
    depends on; its content is then what the kernel leaves.
    """

    name: str
    begin: int
    bytes: int
    data: NDArray[np.uint8] | None
    space: str = "global"
    shape: tuple[int, ...] = ()
    result: bool = False


@dataclass(slots=True)
class Content:
    """Bytes, and which of them are known; None for all."""

    data: NDArray[np.uint8]
    known: NDArray[np.bool_] | None = None

    def is_unknown(self, begins: Integers, width: int) -> bool:
        """True if nobody knows a byte from the first to the last of some ranges of ``width`` bytes."""
        low, high = begins.min(), begins.max() + width
        return self.known is not None and low >= 0 and high <= len(self.data) and not self.known[low:high].any()

    def mark(self, places: Integers, known: Any) -> None:
        """Note whether bytes are known, by row of places."""
        if self.known is None:
            if np.all(known):
                return
            self.known = np.ones(len(self.data), np.bool_)
        self.known[places] = np.broadcast_to(known, len(places))[:, None]


def combined(parts: Sequence[str], before: Any, value: Any, other: Any = None) -> Any:
    """The value after an atomic operation with these modifiers on the value before."""
    if "add" in parts:
        return before + value
    if "exch" in parts:
        return value
    if "cas" in parts:
        return other if before == value else before
    if "inc" in parts:
        return before.dtype.type(0) if before >= value else before + before.dtype.type(1)
    if "dec" in parts:
        return value if before == 0 or before > value else before - before.dtype.type(1)
    operations: Mapping[str, Callable[..., Any]] = {"min": min, "max": max, **OF_BOOLEANS}
    return next(compute for name, compute in operations.items() if name in parts)(before, value)


def element(shape: Sequence[int], number: int) -> str:
    """The index of an element by its number in an array by rows; outside of the array the first is as far outside."""
    indices = list[int]()
    for side in shape[:0:-1]:
        number, inner = divmod(number, side)
        indices.insert(0, inner)
    return ", ".join(map(str, [number, *indices]))
