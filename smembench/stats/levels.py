"""The standing level of each of many series: which nights are at it, which are off it, and how much nights differ.

Series hold logarithms of times, NaN where a night has none; nothing here knows about runs. Whatever series tell of each
other is kept within what is alike: noise within a family, a shift of a whole night within a device.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smembench.stats.noise import Floats
from smembench.stats.walk import FIRST, RECENT, Flags, first, middles, walk

_FAR = 4.0
"""Standard deviations from the level at which a night is off it."""
_LEAST = 0.01
"""Smallest deviation of a night that is off its level: less is left to the noise."""
_SELDOM = 12
"""Nights among which one may deviate and come back without being counted in ``Levels.returned``."""
_HABIT = 3
"""Series of a family that show what its nights are like; what fewer do is their own."""
_MANY = 20
"""Fewest series of a device whose median tells what they share, whatever one of them does."""
_LEAST_SHARED = 0.007
"""Smallest difference, shared by all series of a device, that is more than noise: a season's is less."""
_LIKE = 15
"""Series of similar length of time that share what they show of the noise between nights."""
_KNOWN = 7
"""Nights that tell the noise of the first ones; a later night is judged by the noise of those before it alone, so that
it is judged alike ever after."""
_NEARER = 0.5480
"""Median distance of a normal value from the nearer of two others, in standard deviations (simulated)."""


@dataclass(frozen=True, slots=True)
class Levels:
    """Levels of many series and the noise around them, per series from its own nights.

    Attributes:
        at: which nights (columns) of which series (rows) are at the level; the newest of them make the standing one.
        off: by how much a night is off the level; NaN where it is at it, has no time, or the whole device is off.
        open: whether the newest nights of a series are off its level.
        variance: of a night around its level, by the newest ``RECENT`` nights at it, estimated with ``freedom`` degrees
            of freedom; NaN with none.
        freedom: degrees of freedom of ``variance``.
        returned: by series, the deviation that nights show without a change of level: what came and went in three or
            more series of the family, and on two or more nights, from 12 nights on three or more, and so on. So one bad
            night is left out, and so is the habit of one or two series; a habit of the family is not. Nights off the
            level one after the other, as until a repair, count as one, the first of them. If the newest nights of a
            series are off its level, only those count that were off for as many nights and came back.
        shared: by series, a difference that all of its device share is noise up to this; 0 for few series or nights.
    """

    at: Flags
    off: Floats
    open: Flags
    variance: Floats
    freedom: Floats
    returned: Floats
    shared: Floats


def levels(
    series: Floats,
    count: int,
    starts: NDArray[np.int64] | None = None,
    least: float = 0.0,
    families: NDArray[np.int64] | None = None,
    devices: NDArray[np.int64] | None = None,
) -> Levels:
    """Walk all series from the first night on (``stats.walk``).

    On a night on which a whole device is off its level, a series is at its own only if it is nearer to that than to the
    shift. So what all share stays a step, too, however many nights follow it, and is no habit of a single series.

    Args:
        series: logarithms of times, shape (series, nights), NaN where there is none.
        count: nights that make a level.
        starts: by series the first night of an accepted level; -1 for none.
        least: a smaller deviation is never off the level.
        families: by series the number of its family; families are no evidence of each other's noise and deviations.
        devices: by series the number of its device; devices are no evidence of each other's nights.
    """
    none = np.zeros(len(series), dtype=np.int64)
    starts, families, devices = (
        none + empty if given is None else given for given, empty in ((starts, -1), (families, 0), (devices, 0))
    )
    common = _common(series, count, starts, devices)
    far = np.maximum(_FAR * _widths(common.own, families)[:, :-1], max(least, _LEAST))
    shifted = np.isfinite(common.shift)
    walked = walk(common.own, count, np.where(shifted, np.minimum(far, common.shift / 2), far), starts)
    # Where nights are like those before them, the level is late: they are farther from it than from their neighbours.
    far = np.maximum(far, _FAR * np.sqrt(_so_far(walked.squares, _means))[:, :-1])
    walked = walk(common.own, count, np.where(shifted, np.minimum(far, common.shift / 2), far), starts)
    recent = _newest(walked.squares)
    freedom = np.isfinite(recent).sum(axis=1).astype(np.float64)
    accepted = np.arange(series.shape[1]) >= starts[:, None]
    alone = np.where(shifted, math.nan, walked.off)
    return Levels(
        at=walked.at & accepted,
        off=np.where(accepted, alone, math.nan),
        open=walked.open,
        variance=np.where(freedom > 0, _means(recent), math.nan),
        freedom=freedom,
        returned=_returned(alone[:, -RECENT:], walked.at[:, -RECENT:], families),
        shared=common.limit,
    )


@dataclass(frozen=True, slots=True)
class _Common:
    """The shift common to all series of a device: taken off ``own`` up to ``limit``, as far as it is noise.

    ``shift`` is by how much a night was off that level; NaN for nights that were at it.
    """

    own: Floats
    shift: Floats
    limit: Floats


