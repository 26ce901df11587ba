"""Members slower than their group's normal variation: a robust test over many series at once.

Arrays hold logarithms of times, shape (series, members), NaN where a member has none; nothing here knows of GPUs.

The scale of a series is Tukey's biweight midvariance, which members far off do not enter (Mosteller and Tukey, Data
Analysis and Regression, 1977, chapter 10; its breakdown point is a half). With few members a scale is poorly known, so
the series share what they show of it, and a p-value averages over what it may be (see ``stats.noise``).
Simulations: results/reference/notes/fleet.md.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smembench.stats.noise import Evidence, Floats, Noise

Flags = NDArray[np.bool_]

FEWEST = 3
"""Fewest members among which one can be distinguished: of two that differ, either may be the normal one."""
_GROUPS = 1e-3
"""Probability with which normal variation may look like two groups."""
_FAR = 12.0
"""Median absolute deviations beyond which a member does not enter the scale: eight standard deviations. With the usual
9, eight normal members have a scale far too small twice as often (simulated)."""
_FREEDOM = 0.8
"""Degrees of freedom of the scale per member but one: 0.72 to 0.85 of 4 to 10 normal members, then more (simulated)."""


@dataclass(frozen=True, slots=True)
class Outliers:
    """Each member against the others, by series.

    Attributes:
        distance: from the median of the series, above 0 is slower; NaN where a member has no time.
        spread: by series, the standard deviation between normal members; NaN for fewer than ``FEWEST``.
        limit: by series, the distance beyond which a member is reported; NaN for fewer than ``FEWEST``.
        p: probability that a normal member is as far on the slow side, or farther; 1 within the threshold, NaN for
            fewer than ``FEWEST``.
        slower: the members of the slower of two groups, where a series has two groups of a similar number. Either may
            be the normal one, so each member is judged within its own.
    """

    distance: Floats
    spread: Floats
    limit: Floats
    p: Floats
    slower: Flags


def outliers(times: Floats, noise: Floats, threshold: float, level: float) -> Outliers:
    """Judge every member of every series.

    Args:
        times: logarithms of times.
        noise: standard error of each; 0 if unknown.
        threshold: a normal member may be this far off without any reason, in logarithms.
        level: probability with which a normal member may be reported, in one series.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of series without times
        distance = times - np.nanmedian(times, axis=1, keepdims=True)
        usual, excess = _noise(noise + 0 * times)
        slower, within = _groups(times, usual, threshold)
        within -= np.nanmedian(within, axis=1, keepdims=True)
        spread = _scale(within)
    count = np.isfinite(times).sum(axis=1)
    judged = np.flatnonzero(count >= FEWEST)
    spread[count < FEWEST] = np.nan
    limit, p = np.full(len(times), np.nan), np.full(times.shape, np.nan)
    freedom = _FREEDOM * (count - 1 - slower.any(axis=1))
    shared = Noise([_evidence(spread[row], freedom[row], usual[row]) for row in judged])
    limit[judged] = shared.critical(2 * level, threshold)
    # What a member's own noise adds to the spread takes as much off its distance beyond the threshold.
    floor = np.maximum(spread, usual)[:, None]
    size = threshold + (within - threshold) * np.divide(
        floor, np.hypot(floor, excess), out=np.ones_like(within), where=excess > 0
    )
    p[judged] = np.where(np.isfinite(size[judged]), 1.0, np.nan)
    for member in np.flatnonzero((size[judged] > threshold).any(axis=0)):
        beyond = size[judged, member] > threshold
        chance = shared.p_values(np.where(beyond, size[judged, member], 0.0), threshold) / 2
        p[judged[beyond], member] = chance[beyond]
    return Outliers(distance, spread, limit, p, slower)


def _evidence(spread: float, freedom: float, usual: float) -> Evidence:
    return Evidence(effect=0.0, variance=float(spread) ** 2, freedom=float(freedom), spread=1.0, clock=float(usual))


def _scale(distance: Floats) -> Floats:
    """The root of each row's biweight midvariance: within 3 % the standard deviation of 4 or more normal values."""
    sizes = np.abs(distance)
    median = np.nanmedian if np.isnan(sizes).any() else np.median  # ten times as quick
    deviation = median(sizes, axis=1, keepdims=True)
    ratio = np.divide(distance, _FAR * deviation, out=np.where(distance == 0, 0.0, np.inf), where=deviation > 0)
    near = np.abs(ratio) < 1
    inner = np.where(near, 1 - ratio**2, 0.0)
    count = np.isfinite(distance).sum(axis=1)
    top = np.sum(np.where(near, distance, 0.0) ** 2 * inner**4, axis=1)
    bottom = np.abs(np.sum(np.where(near, inner * (1 - 5 * ratio**2), 0.0), axis=1))
    corrected = np.divide(count, np.maximum(count - 1, 1)) * count * top
    return np.asarray(np.sqrt(np.divide(corrected, bottom**2, out=np.zeros(len(top)), where=bottom > 0)))


def _noise(noise: Floats) -> tuple[Floats, Floats]:
    """By series the usual noise, and what each member has beyond it, as standard deviations.

    A member's few rounds estimate its noise badly, but a noisy member is noisy in many series.
    """
    usual = np.nan_to_num(np.nanmedian(noise, axis=1))
    ratio = np.divide(noise, usual[:, None], out=np.ones_like(noise), where=usual[:, None] > 0)
    own = np.fmax(noise, usual[:, None] * np.nan_to_num(np.nanmedian(ratio, axis=0), nan=1.0))
    return usual, np.nan_to_num(np.sqrt(np.maximum(own**2 - usual[:, None] ** 2, 0.0)))


def _groups(times: Floats, usual: Floats, threshold: float) -> tuple[Flags, Floats]:
    """The slower of two groups by series, if there are two, and the times with each group around its own median.

    Two groups are more than a third of the members each, with a gap between them that the variation within them does
    not explain.
    """
    gaps, evidence, parts = [], [], []
    for row, values in enumerate(times):
        ordered = np.sort(values[np.isfinite(values)])
        least = len(ordered) // 3 + 1
        if len(ordered) < max(2 * least, FEWEST):
            continue
        place = least + int(np.argmax(np.diff(ordered)[least - 1 : len(ordered) - least]))
        centred = np.concatenate([side - np.median(side) for side in (ordered[:place], ordered[place:])])
        freedom = len(ordered) - 2
        spread = float(_scale(centred[None])[0]) * math.sqrt((freedom + 1) / freedom)
        gaps.append(ordered[place] - ordered[place - 1])
        evidence.append(_evidence(spread, _FREEDOM * freedom, usual[row]))
        parts.append((row, ordered[place]))
    slower, within = np.zeros(times.shape, dtype=bool), times.copy()
    if gaps:
        for (row, least_slow), chance in zip(parts, Noise(evidence).p_values(np.array(gaps), threshold), strict=True):
            if chance <= _GROUPS:
                slower[row] = times[row] >= least_slow
                for side in (slower[row], ~slower[row]):
                    within[row, side] -= np.nanmedian(times[row, side])
    return slower, within
