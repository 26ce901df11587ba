"""What ptxas made of a kernel's accesses: neighbouring ones of a thread become one that is wider.

PTX and machine code are compared line by line. Loads, or stores, of a line that lie side by side at one register's
address are merged if the line then has its accesses of each width in the proportions of the machine code, which may
have all of them several times, in an unrolled loop.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from smembench.explain.ptx.program import ADDRESS, ENDS, TYPES, Instruction, PtxKernel
from smembench.model.groups import grouped
from smembench.toolchains.source_lines import Lined

_KINDS = {"ld": "load", "st": "store"}
_WIDER = (16, 8)
"""Bytes per lane of what is made of several accesses, the widest first."""

_Of = tuple[int, str, str]
"""A line, a space and a kind."""


class Merging(NamedTuple):
    """By number of instruction: bytes per lane of what it is made; 0 if that is counted with another.

    ``unmatched`` are the (space, kind) of lines whose widths are not those of the machine code in any way.
    """

    widths: Mapping[int, int]
    unmatched: tuple[tuple[str, str], ...] = ()


def merging(kernel: PtxKernel, lined: Sequence[Lined]) -> Merging:
    """Which instructions of a kernel its machine code has in fewer and wider ones."""
    code = kernel.code
    asked = {number: _of(each) for number, each in enumerate(code) if each.root in _KINDS}
    numbers = grouped((n for n, of in asked.items() if of[1] in ("shared", "global")), lambda n: asked[n])
    compiled: dict[_Of, Counter[int]] = {}
    for each in lined:
        if not each.access.never:
            compiled.setdefault((each.line, each.access.space, each.access.kind), Counter())[each.access.width] += 1
    widths: dict[int, int] = {}
    unmatched = set()
    for of, members in numbers.items():
        found = _merged(code, members, compiled.get(of, Counter()))
        if found is None:
            unmatched.add((of[1], of[2]))
        else:
            widths.update(found)
    return Merging(widths, tuple(sorted(unmatched)))


def bytes_of(given: Instruction) -> int:
    """Bytes per lane of a load or a store."""
    count = next((int(part[1:]) for part in given.parts if re.fullmatch(r"v[248]", part)), 1)
    return np.dtype(TYPES[given.types[-1]]).itemsize * count


def _of(given: Instruction) -> _Of:
    return given.place.line, given.space, _KINDS[given.root]


def _merged(code: Sequence[Instruction], members: Sequence[int], compiled: Counter[int]) -> dict[int, int] | None:
    """The merged of a line; none if it is as in the machine code, None if no way leads there."""
    plain = Counter(bytes_of(code[number]) for number in members)
    if _proportional(plain, compiled):
        return {}
    for wide in _WIDER:
        groups = list(_side_by_side(code, members, wide))
        found = Counter(plain)
        for group in groups:
            found[bytes_of(code[group[0]])] -= len(group)
            found[wide] += 1
        if groups and _proportional(+found, compiled):
            return {number: wide if number == group[0] else 0 for group in groups for number in group}
    return None


def _proportional(one: Counter[int], other: Counter[int]) -> bool:
    if set(one) != set(other):
        return False
    times = {other[width] / count for width, count in one.items()}
    return len(times) == 1


def _side_by_side(code: Sequence[Instruction], members: Sequence[int], wide: int) -> Iterator[list[int]]:
    """Instructions that follow each other in memory and fill ``wide`` bytes, the lowest first."""
    piece, pieces = 0, {}
    for number, each in enumerate(code):
        pieces[number] = piece
        piece += each.root in ENDS
    keys: dict[tuple[int, str, str, bool, int], list[tuple[int, int]]] = {}
    for number in members:
        each = code[number]
        match = ADDRESS.fullmatch(each.addresses[0])
        if match is not None and bytes_of(each) < wide:
            key = (pieces[number], match[1], each.guard, each.negated, bytes_of(each))
            keys.setdefault(key, []).append((int(match[3] or "0", 0) * (-1 if match[2] == "-" else 1), number))
    for (*_, size), found in keys.items():
        by_offset = sorted(found)
        count = wide // size
        begin = 0
        while begin + count <= len(by_offset):
            group = by_offset[begin : begin + count]
            first = group[0][0]
            if all(offset == first + place * size for place, (offset, _) in enumerate(group)):
                yield [number for _, number in group]
                begin += count
            else:
                begin += 1
