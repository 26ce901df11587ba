"""Which blocks can go over a square tile in whole passes, and how a warp lies over it in 128-bit accesses."""

from __future__ import annotations

from smembench.case import Case
from smembench.kernels.grids import block_of
from smembench.kernels.vector import lanes

ACROSS = 8
"""Lanes of a warp side by side in 128-bit accesses: 128 bytes of a row, a cache line."""

WARP_ROWS = 4
"""Rows that a warp then covers."""


def rows_fit(case: Case) -> str | None:
    """The reason to refuse a block that cannot go over a tile as high as it is wide in whole passes, or None."""
    block = block_of(case)
    if block.x % block.y:
        return f"{case.kernel} needs a block whose height divides its width, not {block}"
    return None


def power_of_two(case: Case) -> str | None:
    """The reason to refuse a block whose width is no power of two, which a swizzle by XOR needs, or None."""
    block = block_of(case)
    if block.x & (block.x - 1):
        return f"{case.kernel} needs a block whose width is a power of two, not {block}"
    return None


def vector_side(case: Case) -> int:
    """Side of the tile of a block whose threads access 16 bytes each: a row of threads is a row of the tile."""
    return lanes(case.dtype) * block_of(case).x


def vectors_fit(case: Case) -> str | None:
    """The reason to refuse a block that cannot go over its tile in 128-bit accesses and by elements, or None."""
    block, side = block_of(case), vector_side(case)
    step = max(lanes(case.dtype), WARP_ROWS)
    if reason := power_of_two(case):
        return reason
    if block.x < ACROSS or block.y % step or side % block.y:
        return (
            f"{case.kernel} needs at least {ACROSS} threads across and, for {case.dtype}, a height that {step} divides "
            f"and that divides {side}, not {block}"
        )
    return None
