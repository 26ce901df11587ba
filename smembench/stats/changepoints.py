"""Changes of level in a series of nightly medians: robust, and strict enough for hundreds of cases over years.

A series holds times in ms in the order in which they were measured; nothing here knows about runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from smembench.stats.threshold import THRESHOLD

SHORTEST = 3
"""Fewest nights per level: one or two bad nights are not a change."""
_CLIP = 4.0
"""Noise widths at which a night's deviation is clipped."""
_CRITICAL = 5.6
"""Smallest CUSUM of a change: about one false change in 100 000 simulated series of 1000 nights
(results/reference/notes/statistics.md)."""
_SHARPEST = 0.1
"""Smallest noise width assumed, as a share of the threshold: quantised times may repeat exactly."""
_LOCAL = 15
"""Nights on either side of a change that distinguish a step from a drift."""

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Change:
    """A new level that starts at night ``index``; ``before`` and ``after`` are the medians in ms on either side of it.

    A ``drift`` is a level that moved gradually: ``index`` is the night at which it first differed from the level
    before, ``after`` the median since its last move.
    """

    index: int
    before: float
    after: float
    drift: bool = False

    @property
    def ratio(self) -> float:
        """The new level divided by the old: above 1 is slower."""
        return self.after / self.before


def changes(times: Sequence[float], threshold: float = THRESHOLD) -> list[Change]:
    """Changes of level by at least ``threshold``, in order; none in fewer than twice ``SHORTEST`` nights.

    Each seeded interval (Kovács, Bühlmann, Li and Munk, Seeded binary segmentation, Biometrika 110, 2023) is searched
    for the split with the largest CUSUM of deviations from its median. The deviations are clipped: limiting the
    influence of a single night makes the search robust (Fearnhead and Rigaill, Changepoint detection in the presence
    of outliers, JASA 114, 2019). Splits are taken largest first, and each one excludes the intervals that contain it.
    A split is kept only if it is significant between its neighbours. The series is compared in logarithms, so that a
    threshold means the same for slower and faster.

    Args:
        times: positive, in ms, in the order in which they were measured.
        threshold: relative: 0.01 is 1 %.
    """
    if len(times) < 2 * SHORTEST:
        return []
    series = np.log(np.asarray(times, dtype=np.float64))
    effect = math.log1p(threshold)
    noise = max(noise_width(series), _SHARPEST * effect)
    splits = _confirmed(series, noise, effect, _candidates(series, noise, effect))
    bounds = [0, *splits, len(series)]
    levels = [float(np.median(times[start:end])) for start, end in pairwise(bounds)]
    level_changes: list[Change] = []
    for place, split in enumerate(splits):
        drift = _is_drift(series[bounds[place] : bounds[place + 2]], split - bounds[place], noise)
        change = Change(split, levels[place], levels[place + 1], drift)
        if level_changes and _goes_on(level_changes[-1], change, split - bounds[place]):
            last = level_changes.pop()
            change = Change(last.index, last.before, change.after, drift=True)
        level_changes.append(change)
    return level_changes


def _goes_on(last: Change, change: Change, nights: int) -> bool:
    """True if a change, ``nights`` after the last one, continues the same drift instead of being a separate change."""
    return (last.drift or change.drift) and nights <= _LOCAL and (last.ratio > 1) == (change.ratio > 1)


def noise_width(series: Values) -> float:
    """Standard deviation of a series around its level, from a quantile of the differences between neighbours.

    Changes of level and drift hardly affect differences. The largest tenth of them and one more are left out, because
    steps and bad nights are among them; the rest is compared with the same part of a normal distribution. The noise of
    a short series is poorly known, so it is assumed to be larger: by almost 100 % with ten nights, 25 % with thirty.
    """
    count = len(series) - 1
    rank = count - count // 10 - 1
    ordered = np.sort(np.abs(np.diff(series)))
    normal = math.sqrt(2) * NormalDist().inv_cdf((1 + (rank - 0.5) / count) / 2)
    return float(ordered[rank - 1]) / normal * (1 + 8 / count)


