"""Changes of level in a series of medians: robust, and strict enough for thousands of nights of hundreds of cases.

A series is times in ms in the order they were measured; nothing here knows of runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

THRESHOLD = 0.01
"""Default for the least relative change of level that is reported."""
SHORTEST = 3
"""Fewest nights per level: one or two bad nights are no change."""
_CLIP = 4.0
"""Noise widths at which a night's deviation is clipped."""
_CRITICAL = 5.6
"""Least CUSUM of a change: about one false change in 100 000 simulated series of 1000 nights
(results/reference/notes/statistics.md)."""
_SHARPEST = 0.1
"""Least noise width assumed, as a share of the threshold: quantised times may repeat themselves exactly."""
_LOCAL = 15
"""Nights on either side of a change that distinguish a step from a drift."""

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Change:
    """A new level from the night ``index`` on; ``before`` and ``after`` are medians in ms of the stretches beside it.

    A ``drift`` is a level that moved bit by bit: ``index`` is where it was first seen apart from the level before,
    ``after`` the median since it was last seen to move.
    """

    index: int
    before: float
    after: float
    drift: bool = False

    @property
    def ratio(self) -> float:
        """The new level over the old, above 1 where it became slower."""
        return self.after / self.before


def changes(times: Sequence[float], threshold: float = THRESHOLD) -> list[Change]:
    """Changes of level by ``threshold`` at least, in order; none in fewer than twice ``SHORTEST`` nights.

    Every seeded interval (Kovács, Bühlmann, Li and Munk, Seeded binary segmentation, Biometrika 110, 2023) is searched
    for the split with the largest CUSUM of clipped deviations from its median; bounding what one night can say makes
    it robust (Fearnhead and Rigaill, Changepoint detection in the presence of outliers, JASA 114, 2019). Splits are
    taken largest first, each interval with a split in it then left out, and each one kept only if it stands between
    its neighbours. Logarithms are compared, so that a threshold means the same for slower and faster.

    Args:
        times: positive, in ms, in the order they were measured.
        threshold: relative, 0.01 for 1 %.
    """
    if len(times) < 2 * SHORTEST:
        return []
    series = np.log(np.asarray(times, dtype=np.float64))
    effect = math.log1p(threshold)
    noise = max(noise_width(series), _SHARPEST * effect)
    splits = _confirmed(series, noise, effect, _candidates(series, noise, effect))
    bounds = [0, *splits, len(series)]
    levels = [float(np.median(times[start:end])) for start, end in pairwise(bounds)]
    found: list[Change] = []
    for place, split in enumerate(splits):
        drift = _is_drift(series[bounds[place] : bounds[place + 2]], split - bounds[place], noise)
        change = Change(split, levels[place], levels[place + 1], drift)
        if found and _goes_on(found[-1], change, split - bounds[place]):
            last = found.pop()
            change = Change(last.index, last.before, change.after, drift=True)
        found.append(change)
    return found


def _goes_on(last: Change, change: Change, nights: int) -> bool:
    """Whether a change so many nights after the last is more of the same drift, and not a change of its own."""
    return (last.drift or change.drift) and nights <= _LOCAL and (last.ratio > 1) == (change.ratio > 1)


def noise_width(series: Values) -> float:
    """Standard deviation of a series around its level, from a quantile of the differences between neighbours.

    Differences do not feel changes of level or drift. The largest tenth of them and one more are left out, which is
    where steps and bad nights are, and what is left is taken for the same part of a normal distribution. A short
    series knows its noise badly and is given more: nearly twice as much with ten nights, a quarter more with thirty.
    """
    count = len(series) - 1
    rank = count - count // 10 - 1
    ordered = np.sort(np.abs(np.diff(series)))
    normal = math.sqrt(2) * NormalDist().inv_cdf((1 + (rank - 0.5) / count) / 2)
    return float(ordered[rank - 1]) / normal * (1 + 8 / count)


def _candidates(series: Values, noise: float, effect: float) -> list[tuple[float, int, int, int]]:
    """Splits worth a look: their CUSUM, where they are, and the interval they were found in."""
    found = []
    for starts, length in _seeded(len(series)):
        windows = series[starts[:, None] + np.arange(length)]
        cusum = _cusum(windows, noise)
        best = cusum.argmax(axis=1)
        for row in np.flatnonzero(cusum[np.arange(len(starts)), best] >= _CRITICAL):
            split = int(best[row]) + SHORTEST
            if _moved(windows[row], split) >= effect:
                start = int(starts[row])
                found.append((float(cusum[row, best[row]]), start + split, start, start + length))
    return found


def _seeded(count: int) -> Iterator[tuple[NDArray[np.int64], int]]:
    """Starts and lengths of the seeded intervals by layer, each layer shorter than the last by the root of two."""
    length, layer = float(count), 0
    while round(length) >= 2 * SHORTEST:
        whole = round(length)
        number = 2 * math.ceil(math.sqrt(2) ** layer) - 1
        yield np.unique(np.linspace(0, count - whole, number).round().astype(np.int64)), whole
        length, layer = length / math.sqrt(2), layer + 1


def _cusum(windows: Values, noise: float) -> Values:
    """|CUSUM| of each window split after each night that leaves ``SHORTEST`` on both sides, in noise widths.

    Shape (windows, nights) to (windows, nights - 2·SHORTEST + 1). With normal noise and no change each is |N(0, 1)|.
    """
    length = windows.shape[1]
    deviations = np.clip((windows - np.median(windows, axis=1, keepdims=True)) / noise, -_CLIP, _CLIP)
    sums = np.cumsum(deviations, axis=1)
    left = np.arange(SHORTEST, length - SHORTEST + 1)
    excess = sums[:, left - 1] - sums[:, -1:] * (left / length)
    cusum: Values = np.abs(excess) / np.sqrt(left * (length - left) / length)
    return cusum


def _moved(window: Values, split: int) -> float:
    """How far apart the medians of the two sides are; 0 unless ``SHORTEST`` nights of each are nearer to their own.

    Two bad nights and a common one are a median, and no level.
    """
    levels = [float(np.median(side)) for side in (window[:split], window[split:])]
    above = window > sum(levels) / 2
    upper = above if levels[1] > levels[0] else ~above
    held = min(np.count_nonzero(~upper[:split]), np.count_nonzero(upper[split:])) >= SHORTEST
    return abs(levels[1] - levels[0]) if held else 0.0


def _confirmed(
    series: Values, noise: float, effect: float, candidates: Sequence[tuple[float, int, int, int]]
) -> list[int]:
    """The candidates that exclude each other no more, largest first, each seen from neighbour to neighbour."""
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
    """Whether a straight line goes through the nights around a split better than two levels do.

    The line is Theil and Sen's, the median of the slopes between all pairs (Sen, JASA 63, 1968).
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
