"""Nights walked one by one, for many series at once: at the level, or off it until they come back."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smembench.stats.noise import Floats
from smembench.stats.summary import FEW, centre_spread

Flags = NDArray[np.bool_]

FIRST = 3
"""Nights whose median is the first level: one bad night among them is not it."""
RECENT = 60
"""Newest nights from which noise and deviations that come and go are estimated, however old the level is; and nights in
a row after which faster times become the level. Slower times never do."""


@dataclass(slots=True)
class Walked:
    """State of the nights (columns) of series (rows).

    Attributes:
        at: whether a night is at the level.
        off: by how much a night is off the level; NaN where it is at it, or has no time.
        squares: an estimate of the variance of a night around its level, by one night at it; NaN for other nights.
        open: by series, whether the newest nights are off the level.
        shift: by series, the distance of these nights from the level; NaN if none is off it.
    """

    at: Flags
    off: Floats
    squares: Floats
    open: Flags
    shift: Floats


def walk(values: Floats, count: int, far: Floats, starts: NDArray[np.int64]) -> Walked:
    """Walk series from their first night on.

    The level is the centre of the newest ``count`` nights at it. A night that is far from the level does not join them,
    nor does a night that follows such nights and is closer to theirs: so a step stays a step, however many nights
    follow it, and a bad night is no part of the level. Only a step to faster times becomes the level, after ``RECENT``
    nights: nobody has to accept it, and losing it again has to be reported.

    Args:
        values: logarithms of times, NaN where there is none.
        count: nights that make a level.
        far: distance from the level from which on a night is off it, by series and night.
        starts: by series the first night of an accepted level, which one night makes; -1 for none.
    """
    rows, nights = values.shape
    size = max(count, FIRST)  # fewer are no level: it would not follow a drift, or jump
    walked = Walked(
        np.zeros(values.shape, dtype=bool),
        np.full(values.shape, math.nan),
        np.full(values.shape, math.nan),
        np.zeros(rows, dtype=bool),
        np.full(rows, math.nan),
    )
    spreads = np.array([1.0, *(centre_spread(number) for number in range(1, count + 1))])
    before = np.arange(nights) < starts[:, None]
    level, needed = first(np.where(before | (starts[:, None] < 0), values, math.nan))
    judged = needed == FIRST  # of one or two nights none is the bad one
    newest, middle = np.full((rows, size), math.nan), level.copy()
    away = np.full((rows, RECENT), math.nan)
    for night in range(nights):
        time = values[:, night]
        accepted = starts == night
        if accepted.any():
            level[accepted] = first(values[accepted, night:], 1)[0]
            middle[accepted], needed[accepted], judged[accepted] = level[accepted], 1, True
            newest[accepted], away[accepted] = math.nan, math.nan
        distance = np.abs(time - level)
        nearer = np.zeros(rows, dtype=bool)
        off = np.isfinite(away[:, -1])
        nearer[off] = np.abs(time[off] - middles(away[off])) < distance[off]
        known = np.isfinite(time)
        at = known & (~judged | ((distance <= far[:, night]) & ~nearer))
        leaves = known & ~at
        walked.at[:, night] = at
        walked.off[leaves, night] = (time - level)[leaves]
        away[known & ~nearer] = math.nan
        away[leaves] = _pushed(away[leaves], time[leaves])
        faster = leaves & np.isfinite(away[:, 0]) & (middles(away) < level)
        for row in np.flatnonzero(faster):
            walked.at[row, np.flatnonzero(np.isfinite(values[row, : night + 1]))[-count:]] = True
            newest[row], away[row] = away[row, -size:], math.nan
        joined = np.isfinite(newest)[:, -count:].sum(axis=1)
        measured = at & (joined > 0)
        walked.squares[measured, night] = ((time - middle) ** 2 / (1 + spreads[joined]))[measured]
        newest[at] = _pushed(newest[at], time[at])
        moved = at | faster
        middle[moved] = _centres(newest[moved, -count:])
        moved &= np.isfinite(newest).sum(axis=1) >= needed
        level[moved] = middle[moved] if count >= FIRST else _centres(newest[moved])
    walked.open = np.isfinite(away[:, -1])
    walked.shift = np.abs(middles(away) - level)
    return walked


def _pushed(buffer: Floats, values: Floats) -> Floats:
    return np.concatenate([buffer[:, 1:], values[:, None]], axis=1)


def first(values: Floats, most: int = FIRST) -> tuple[Floats, NDArray[np.int64]]:
    """By row the median of the first known values, and how many they are."""
    known = np.isfinite(values)
    taken = known & (known.cumsum(axis=1) <= most)
    return middles(np.where(taken, values, math.nan)), taken.sum(axis=1)


def middles(values: Floats) -> Floats:
    """The median of the known values of each row; NaN for none. For small arrays this is quicker than NumPy's."""
    if not values.size:
        return np.full(len(values), math.nan)
    ordered, count = np.sort(values, axis=1), np.isfinite(values).sum(axis=1)
    row = np.arange(len(values))
    return np.asarray((ordered[row, (count - 1) // 2] + ordered[row, count // 2]) / 2, dtype=np.float64)


def _centres(values: Floats) -> Floats:
    """``stats.summary.centre`` of the known values of each row."""
    if values.shape[1] > FEW:
        return middles(values)
    one, other = np.triu_indices(values.shape[1])
    return middles((values[:, one] + values[:, other]) / 2)
