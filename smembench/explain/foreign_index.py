"""Indexing as Numba has it in kernels: an index per axis is an element, fewer indices or slices are a view."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any


class Indexed(ABC):
    """An array whose elements are loaded and stored one by one."""

    shape: Any

    @abstractmethod
    def load(self, indices: tuple[Any, ...]) -> Any:
        """An element."""

    @abstractmethod
    def store(self, indices: tuple[Any, ...], value: Any) -> None:
        """Change an element."""

    @property
    def size(self) -> Any:
        """As NumPy's."""
        return prod(self.shape)

    @property
    def ndim(self) -> int:
        """As NumPy's."""
        return len(self.shape)

    def __len__(self) -> int:
        return int(self.shape[0])

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        indices = index if isinstance(index, tuple) else (index,)
        return self.load(indices) if self._is_element(indices) else View(self, indices)

    def __setitem__(self, index: Any, value: Any) -> None:
        indices = index if isinstance(index, tuple) else (index,)
        if not self._is_element(indices):
            raise TypeError("a store to several elements at once is not followed; store them one by one")
        self.store(indices, value)

    def _is_element(self, indices: tuple[Any, ...]) -> bool:
        if len(indices) > self.ndim:
            raise IndexError(f"{len(indices)} indices for an array with {self.ndim} dimensions")
        return len(indices) == self.ndim and not any(isinstance(index, slice) for index in indices)


@dataclass(frozen=True, slots=True)
class _Axis:
    """An axis of a view: its ``length``, and the index in the whole array of its first element and between two."""

    start: Any
    step: Any
    length: Any

    def __call__(self, index: Any) -> Any:
        return self.start + (index + (index < 0) * self.length) * self.step


class View(Indexed):
    """Some elements of another array."""

    def __init__(self, whole: Indexed, indices: tuple[Any, ...]) -> None:
        self._whole = whole
        rest = (slice(None),) * (whole.ndim - len(indices))
        self._axes = [
            _axis(index, side) if isinstance(index, slice) else index
            for index, side in zip((*indices, *rest), whole.shape, strict=True)
        ]
        self.shape = tuple(axis.length for axis in self._axes if isinstance(axis, _Axis))

    def load(self, indices: tuple[Any, ...]) -> Any:
        """An element of the whole array."""
        return self._whole.load(self._of_whole(indices))

    def store(self, indices: tuple[Any, ...], value: Any) -> None:
        """Change an element of the whole array."""
        self._whole.store(self._of_whole(indices), value)

    def update(self, index: Any, *values: Any) -> Any:
        """An atomic on an element of the whole array."""
        whole: Any = self._whole
        return whole.update(self._of_whole(index if isinstance(index, tuple) else (index,)), *values)

    def _of_whole(self, indices: tuple[Any, ...]) -> tuple[Any, ...]:
        own = iter(indices)
        return tuple(axis(next(own)) if isinstance(axis, _Axis) else axis for axis in self._axes)


def _axis(part: slice, side: Any) -> _Axis:
    step = 1 if part.step is None else part.step
    start, stop = 0 if part.start is None else part.start, side if part.stop is None else part.stop
    start, stop = start + (start < 0) * side, stop + (stop < 0) * side
    return _Axis(start, step, (stop - start + step - 1) // step)
