"""Operands of ``wgmma``: tiles in shared memory, and the matrix descriptors that tell the tensor cores how they lie.

Tiles are swizzled as ``bulk_copy`` leaves them, with rows of 128 bytes. A's has rows along k: the 64 of an instruction,
or with swapped operands all of the tile's. B's lie as their matrix does, which for other than 16-bit types is by
columns. Then they have a row along k for each column. By rows they have a row per element along k, and for more columns
one tile follows another; their rows have 64 bytes where the columns are not a multiple of those of 128.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from smembench.kernels.intrinsics.bulk_copy import CHUNK, ROW_BYTES, places_in_tile, row_bytes_of
from smembench.kernels.intrinsics.declaration import Operand as PtxOperand
from smembench.kernels.intrinsics.declaration import types
from smembench.model.case import BY_ROWS
from smembench.model.problem import ITEMSIZE

STEP_BYTES = 32
"""Bytes along k of one instruction."""
_SWIZZLES = {128: 1 << 62, 64: -1 << 63}
"""In a descriptor, by the bytes of swizzled rows: bits 62 and 63 of a signed constant."""


class Operand(NamedTuple):
    """A tile as a matrix descriptor states it (PTX ISA, "Matrix Descriptor Format").

    Attributes:
        name: the matrix's.
        rows: the tile's, along k if it is ``transposed``.
        row_bytes: as ``swizzle``, or a multiple of it: then tiles with rows of ``swizzle`` bytes follow each other.
        leading, stride: bytes from one of these to the next, and from eight rows to the next eight.
        swizzle: bytes over which chunks of 16 are swizzled: 128, or 64.
    """

    name: str
    rows: int
    row_bytes: int = ROW_BYTES
    transposed: bool = False
    leading: int = CHUNK
    stride: int = 8 * ROW_BYTES
    swizzle: int = ROW_BYTES


def depth_of(dtype: str) -> int:
    """Elements along k of a tile: those of 128 bytes."""
    return ROW_BYTES // ITEMSIZE[dtype]


def operand_b(columns: int, dtype: str, b_layout: str) -> Operand:
    """``columns`` columns of B, as they lie in shared memory."""
    if b_layout != BY_ROWS:
        return Operand("B", columns)
    depth, piece_bytes = depth_of(dtype), row_bytes_of(columns, ITEMSIZE[dtype])
    strides = {"leading": depth * piece_bytes, "stride": 8 * piece_bytes, "swizzle": piece_bytes}
    return Operand("B", depth, columns * ITEMSIZE[dtype], transposed=True, **strides)


def places_of_elements(operand: Operand, which: Any, itemsize: int, depth: int) -> Any:
    """Offsets of these rows or columns of an operand along k, one after another, in elements from its beginning."""
    along, which = np.arange(depth), which[:, None]
    if not operand.transposed:
        return places_in_tile(itemsize, which, along)
    piece = operand.swizzle // itemsize
    return which // piece * piece * depth + places_in_tile(itemsize, along, which % piece, operand.swizzle)


def described(operand: Operand, element: Any) -> PtxOperand:
    """A swizzled operand in PTX text: where it begins and its strides, in units of 16 bytes."""
    strides = operand.leading // CHUNK << 16 | operand.stride // CHUNK << 32
    return PtxOperand("descriptor", (element[::1], types.Integer), (_SWIZZLES[operand.swizzle] | strides,))


def advance(operand: Operand, step_k: int) -> int:
    """By what a descriptor grows per instruction: ``step_k`` elements along k, which are rows of a transposed tile."""
    return (step_k * operand.swizzle if operand.transposed else STEP_BYTES) // CHUNK
