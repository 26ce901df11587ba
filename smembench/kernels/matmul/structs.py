"""Arguments of the device functions of a product. A NamedTuple compiles to the same instructions as its fields."""

from __future__ import annotations

from typing import NamedTuple

from smembench.kernels.types import Array, Index, Place


class Operands(NamedTuple):
    """An array for A and one for B: tiles in shared memory, or a thread's registers."""

    a: Array
    b: Array


class Offsets(NamedTuple):
    """An index into an array of A and one of B."""

    a: Index
    b: Index


class Memory(NamedTuple):
    """What a thread computes with: the block's tiles in shared memory, and its own registers.

    ``accumulators``: its results, row by row. ``fragments``: what it multiplies. ``held``: its share of the next tiles,
    on the way from global to shared memory.
    """

    tiles: Operands
    accumulators: Array
    fragments: Operands
    held: Operands


class Share(NamedTuple):
    """Which part of a block's tiles a thread loads.

    ``corner``: first row and column of the tile of C. ``short``: by how much the first tile along k is shorter than the
    others; positions along k begin that much before its first element.
    """

    thread: Index
    corner: Place
    short: Index
