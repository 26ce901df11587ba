"""Geometry of square tiles: which blocks cover one in whole passes, and how a warp covers it in 128-bit accesses."""

from __future__ import annotations

from smembench.kernels.common.grids import block_of
from smembench.kernels.intrinsics.vector import vector_width
from smembench.model.case import Case

ACROSS = 8
"""Lanes of a warp side by side in a row: by 128-bit accesses they cover 128 bytes of it, a cache line."""

WARP_ROWS = 4
"""Rows of a tile that a warp covers, with ACROSS lanes in each."""


def rows_fit(case: Case) -> str | None:
    """The refusal of a block that cannot cover a square tile as wide as itself in whole passes, or None."""
    block = block_of(case)
    if block.x % block.y:
        return f"{case.kernel} needs a block whose height divides its width, not {block}"
    return None


def power_of_two(case: Case) -> str | None:
    """The refusal of a block whose width is not the power of two that a swizzle by XOR needs, or None."""
    block = block_of(case)
    if block.x & (block.x - 1):
        return f"{case.kernel} needs a block whose width is a power of two, not {block}"
    return None


def vector_side(case: Case) -> int:
    """Side of the tile, in elements, of a block whose row of threads accesses a row of the tile by 16 bytes each."""
    return vector_width(case.dtype) * block_of(case).x


def vectors_align(case: Case) -> bool:
    """True if all rows of input and output begin at multiples of 16 bytes."""
    wide = vector_width(case.dtype)
    return case.n % wide == 0 and case.m % wide == 0


def vectors_fit(case: Case) -> str | None:
    """The refusal of a block that cannot cover its tile in whole passes of 128-bit accesses, or None."""
    block, side = block_of(case), vector_side(case)
    step = max(vector_width(case.dtype), WARP_ROWS)
    if reason := power_of_two(case):
        return reason
    if block.x < ACROSS or block.y % step or side % block.y:
        return (
            f"{case.kernel} needs at least {ACROSS} threads across and, for {case.dtype}, a height that {step} divides "
            f"and that divides {side}, not {block}"
        )
    return None


def unaligned_elements(case: Case) -> int:
    """Elements of a tile of unaligned rows: a vector more per row, rows above it for any shift, and unused vectors."""
    wide, bx = vector_width(case.dtype), block_of(case).x
    rows = vector_side(case) + wide - 1
    return wide * (rows * (bx + 1) + bx)


def one_tile(case: Case) -> int:
    """Elements of the tile of vectors for the sizes of a case."""
    return vector_side(case) ** 2 if vectors_align(case) else unaligned_elements(case)