def _candidates(series: Values, noise: float, effect: float) -> list[tuple[float, int, int, int]]:
    """Possible splits: CUSUM, index, and start and end of the interval in which each was found."""
    candidates = []
    for starts, length in _seeded(len(series)):
        windows = series[starts[:, None] + np.arange(length)]
        cusum = _cusum(windows, noise)
        best = cusum.argmax(axis=1)
        for row in np.flatnonzero(cusum[np.arange(len(starts)), best] >= _CRITICAL):
            split = int(best[row]) + SHORTEST
            if _moved(windows[row], split) >= effect:
                start = int(starts[row])
                candidates.append((float(cusum[row, best[row]]), start + split, start, start + length))
    return candidates


@lru_cache
def _seeded(count: int) -> list[tuple[NDArray[np.int64], int]]:
    """Starts and length of the seeded intervals, layer by layer; each layer is shorter by a factor of √2."""
    intervals, length, layer = [], float(count), 0
    while round(length) >= 2 * SHORTEST:
        whole = round(length)
        number = 2 * math.ceil(math.sqrt(2) ** layer) - 1
        intervals.append((np.unique(np.linspace(0, count - whole, number).round().astype(np.int64)), whole))
        length, layer = length / math.sqrt(2), layer + 1
    return intervals


def _cusum(windows: Values, noise: float) -> Values:
    """|CUSUM| of each window for each split that leaves ``SHORTEST`` nights on both sides, in noise widths.

    Shape (windows, nights) to (windows, nights - 2·SHORTEST + 1). With normal noise and no change, each value is
    distributed as |N(0, 1)|.
    """
    length = windows.shape[1]
    deviations = np.clip((windows - np.median(windows, axis=1, keepdims=True)) / noise, -_CLIP, _CLIP)
    sums = np.cumsum(deviations, axis=1)
    left = np.arange(SHORTEST, length - SHORTEST + 1)
    excess = sums[:, left - 1] - sums[:, -1:] * (left / length)
    cusum: Values = np.abs(excess) / np.sqrt(left * (length - left) / length)
    return cusum


def _moved(window: Values, split: int) -> float:
    """Distance between the medians of the two sides; 0 unless ``SHORTEST`` nights per side are closest to their own.

    Two bad nights and one ordinary night have a median, but are not a level.
    """
    levels = [float(np.median(side)) for side in (window[:split], window[split:])]
    above = window > sum(levels) / 2
    upper = above if levels[1] > levels[0] else ~above
    separated = min(np.count_nonzero(~upper[:split]), np.count_nonzero(upper[split:])) >= SHORTEST
    return abs(levels[1] - levels[0]) if separated else 0.0


def _confirmed(
    series: Values, noise: float, effect: float, candidates: Sequence[tuple[float, int, int, int]]
) -> list[int]:
    """The candidates that are still significant between their neighbours: largest first, then without the weakest."""
    taken: list[int] = []
    for _, split, start, end in sorted(candidates, reverse=True):
        if not any(start < other < end for other in taken):
            taken.append(split)
    taken.sort()
    while taken:
        bounds = [0, *taken, len(series)]
        weights = []
        for place, split in enumerate(taken):
            start, end = bounds[place], bounds[place + 2]
            near = series[start:end]
            enough = min(split - start, end - split) >= SHORTEST and _moved(near, split - start) >= effect
            weights.append(float(_cusum(near[None, :], noise)[0, split - start - SHORTEST]) if enough else 0.0)
        weakest = int(np.argmin(weights))
        if weights[weakest] >= _CRITICAL:
            break
        del taken[weakest]
    return taken


def _is_drift(near: Values, split: int, noise: float) -> bool:
    """True if a straight line fits the nights around a split better than two levels do.

    The line is the Theil–Sen estimator, the median of the slopes between all pairs (Sen, JASA 63, 1968).
    """
    start = max(split - _LOCAL, 0)
    around, middle = near[start : split + _LOCAL], split - start
    nights = np.arange(len(around))
    one, other = np.triu_indices(len(around), 1)
    slope = np.median((around[other] - around[one]) / (other - one))
    line = around - slope * nights
    step = np.concatenate([side - np.median(side) for side in (around[:middle], around[middle:])])
    return _loss(line - np.median(line), noise) < _loss(step, noise)


def _loss(deviations: Values, noise: float) -> float:
    """Sum of squares, each bounded."""
    return float(np.sum(np.minimum((deviations / noise) ** 2, _CLIP**2)))
