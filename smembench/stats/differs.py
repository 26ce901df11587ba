"""The one rule for what is faster: two medians differ if the 95 % interval of their ratio excludes 1.

Ladders, tuning, the documents' claims, the sentences under tables and comparisons of runs all use it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import median

import numpy as np

from smembench.stats.noise import Evidence, Noise, weigh

CONFIDENCE = 0.95
_SAME_READING = 1e-6
"""Relative difference below which two times are the same reading of the clock."""

_WIDEST = 300.0
"""Largest logarithm of a bound: two rounds of one sample have intervals beyond any number."""

Rounds = Mapping[int, Sequence[float]]
"""Samples of a case in ms, by round."""


@dataclass(frozen=True, slots=True)
class Effect:
    """The ratio of two medians, new over base: above 1 is slower. ``low`` and ``high`` are its confidence interval.

    ``p`` is the probability that noise alone causes a difference at least as large.
    """

    ratio: float
    low: float
    high: float
    p: float

    @classmethod
    def of(cls, effect: float, width: float, p: float) -> Effect:
        """From the logarithm of the ratio and half the width of its interval."""
        low, high = (math.exp(max(min(end, _WIDEST), -_WIDEST)) for end in (effect - width, effect + width))
        return cls(math.exp(effect), low, high, p)

    @property
    def differs(self) -> bool:
        """True if the interval excludes 1."""
        return self.low > 1 or self.high < 1


def evidence(base: Rounds, new: Rounds, clock_ms: float = 0.0) -> Evidence | None:
    """Evidence of the difference between two cases' samples; None if neither case has two units.

    A unit is a round's median. Samples of one round share everything that a trial sets up, so the noise shows between
    rounds, not between samples. If either case has a single round, the units are samples.

    Args:
        base: samples in ms by round.
        new: the same for the other case.
        clock_ms: standard deviation that the clock adds to a unit.
    """
    samples = [list(chain.from_iterable(side.values())) for side in (base, new)]
    medians = [[median(values) for values in side.values()] for side in (base, new)]
    units = medians if min(map(len, medians)) > 1 else samples
    return weigh(units[0], units[1], timer_step(*samples), clock_ms / min(chain(*units)))


def evidence_of_medians(base: tuple[float, float], new: tuple[float, float], samples: int) -> Evidence:
    """The same from a median in ms and the relative half-width of its 95 % interval, where samples are not stored.

    Args:
        base: median and half-width.
        new: the same for the other case.
        samples: the smaller number of samples of the two.
    """
    effect = math.log(new[0] / base[0])
    variance = (base[1] ** 2 + new[1] ** 2) / 1.96**2
    return Evidence(effect, variance, freedom=max(samples - 1, 1), spread=1.0)


def differs(cases: Sequence[Evidence], confidence: float = CONFIDENCE) -> list[Effect]:
    """An effect per case; the cases share what they show about the noise (see ``Noise``)."""
    noise = Noise(cases)
    half, p = noise.half_widths(confidence), noise.p_values()
    return [
        Effect.of(effect, width, float(chance)) for effect, width, chance in zip(noise.effects, half, p, strict=True)
    ]


def timer_step(*sides: Sequence[float]) -> float:
    """The clock's resolution: the smallest gap between times in ms of one side, relative to the shortest time.

    0 if each side has a single reading: the gap between the sides may be the difference itself.
    """
    gaps = np.concatenate([np.diff(np.sort(side)) for side in sides]) / min(map(min, sides))
    return float(gaps.min(initial=math.inf, where=gaps > _SAME_READING)) if (gaps > _SAME_READING).any() else 0.0
