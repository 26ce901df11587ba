"""Tensor maps as arguments: arrays of which the TMA moves boxes (CUDA driver API, "Tensor Map Object Management")."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from smembench.model.errors import UsageError
from smembench.model.formats import element_type

_TEXT = re.compile(r"tensormap\(\s*(\w+)\[([\d\s,]+)\]\s*,\s*box\s+([\dxX]+)\s*(?:,\s*swizzle\s+(\d+)\s*)?\)", re.ASCII)
_FORM = "write tensormap(float16[4096,4096], box 64x128, swizzle 128): the box from the innermost dimension on"
_MOST_DIMENSIONS, _MOST_IN_BOX, _ALIGNMENT = 5, 256, 16
_SWIZZLES = (0, 32, 64, 128)


@dataclass(frozen=True, slots=True)
class TensorMapArgument:
    """A tensor map as an argument of a launch.

    Attributes:
        shape, dtype: of the array, which has at most 5 dimensions and no gaps.
        box: elements that a copy moves along each dimension, the innermost first.
        swizzle: bytes over which chunks of 16 are swizzled: 0, 32, 64 or 128.
        pitch: elements from one row to the next; 0 for rows without gaps, whose bytes are checked.

    Raises:
        UsageError: for what ``cuTensorMapEncodeTiled`` does not take.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    box: tuple[int, ...]
    swizzle: int = 0
    pitch: int = 0

    def __post_init__(self) -> None:
        if reason := self._reason(self.shape[::-1], self.dtype.itemsize):
            text = f"{self.dtype}{list(self.shape)}, box {'x'.join(map(str, self.box))}, swizzle {self.swizzle}"
            raise UsageError(f"tensormap({text}): {reason}")

    def _reason(self, sides: Sequence[int], size: int) -> str:
        """The reason why there is no such map; "" if there is."""
        if not 1 <= len(sides) <= _MOST_DIMENSIONS or len(self.box) != len(sides):
            return f"give a box of as many dimensions as the array, 1 to {_MOST_DIMENSIONS}"
        if min(self.box) < 1 or max(self.box) > _MOST_IN_BOX:
            return f"a box has 1 to {_MOST_IN_BOX} elements along each dimension"
        if self.box[0] * size % _ALIGNMENT or (len(sides) > 1 and not self.pitch and sides[0] * size % _ALIGNMENT):
            return f"rows of the array and of the box have to be multiples of {_ALIGNMENT} bytes"
        if self.swizzle not in _SWIZZLES:
            return f"the swizzle has to be one of {', '.join(map(str, _SWIZZLES))}"
        if self.swizzle and self.box[0] * size > self.swizzle:
            return f"rows of the box have {self.box[0] * size} bytes, more than the swizzle"
        return ""

    @property
    def bytes(self) -> int:
        """Bytes of a box."""
        return prod(self.box) * self.dtype.itemsize


def parsed_map(text: str) -> TensorMapArgument:
    """A tensor map from the command line.

    Raises:
        UsageError: for text that is none, and what ``cuTensorMapEncodeTiled`` does not take.
    """
    match = _TEXT.fullmatch(text)
    if match is None:
        raise UsageError(f"--arg {text!r}: {_FORM}")
    try:
        dtype, shape = np.dtype(element_type(match[1])), tuple(int(side) for side in match[2].split(","))
        box = tuple(map(int, re.split("[xX]", match[3])))
    except (TypeError, ValueError):
        raise UsageError(f"--arg {text!r}: {_FORM}") from None
    return TensorMapArgument(shape, dtype, box, int(match[4] or 0))
