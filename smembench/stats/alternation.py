"""Tell a series that alternates between two levels by chance from one that moved to another level.

A kernel whose time depends on the addresses it was given, or on the clock a GPU took, goes from one time to another and
back. It has not become slower, unless it is at the slower time on more nights in a row than chance explains.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import comb

import numpy as np

from smembench.stats.levels import episodes
from smembench.stats.noise import Floats
from smembench.stats.walk import Flags

_RARE = 0.02
"""Probability below which chance explains neither how nights follow each other nor how many there are in a row."""
_UNSEEN = 0.5
"""Nights of each level in the prior of how often nights are at it (Jeffreys)."""


@dataclass(frozen=True, slots=True)
class Habit:
    """State of the newest nights of one series.

    Attributes:
        at: the nights that were at the level.
        off: by how much a night was off it, in logarithms; NaN for others.
    """

    at: Flags
    off: Floats

    def alternation(self, effect: float, width: float) -> Alternation | None:
        """The alternation that explains an ``effect`` tonight, known to within ``width``; None if none does."""
        near = np.abs(np.abs(self.off) - abs(effect)) <= width
        runs = [sum(near[nights].tolist()) for nights in episodes(self.off, self.at)]
        runs = [nights for nights in runs if nights]
        away = np.isfinite(self.off) & (self.at[::-1].cumsum()[::-1] == 0)
        shown = Alternation(sum(runs), int(self.at.sum()), 1 + int(near[away][::-1].cumprod().sum()))
        by_chance = bool(runs) and _as_few(len(runs), shown.off, shown.at) > _RARE
        return shown if by_chance and shown.row < shown.needed else None


@dataclass(frozen=True, slots=True)
class Alternation:
    """Two levels by chance: ``off`` nights were at another one, ``at`` at the usual one.

    ``row`` is the number of nights in a row, with tonight, at the other one.
    """

    off: int
    at: int
    row: int

    @property
    def needed(self) -> int:
        """The number of nights in a row that chance does not explain."""
        nights, chance = 0, 1.0
        while chance > _RARE:
            chance *= (_UNSEEN + self.off + nights) / (2 * _UNSEEN + self.off + self.at + nights)
            nights += 1
        return nights


@cache
def _as_few(runs: int, off: int, at: int) -> float:
    """Probability that nights off a level are in as few runs or fewer, if any order is as likely as another."""
    ways = sum(comb(off - 1, number - 1) * comb(at + 1, number) for number in range(1, runs + 1))
    return ways / comb(off + at, off)