def _common(series: Floats, count: int, starts: NDArray[np.int64], devices: NDArray[np.int64]) -> _Common:
    """Levels of a device's common shift, treated as a series of its own.

    A night off that level has a shift, until nights are nearer to the level again. Then, and not before, a shift of its
    size is noise once more.
    """
    common = _Common(series.copy(), np.full(series.shape, math.nan), np.zeros(len(series)))
    before = np.arange(series.shape[1]) < starts[:, None]
    for device in np.unique(devices):
        rows = np.flatnonzero(devices == device)
        if len(rows) < _MANY or series.shape[1] < FIRST:
            continue
        level = np.where(before[rows], math.nan, series[rows])
        together = middles((level - first(level, _KNOWN)[0][:, None]).T)[None]
        far = np.maximum(_FAR * _widths(together, np.zeros(1, dtype=np.int64)), _LEAST_SHARED)
        walked = walk(together, count, far[:, :-1], np.full(1, -1))
        # In a season the level is late: nights are farther from it than from their neighbours.
        far = np.maximum(_FAR * np.sqrt(_so_far(walked.squares, _means)), _LEAST_SHARED)
        walked = walk(together, count, far[:, :-1], np.full(1, -1))
        at = walked.at[0]
        common.own[rows] -= np.where(at, together[0] - np.median(together[0, at]), 0.0) if at.any() else 0.0
        common.shift[rows] = np.where(at, math.nan, np.abs(walked.off))
        common.limit[rows] = min(far[0, -1], walked.shift[0] / 2) if walked.open[0] else far[0, -1]
    return common


def _newest(values: Floats) -> Floats:
    """The newest ``RECENT`` known values of each row; NaN for older ones."""
    known = np.isfinite(values)
    later = known[:, ::-1].cumsum(axis=1)[:, ::-1]
    return np.where(known & (later <= RECENT), values, math.nan)


def _returned(off: Floats, at: Flags, families: NDArray[np.int64]) -> Floats:
    """See ``Levels.returned``."""
    came_and_went, lasted = np.zeros(off.shape), np.zeros(off.shape)
    for row in np.flatnonzero(np.isfinite(off).any(axis=1)):
        for nights in episodes(off[row], at[row]):
            came_and_went[row, nights[0]], lasted[row, nights[0]] = np.abs(off[row, nights]).max(), len(nights)
    since = np.isfinite(off) & (at[:, ::-1].cumsum(axis=1)[:, ::-1] == 0)
    largest = np.zeros(len(off))
    place = 1 + off.shape[1] // _SELDOM
    for family, nights in {*zip(families.tolist(), since.sum(axis=1).tolist(), strict=True)}:
        alike = families == family
        longer = np.where(lasted >= nights, came_and_went, 0.0)[alike]
        if len(longer) >= _HABIT and off.shape[1] > place:
            by_night = np.sort(longer.max(axis=0))[-1 - place]
            by_series = np.sort(longer.max(axis=1))[-_HABIT]
            largest[alike & (since.sum(axis=1) == nights)] = min(by_night, by_series)
    return largest


def episodes(off: Floats, at: Flags) -> list[list[int]]:
    """Nights off the level, one after the other, until a night at it."""
    ended: list[list[int]] = []
    nights: list[int] = []
    for night in np.flatnonzero(at | np.isfinite(off)).tolist():
        if not at[night]:
            nights.append(night)
        elif nights:
            ended.append(nights)
            nights = []
    return ended


def _widths(series: Floats, families: NDArray[np.int64]) -> Floats:
    """Standard deviation of each series' nights as known before each night, and after the last: (series, nights + 1).

    It is from the median distance of a night from the nearer of the two before it: unlike neighbours, most of these are
    of one level where nights are at two by chance. A series of few nights may seem quiet or noisy by chance. So it is
    between its own and that of half of ``_LIKE`` others of its family of similar times, which counts as much as
    ``_KNOWN`` nights of its own; and no less than theirs.
    """
    nights = series.shape[1]
    with np.errstate(invalid="ignore"):
        one, two = (np.abs(series[:, 2:] - series[:, 2 - back : nights - back]) for back in (1, 2))
    nearer = np.full(series.shape, math.nan)
    nearer[:, 2:] = np.fmin(one, two)
    own = _so_far(nearer, _lower_middles) / _NEARER
    order = np.argsort(middles(series), kind="stable")
    counts = _so_far(np.isfinite(nearer).astype(np.float64), lambda values: values.sum(axis=1))
    widths = own.copy()
    for family in np.unique(families):
        rows = order[families[order] == family]
        size = min(_LIKE, len(rows))
        similar = np.median(np.lib.stride_tricks.sliding_window_view(own[rows], size, axis=0), axis=-1)
        place = np.clip(np.arange(len(rows)) - size // 2, 0, len(similar) - 1)
        own_share = counts[rows] / (counts[rows] + _KNOWN)
        between = np.sqrt(own_share * own[rows] ** 2 + (1 - own_share) * similar[place] ** 2)
        widths[rows] = np.maximum(between, similar[place])
    return widths


def _so_far(values: Floats, middle: Callable[[Floats], Floats]) -> Floats:
    """The middle of each row's newest values before each night, and after the last; of the first ones for those."""
    nights = values.shape[1]
    ends = np.maximum(np.arange(nights + 1), min(_KNOWN, nights))
    return np.stack([np.nan_to_num(middle(values[:, max(end - RECENT, 0) : end])) for end in ends], axis=1)


def _lower_middles(values: Floats) -> Floats:
    """The lower median of each row's known values: of two, one of which is a step, the other."""
    known = np.isfinite(values).sum(axis=1)
    return np.asarray(np.sort(values, axis=1)[np.arange(len(values)), np.maximum(known - 1, 0) // 2], dtype=np.float64)


def _means(values: Floats) -> Floats:
    count = np.isfinite(values).sum(axis=1)
    return np.asarray(np.nansum(values, axis=1) / np.maximum(count, 1), dtype=np.float64)
