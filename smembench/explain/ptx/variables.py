"""Variables of PTX: where they lie, and their contents (PTX ISA, "State Spaces, Types, and Variables")."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from smembench.explain.ptx.program import Variable
from smembench.launches.ptx_entry import TYPES, split

_VARIABLE = re.compile(
    r"\.(shared|local|global|const|param)\s+(?:\.(?:align\s+\d+|attribute\([^)]*\))\s*)*(?:\.v(\d)\s+)?\.(\w+)\s+"
    r"([\w$]+)\s*((?:\[\d*\])*)\s*(?:=\s*(.*))?$",
    re.DOTALL,
)
_ALIGN = re.compile(r"\.align\s+(\d+)")


def variable_of(text: str) -> tuple[Variable, int] | None:
    """A variable and its alignment; None for another statement."""
    match = _VARIABLE.search(text)
    if match is None or match[3] not in TYPES:
        return None
    space, vector, kind, name, sides, content = match.groups()
    itemsize = np.dtype(TYPES[kind]).itemsize * int(vector or 1)
    count = int(np.prod([int(side or 0) for side in re.findall(r"\[(\d*)\]", sides)])) if sides else 1
    align = _ALIGN.search(text)
    data = None
    if count and (space == "global" or (space == "const" and content)):  # without a content the host sets constants
        data = _content(content, TYPES[kind], count * itemsize)
    return Variable(space, name, count * itemsize, data=data), int(align[1]) if align else itemsize


def _content(text: str | None, kind: str, size: int) -> NDArray[np.uint8] | None:
    """The bytes of an initialised variable, zeros without an initialiser; None for one that holds addresses."""
    content = np.zeros(size, np.uint8)
    values = split(text.strip().strip("{}")) if text else []
    try:
        made = [_number(value, kind) for value in values]
    except ValueError:
        return None
    given = np.array(made, kind.replace("i", "u")).view(np.uint8)
    content[: len(given)] = given
    return content


def _number(text: str, kind: str) -> object:
    if text[:2].lower() in ("0f", "0d"):
        size = 4 if text[1] in "fF" else 8
        return np.uint64(int(text[2:], 16)).astype(f"u{size}").view(f"f{size}")
    if np.dtype(kind).kind == "f":
        return float(text)
    return int(text.rstrip("U"), 0) & (1 << 8 * np.dtype(kind).itemsize) - 1
