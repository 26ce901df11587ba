"""The protocol of the user's kernels on the current GPU, as timing needs it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from smembench.launches.placed_array import PlacedArray
from smembench.model.measurement import Resources

Enqueue = Callable[[], Any]
Arrays = Mapping[int, PlacedArray]
"""Arrays on the device, by their place among the arguments."""


class Subject(ABC):
    """A kernel that can be enqueued.

    Attributes:
        names: of its arguments, in order.
        captured: whether a graph is sure to capture it.
        notes: for readers of its times.
        parts: if a graph need not capture it, its kernels, warm (False) and cold, once they were measured.
    """

    names: Sequence[str]
    captured = True
    notes: Sequence[str] = ()
    parts: dict[bool, str]

    @abstractmethod
    def enqueue(self, stream: int, arrays: Arrays) -> Enqueue:
        """A function that enqueues a launch with these arrays; ``stream`` is a handle."""

    def resources(self) -> Resources:
        """Registers and local memory per thread, and the hash of its instructions, as far as they are known."""
        return Resources()
