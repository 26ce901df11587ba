"""Joins of threads that a branch parted, if they compute no more than values until then."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from smembench.explain.ptx.needed import MEMORY
from smembench.explain.ptx.program import Instruction

_ACROSS = ("call", "shfl", "vote", "match", "redux", "elect", "activemask", "bar", "barrier", "mbarrier", "ret", "exit")
"""Instructions that do more than to compute values of a thread, or end it."""


class Join(NamedTuple):
    """The piece of code where threads meet again, and the registers that they may have written on their ways."""

    piece: int
    registers: frozenset[str]


class Joins:
    """Joins of the branches at the ends of pieces of code.

    Args:
        pieces: the instructions of each piece, its last included.
        successors: of each piece, numbers of pieces; ``len(pieces)`` is the kernel's end.
    """

    def __init__(self, pieces: Sequence[Sequence[Instruction]], successors: Sequence[Sequence[int]]) -> None:
        self._pieces, self._successors = pieces, successors
        self._known: dict[int, Join | None] = {}

    def behind(self, piece: int) -> Join | None:
        """The join of the branch that ends a piece; None if an access, a barrier or an exchange comes before it."""
        if piece not in self._known:
            self._known[piece] = self._join(piece)
        return self._known[piece]

    def _join(self, piece: int) -> Join | None:
        later = self._later[piece] & ~(1 << piece)
        at = next((one for one in range(len(self._pieces)) if later >> one & 1 and self._later[one] == later), None)
        if at is None:
            return None
        between, waiting = {at}, [*self._successors[piece]]
        written: set[str] = set()
        while waiting:
            if (number := waiting.pop()) in between:
                continue
            between.add(number)
            if number == len(self._pieces) or not all(map(computes, self._pieces[number])):
                return None
            written.update(name for op in self._pieces[number] for name in op.targets)
            waiting += self._successors[number]
        return Join(at, frozenset(written))

    @cached_property
    def _later(self) -> list[int]:
        """The postdominators of each piece as bits, itself included."""
        end = len(self._pieces)
        later = [(1 << end + 1) - 1] * end + [1 << end]
        changed = True
        while changed:
            changed = False
            for number in reversed(range(end)):
                common = (1 << end + 1) - 1
                for successor in self._successors[number]:
                    common &= later[successor]
                now = common | 1 << number
                changed = changed or now != later[number]
                later[number] = now
        return later


def computes(given: Instruction) -> bool:
    """True if an instruction only computes values of its thread, or branches."""
    return given.root not in _ACROSS and (given.root not in MEMORY or given.by_name)
