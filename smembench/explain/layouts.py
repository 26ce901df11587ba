"""Layouts of a tile in shared memory: rows one after another, with a pad, or with columns permuted by XOR.

A pad makes rows longer. A swizzle moves element (r, c) to column c ^ f(r) of its row: a permutation of the row if that
has 2^n elements and f(r) is below 2^n. If f(r) is a multiple of a vector's elements, vectors stay whole and aligned.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from smembench.explain.requests import Integers
from smembench.explain.trace import SharedArray


@dataclass(frozen=True, slots=True)
class Layout:
    """The placement of a tile's elements; by default row after row.

    Attributes:
        pad: extra elements per row.
        down, rows, across: f(r) = ((r >> down) % rows) << across of a swizzle; with one row it is 0.
    """

    pad: int = 0
    down: int = 0
    rows: int = 1
    across: int = 0

    def place(self, row: Integers, column: Integers, columns: int) -> Integers:
        """The number of elements before elements (row, column) of a tile of ``columns`` columns."""
        return row * (columns + self.pad) + (column ^ ((row >> self.down) % self.rows << self.across))


@dataclass(frozen=True, slots=True)
class Tile:
    """A shared array as rows of ``columns`` elements, which the kernel has neither padded nor swizzled."""

    array: SharedArray
    columns: int

    @property
    def rows(self) -> int:
        """The range of a row index: in three dimensions the rows of one plane."""
        shape = self.array.shape
        return shape[-2] if len(shape) > 1 else shape[0] // self.columns

    @property
    def pointer(self) -> str:
        """The pointer to index: the array's name, or ``(sm + 2048)`` for the part ``sm+8192`` from a byte on."""
        name, _, byte = self.array.name.partition("+")
        return f"({name} + {int(byte) // self.array.itemsize})" if byte else name

    def bytes(self, layout: Layout) -> int:
        """The shared memory that the array takes."""
        return self.array.bytes // self.columns * (self.columns + layout.pad)

    def moved(self, addresses: Integers, layout: Layout) -> Integers:
        """The byte addresses at which a layout has the elements of byte addresses."""
        row, column = np.divmod((addresses - self.array.base) // self.array.itemsize, self.columns)
        plane, row = np.divmod(row, self.rows)
        before = plane * self.rows * (self.columns + layout.pad)
        return self.array.base + self.array.itemsize * (before + layout.place(row, column, self.columns))

    def expression(self, layout: Layout, *, brackets: bool = False) -> str:
        """Element (r, c) as the kernel's source has to write it; element i of an array without rows.

        With ``brackets`` each index has its own, as in C.
        """
        name, dimensions = self.pointer, len(self.array.shape)
        if self.array.shape == (self.columns,):
            return f"{name}[i]"
        column = "c"
        if layout.rows > 1:
            row = f"r >> {layout.down}" if layout.down else "r"
            if layout.rows << layout.down < self.rows:
                row = f"({row}) % {layout.rows}" if layout.down else f"{row} % {layout.rows}"
            if layout.across:
                row = f"{row} << {layout.across}" if row == "r" else f"({row}) << {layout.across}"
            column = f"c ^ {row}" if row == "r" else f"c ^ ({row})"
        if dimensions == 1:
            column = column if column == "c" else f"({column})"
            return f"{name}[r * {self.columns + layout.pad} + {column}]"
        between = "][" if brackets else ", "
        return f"{name}[{between.join([*['…'] * (dimensions > 2), 'r', column])}]"
