"""Records of a block: accesses in their order, tiles, mistakes, and what was not followed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from smembench.explain.mistakes import Brought, Mistake, Unfollowed
from smembench.explain.ptx.program import Instruction
from smembench.explain.requests import Integers
from smembench.explain.tiles import TileAccess


class Record(NamedTuple):
    """An access by a group of threads: addresses by thread, ``NOWHERE`` for others, and its place in the order.

    ``come`` is, of an asynchronous copy, the place in the order where each thread has waited for it, and ``times`` how
    often it was made.
    """

    instruction: Instruction
    space: str
    kind: str
    width: int
    way: str
    addresses: Integers
    order: Integers
    come: Integers | None = None
    times: int = 1


class Progress(NamedTuple):
    """The progress of a block: its records, barriers, the order of its threads, and their idle visits.

    ``come`` are the warps that have come to each access that they may skip, less those that have made it.
    """

    records: int
    barriers: int
    order: Integers
    come: Mapping[int, Integers]

    def after(self, before: Progress, times: int) -> Progress:
        """The progress after ``times`` repetitions of what has happened from ``before`` on."""
        come = {key: count + times * (count - before.come.get(key, 0)) for key, count in self.come.items()}
        barriers = self.barriers + times * (self.barriers - before.barriers)
        return Progress(self.records, barriers, self.order + times * (self.order - before.order), come)


@dataclass(slots=True)
class Traced:
    """The trace of a block: its accesses in order, mistakes, and what was not followed.

    ``tiles`` counts its accesses to tiles, ``elements`` those boxes by line and elements inside of their tensor,
    ``brought`` is what copies brought, and ``order`` the place of each thread's end in the order.
    """

    records: list[Record] = field(default_factory=list)
    mistakes: set[Mistake] = field(default_factory=set)
    unfollowed: set[Unfollowed] = field(default_factory=set)
    barriers: int = 0
    tiles: Counter[TileAccess] = field(default_factory=Counter)
    elements: Counter[tuple[int, int]] = field(default_factory=Counter)
    brought: list[Brought] = field(default_factory=list)
    order: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
