"""Types of what kernels compute with, for readers and for mypy; Numba infers its own from the arguments of a launch.

A NamedTuple compiles to the same instructions as its fields.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, TypeAlias, overload

Index: TypeAlias = int
"""A position, a length or a thread's number: ``uint32`` in a kernel, ``uint64`` where it says so (see unsigned.py)."""

Scalar: TypeAlias = float
"""An element, of the case's dtype."""

Vector: TypeAlias = tuple[Scalar, ...]
"""Elements that one access loads or stores."""

Map: TypeAlias = Any
"""A tensor map among a launch's parameters, by which the TMA copies tiles of a matrix (intrinsics/bulk_copy.py)."""


class Array(Protocol):
    """Elements in global memory, in shared memory or in a thread's registers, by index or by row and column.

    A slice is one access of several elements, as intrinsics/vector.py makes them.
    """

    @property
    def itemsize(self) -> int:
        """Bytes per element."""

    @overload
    def __getitem__(self, index: Index | tuple[Index, Index], /) -> Scalar: ...
    @overload
    def __getitem__(self, index: slice, /) -> Vector: ...
    @overload
    def __setitem__(self, index: Index | tuple[Index, Index], value: Scalar, /) -> None: ...
    @overload
    def __setitem__(self, index: slice, value: Vector, /) -> None: ...


class Matrix(NamedTuple):
    """A matrix in global memory: the element at row, col is ``elements[row * stride + col]``."""

    elements: Array
    rows: Index
    columns: Index
    stride: Index


class Place(NamedTuple):
    """A row and a column, of a matrix or of a tile."""

    row: Index
    col: Index
