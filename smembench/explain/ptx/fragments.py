"""``wmma.load`` and ``wmma.store`` as the machine code has them: the PTX ISA leaves the layout of fragments open.

A and B are loaded from shared memory as matrices of eight rows of 16 bytes, as by ``ldmatrix``, and from elsewhere as
one word per lane of such a matrix; C and D as two elements per lane of eight rows and columns. Found in machine code
for compute capability 9.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from smembench.explain.ptx.program import Instruction
from smembench.explain.requests import NOWHERE, Integers
from smembench.launches.ptx_entry import TYPES
from smembench.model.hardware import WARP

_SIDE, _CHUNK = 8, 16
"""Rows or columns of a matrix, and bytes of its rows."""
_MATRICES = WARP // _SIDE
"""Matrices of a request, at most."""
_LANE = np.arange(WARP)


class Piece(NamedTuple):
    """An access of a warp: its way, bytes per lane, and by lane the line, ``NOWHERE`` for none, and the byte in it."""

    way: str
    width: int
    lines: Integers
    places: Integers


class Fragment(NamedTuple):
    """The accesses of an instruction, bytes of an element, and the elements from line to line if none are given."""

    pieces: list[Piece]
    itemsize: int
    pitch: int


def fragment(given: Instruction) -> Fragment | None:
    """The accesses of a ``wmma.load`` or ``wmma.store``; None for types whose fragments are not known here."""
    shape = next((match for part in given.parts if (match := re.fullmatch(r"m(\d+)n(\d+)k(\d+)", part))), None)
    if shape is None or not given.types or given.parts[-1] in ("tf32", "f64", "s4", "u4", "b1"):
        return None
    m, n, k = map(int, shape.groups())
    itemsize, which, by_rows = np.dtype(TYPES[given.types[-1]]).itemsize, given.parts[2], "row" in given.parts
    down, across = {"a": (m, k), "b": (k, n)}.get(which, (m, n))
    lines, along = (down, across) if by_rows else (across, down)
    if which not in ("a", "b"):
        return Fragment(list(_of_results(lines, along, itemsize, by_rows)), itemsize, along)
    if itemsize > 1 or by_rows == (which == "a"):
        return Fragment(list(_of_operands(lines, along * itemsize, given.space)), itemsize, along)
    return None


def _of_operands(lines: int, line_bytes: int, space: str) -> Iterator[Piece]:
    corners = [(line, byte) for byte in range(0, line_bytes, _CHUNK) for line in range(0, lines, _SIDE)]
    if space != "shared":
        for line, byte in corners:
            yield Piece("", 4, line + _LANE // 4, byte + _LANE % 4 * 4)
        return
    for first in range(0, len(corners), _MATRICES):
        at, places = np.full(WARP, NOWHERE), np.zeros(WARP, np.int64)
        for number, (line, byte) in enumerate(corners[first : first + _MATRICES]):
            rows = slice(number * _SIDE, (number + 1) * _SIDE)
            at[rows], places[rows] = line + np.arange(_SIDE), byte
        yield Piece("matrix", _CHUNK, at, places)


def _of_results(lines: int, along: int, itemsize: int, by_rows: bool) -> Iterator[Piece]:
    one, pair = _LANE // 4, _LANE % 4 * 2
    for line in range(0, lines, _SIDE):
        for first in range(0, along, _SIDE):
            if by_rows:
                yield Piece("", 2 * itemsize, line + one, (first + pair) * itemsize)
                continue
            for other in range(2):
                yield Piece("", itemsize, line + pair + other, (first + one) * itemsize)
