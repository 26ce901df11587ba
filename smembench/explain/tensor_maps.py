"""The elements and bytes that the TMA moves of an array described by a tensor map."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from smembench.explain.requests import Integers
from smembench.explain.tiles import TileAccess, inside, moving
from smembench.launches.tensor_map_argument import TensorMapArgument


def elements(box: TensorMapArgument, at: Sequence[int]) -> int:
    """Elements of the box at ``at`` that lie inside the array."""
    sides = zip(box.shape[::-1], at, box.box, strict=True)
    return prod(inside(side, first, count)[0] for side, first, count in sides)


def moved(box: TensorMapArgument, access: TileAccess, at: Sequence[int]) -> TileAccess:
    """A copy or a store of the box at ``at``, the innermost coordinate first, with the bytes that it moves."""
    size, sides = box.dtype.itemsize, box.shape[::-1]
    wide, left = inside(sides[0], at[0], box.box[0])
    first: Integers = np.array([(at[0] + left) * size])
    stride = size
    for number in range(1, len(sides)):
        stride *= box.pitch or sides[0] if number == 1 else sides[number - 1]
        high, above = inside(sides[number], at[number], box.box[number])
        places = (at[number] + above + np.arange(high)) * stride
        first = (places[:, None] + first).ravel()
    return moving(access, first, wide * size, box.box[0] * size)
