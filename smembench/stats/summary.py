"""Order statistics of samples: robust against the occasional slow sample."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations_with_replacement
from statistics import median

MIN_SAMPLES = 3
"""Fewest samples per case, however slow it is: the median of fewer means nothing."""

MIN_ROUNDS = 3
"""Fewest rounds that show what differs between rounds."""

_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306)
"""``student`` of one to eight degrees of freedom."""
_CENTRE_SPREAD = (1.0, 0.5, 0.3405, 0.274)
"""``centre_spread`` of one to four values."""
FEW = 40
"""Most values whose pairs are counted."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Five-number summary of elapsed times in ms, and their number."""

    count: int
    min: float
    q1: float
    median: float
    q3: float
    max: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Summary:
        """Summarise one or more values; quantiles interpolate linearly between order statistics.

        Raises:
            ValueError: if there are no values, or one is not a positive finite number.
        """
        if not values:
            raise ValueError("no samples to summarise")
        if not all(math.isfinite(value) and value > 0 for value in values):
            raise ValueError(f"elapsed times must be positive and finite, got {min(values)} to {max(values)}")
        ordered = sorted(values)
        q1, median, q3 = (_quantile(ordered, p) for p in (0.25, 0.5, 0.75))
        return cls(len(ordered), ordered[0], q1, median, q3, ordered[-1])


def _quantile(ordered: Sequence[float], p: float) -> float:
    place = p * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    # min, because rounding could exceed the higher value.
    return min(ordered[below] + (place - below) * (ordered[above] - ordered[below]), ordered[above])


def centre(values: Sequence[float]) -> float:
    """The Hodges–Lehmann estimator: the median of the means of all pairs, each value with itself too.

    With normal values it varies hardly more than their mean, and a single slow value among four or more hardly moves
    it. The median of three readings of a clock with two levels is one of the levels; this lies between them. Many
    values have their median instead, which is quicker.
    """
    if len(values) > FEW:
        return median(values)
    means = sorted([(one + other) / 2 for one, other in combinations_with_replacement(values, 2)])
    return (means[(len(means) - 1) // 2] + means[len(means) // 2]) / 2


def centre_spread(count: int) -> float:
    """Variance of the centre of ``count`` normal values of variance 1, within 2 % (simulated)."""
    if count > FEW:
        return math.pi / (2 * count)
    return _CENTRE_SPREAD[count - 1] if count <= len(_CENTRE_SPREAD) else 1.073 / count


def variance(values: Sequence[float]) -> float:
    """The sample variance; 0 for one value, which shows none. For a few values this is much quicker than NumPy."""
    middle = sum(values) / len(values)
    return sum((value - middle) ** 2 for value in values) / max(len(values) - 1, 1)


def median_interval(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """Distribution-free confidence interval of the median from order statistics.

    The number of samples below the median is binomial(n, 1/2), so the interval between the samples of rank r and
    n + 1 - r covers it with probability 1 - 2·P(B < r) (Conover, Practical Nonparametric Statistics, section 3.2).
    With fewer than six samples the result is their range, which covers less than 95 %.

    Raises:
        ValueError: if there are no values.
    """
    if not values:
        raise ValueError("no samples to bound the median of")
    ordered = sorted(values)
    rank = _rank(len(ordered), confidence)
    return ordered[rank - 1], ordered[-rank]


@cache
def _rank(count: int, confidence: float) -> int:
    """The largest rank r with 2·P(B < r) ≤ 1 - confidence, or 1. SciPy has the sum, but takes 0.2 s to import."""
    outside = 0.0
    for below in range(count // 2):
        ways = math.lgamma(count + 1) - math.lgamma(below + 1) - math.lgamma(count - below + 1)
        outside += 2 * math.exp(ways - count * math.log(2))
        if outside > 1 - confidence:
            return max(below, 1)
    return max(count // 2, 1)


def ci_width(values: Sequence[float]) -> float:
    """Half-width of the median's 95 % confidence interval, relative to the median; 1 for fewer than three values."""
    if len(values) < MIN_SAMPLES:
        return 1.0
    low, high = median_interval(values)
    return (high - low) / 2 / Summary.of(values).median


def uncertainty(rounds: Collection[Sequence[float]]) -> float:
    """Half-width of the 95 % confidence interval of a time, relative to the median of all samples.

    Samples of one round share what its trial set up, so rounds differ by more than their samples suggest. The interval
    is Student's for the mean of the rounds' medians, t·s/√r for r rounds whose medians have the standard deviation s.
    It is never narrower than that of the samples' median, ``ci_width``, the only one for fewer than three rounds.

    Args:
        rounds: the samples of each round, in ms.
    """
    values = [value for samples in rounds for value in samples]
    alone = ci_width(values)
    if len(rounds) < MIN_ROUNDS:
        return alone
    between = student(len(rounds) - 1) * math.sqrt(variance([median(samples) for samples in rounds]) / len(rounds))
    return max(alone, between / median(values))


def student(freedom: int) -> float:
    """The t within which 95 % of Student's distribution lies, within 0.2 %.

    From nine degrees of freedom on by the expansion around the normal quantile z (Abramowitz and Stegun, 26.7.5).
    """
    if freedom <= len(_STUDENT):
        return _STUDENT[freedom - 1]
    z = 1.95996
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
