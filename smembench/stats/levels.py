"""The standing level of each of many series: which nights are at it, which are off it, and how much nights differ.

Series hold logarithms of times, NaN where a night has none; nothing here knows about runs.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray

from smembench.stats.noise import Floats
from smembench.stats.summary import centre, centre_spread

Flags = NDArray[np.bool_]

_FAR = 4.0
"""Standard deviations from the level at which a night is off it."""
_LEAST = 0.01
"""Smallest deviation of a night that is off its level: less is left to the noise."""
_FIRST = 3
"""Nights whose median is the first level: one bad night among them is not it."""
RECENT = 60
"""Newest nights from which noise and deviations that come and go are estimated, however old the level is; and nights in
a row after which faster times become the level. Slower times never do."""
_SELDOM = 12
"""Nights among which one may deviate and come back without being counted in ``Levels.returned``."""
_MANY = 20
"""Fewest series whose median tells what they share, whatever one of them does."""
_LEAST_SHARED = 0.002
"""Smallest difference, shared by all series, that is more than noise."""
_LIKE = 15
"""Series of similar length of time that share what they show of the noise between nights."""
_QUARTILE = 0.6745
"""Normal values differ from their mean by less than this many standard deviations half of the time."""


@dataclass(frozen=True, slots=True)
class Levels:
    """What many series show, each by its own nights.

    Attributes:
        at: which nights (columns) of which series (rows) are at the level; the newest of them make the standing one.
        open: whether the newest nights of a series are off its level.
        variance: of a night around its level, by the newest ``RECENT`` nights at it, estimated with ``freedom`` degrees
            of freedom; NaN with none.
        freedom: degrees of freedom of ``variance``.
        returned: by series, the deviation that nights show without a change of level: the largest, of any series of the
            family, that came and went, in the second worst of the newest ``RECENT`` nights, from 12 nights on in the
            third worst, and so on. So one bad night is left out, a habit is not. Nights that are off the level one
            after the other, as until a repair, count as one, the first of them.
        shared: a difference that all series share is noise up to this; 0 for few series or nights.
    """

    at: Flags
    open: Flags
    variance: Floats
    freedom: Floats
    returned: Floats
    shared: float


def levels(
    series: Floats,
    count: int,
    starts: NDArray[np.int64] | None = None,
    least: float = 0.0,
    families: NDArray[np.int64] | None = None,
) -> Levels:
    """Walk each series from its first night on.

    The level is the centre of the newest ``count`` nights at it. A night that is far from the level does not join them,
    nor does a night that follows such nights and is closer to theirs: so a step stays a step, however many nights
    follow it, and a bad night is no part of the level. Only a step to faster times becomes the level, after ``RECENT``
    nights: nobody has to accept it, and losing it again has to be reported.

    Args:
        series: logarithms of times, shape (series, nights), NaN where there is none.
        count: nights that make a level.
        starts: by series the first night of an accepted level; -1 for none.
        least: a smaller deviation is never off the level.
        families: by series the number of its family; families tell nothing of each other's deviations.
    """
    common, shared = _common(series[:, -RECENT:], count)
    own = series.copy()
    own[:, -RECENT:] -= common
    far = np.maximum(_FAR * _widths(own[:, -RECENT:]), max(least, _LEAST))
    at = np.zeros(series.shape, dtype=bool)
    is_open = np.zeros(len(series), dtype=bool)
    squares: list[list[float]] = [[] for _ in series]
    came_and_went = np.zeros(series.shape)
    for row, values in enumerate(own.tolist()):
        start = -1 if starts is None else int(starts[row])
        for first, end in ((0, start), (max(start, 0), len(values))):
            if first < end:
                walked = _walk(values[first:end], count, float(far[row]), accepted=first == start)
                at[row, first:end] = walked.at
                squares[row] = [*squares[row], *walked.squares][-RECENT:]
                is_open[row] = bool(walked.off)
                came_and_went[row, first:end] = walked.returned
    variance = np.array([sum(found) / len(found) if found else math.nan for found in squares], dtype=np.float64)
    freedom = np.array([len(found) for found in squares], dtype=np.float64)
    if starts is not None:
        at &= np.arange(series.shape[1]) >= starts[:, None]
    returned = np.zeros(len(series))
    recent = came_and_went[:, -RECENT:]
    place = 1 + recent.shape[1] // _SELDOM
    for family in np.unique(families) if families is not None else ():
        like = families == family
        if recent.shape[1] > place:
            returned[like] = np.sort(recent[like].max(axis=0))[-1 - place]
    return Levels(at, is_open, variance, freedom, returned, shared)


def _common(series: Floats, count: int) -> tuple[Floats, float]:
    """By night the deviation that all series share, as far as it is noise, and how large such noise may be.

    It is the deviation from the level of what they share, not from the median of all nights: else a step of most
    series, once it has lasted for more nights than there were before it, would be a deviation of the nights before it.
    """
    nothing = np.zeros(series.shape[1])
    if len(series) < _MANY or series.shape[1] < _FIRST:
        return nothing, 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of nights and series without times
        together = np.nanmedian(series - np.nanmedian(series, axis=1, keepdims=True), axis=0)
    limit = max(_FAR * float(_widths(together[None, :])[0]), _LEAST_SHARED)
    at = _walk(together.tolist(), count, limit, accepted=False).at
    level = np.median(together[at]) if any(at) else 0.0
    return np.where(at, together - level, 0.0), limit


@dataclass(slots=True)
class _Walked:
    at: list[bool]
    off: list[tuple[int, float]]
    squares: list[float]
    returned: Floats


def _walk(values: list[float], count: int, far: float, *, accepted: bool) -> _Walked:
    """One series from the first night of a level on; ``off`` are the newest deviations if they are open.

    ``squares`` estimate the variance of a night around its level, each by one night.
    """
    first = [value for value in values if not math.isnan(value)][: 1 if accepted else _FIRST]
    judged = accepted or len(first) == _FIRST  # of one or two nights none is the bad one
    level = median(first) if first else math.nan
    newest: list[float] = []
    middle = level
    found = _Walked([], [], [], np.zeros(len(values)))
    for night, value in enumerate(values):
        if math.isnan(value):
            found.at.append(False)
            continue
        size = abs(value - level)
        nearer = bool(found.off) and abs(value - centre([other for _, other in found.off[-RECENT:]])) < size
        found.at.append(not judged or (size <= far and not nearer))
        if not found.at[-1]:
            found.off = [*(found.off if nearer else ()), (night, value)]
            if len(found.off) >= RECENT and centre([other for _, other in found.off]) < level:
                newest = [other for _, other in found.off[-max(count, _FIRST) :]]
                for faster, _ in found.off[-count:]:
                    found.at[faster] = True
                found.off, middle, level = [], centre(newest[-count:]), centre(newest)
            continue
        if found.off:
            found.returned[found.off[0][0]] = max(abs(away - level) for _, away in found.off)
        found.off = []
        if newest:
            found.squares.append((value - middle) ** 2 / (1 + centre_spread(len(newest[-count:]))))
        newest = [*newest, value][-max(count, _FIRST) :]  # fewer are no level: it would not follow a drift, or jump
        middle = centre(newest[-count:])
        if len(newest) >= len(first):
            level = middle if count >= _FIRST else centre(newest)
    return found


def _widths(series: Floats) -> Floats:
    """Standard deviation of the nights of each series, from the median difference of neighbours, at least like others'.

    A series of few nights may seem quiet by chance, so it counts as no quieter than half of those of similar times,
    and as no more than three times as noisy.
    """
    with np.errstate(invalid="ignore"):
        differences = np.abs(np.diff(series, axis=1))
    if differences.shape[1] == 0:
        return np.zeros(len(series))
    own = np.array([_median(row) for row in differences]) / (_QUARTILE * np.sqrt(2))
    order = np.argsort([_median(row) for row in series])
    shared = np.empty(len(series))
    for place, row in enumerate(order):
        start = max(0, min(place - _LIKE // 2, len(order) - _LIKE))
        shared[row] = np.median(own[order[start : start + _LIKE]])
    return np.asarray(np.clip(own, shared, 3 * shared), dtype=np.float64)


def _median(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(np.median(known)) if len(known) else 0.0
