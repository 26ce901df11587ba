"""Dimensions of grids, blocks and clusters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod
from operator import index
from typing import SupportsIndex

from smembench.model.errors import UsageError
from smembench.model.hardware import MAX_THREADS

Dimensions = tuple[int, ...]

MOST_IN_CLUSTER, PORTABLE_CLUSTER = 16, 8
"""Blocks of a cluster: more than the second only of a kernel that allows a size that is not portable."""
_MOST_BLOCKS = (2**31 - 1, 65535, 65535)
_MOST_IN_BLOCK = (1024, 1024, 64)


def dimensions(text: str, name: str) -> Dimensions:
    """The dimensions of a grid or a block from text such as ``32x8``.

    Raises:
        UsageError: for anything else.
    """
    sides = re.split("[xX×]", text)
    if not all(re.fullmatch(r"\d{1,100}", side, re.ASCII) for side in sides) or len(sides) > 3:
        raise UsageError(f"{name} {text!r}: write 1 to 3 dimensions, such as 128, 32x8 or 8x8x4")
    return tuple(map(int, sides))


def sides(value: int | Sequence[int]) -> Dimensions:
    """The dimensions of a grid or a block as a launch in Python has them, NumPy's integers among them.

    Raises:
        UsageError: for anything else.
    """
    try:
        given = (index(value),) if isinstance(value, SupportsIndex) else tuple(map(index, value))
    except TypeError:
        given = ()
    if not given:
        raise UsageError(f"{value!r}: write whole numbers as dimensions, such as 128 or (32, 8)")
    return given


def as_text(dimensions: Dimensions) -> str:
    """Dimensions as the command line has them: ``32x8``."""
    return "x".join(map(str, dimensions))


def check_launch(grid: Dimensions, block: Dimensions, cluster: Dimensions = ()) -> None:
    """Check that a GPU takes a grid, a block and a cluster of these dimensions; empty ones are not given.

    Raises:
        UsageError: if not.
    """
    if grid:
        check_limits("grid", grid, _MOST_BLOCKS)
    if block:
        check_limits("block", block, _MOST_IN_BLOCK)
    if prod(block) > MAX_THREADS:
        raise UsageError(f"block {as_text(block)}: has {prod(block)} threads; a block has at most {MAX_THREADS}")
    if cluster:
        check_cluster(f"cluster {as_text(cluster)}", grid, cluster)


def check_cluster(text: str, grid: Dimensions, cluster: Dimensions) -> None:
    """Check that a GPU takes a cluster of these dimensions, which ``text`` names, and that it divides the grid.

    Raises:
        UsageError: if not.
    """
    if not 1 <= len(cluster) <= 3 or min(cluster) < 1:
        raise UsageError(f"{text}: give 1 to 3 dimensions of at least 1, such as 2 or 2x1x1")
    if (count := prod(cluster)) > MOST_IN_CLUSTER:
        most = f"a GPU takes at most {MOST_IN_CLUSTER}, and every GPU with clusters {PORTABLE_CLUSTER}"
        raise UsageError(f"{text}: has {count} blocks; {most}")
    for axis, blocks, size in zip("xyz", (*grid, 1, 1)[:3], (*cluster, 1, 1), strict=False):
        if blocks % size:
            raise UsageError(
                f"{text}: does not divide the grid's {blocks} blocks along {axis}; give a multiple of {size} there"
            )


def check_limits(name: str, dimensions: Dimensions, most: Dimensions) -> None:
    """Check that a GPU takes these dimensions.

    Raises:
        UsageError: if not.
    """
    if not 1 <= len(dimensions) <= 3 or min(dimensions) < 1:
        raise UsageError(f"{name} {as_text(dimensions)}: give 1 to 3 dimensions of at least 1, such as 32x8")
    for axis, size, limit in zip("xyz", dimensions, most, strict=False):
        if size > limit:
            raise UsageError(f"{name} {as_text(dimensions)}: has {size} along {axis}; a GPU takes at most {limit}")
