"""The one rule of what is faster: two medians differ where the 95 % interval of their ratio leaves out 1.

Ladders, tuning, the documents' claims, the sentences under tables and comparisons of runs all ask here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import median

import numpy as np

from smembench.stats.noise import Evidence, Floats, Noise, weigh

CONFIDENCE = 0.95
_SAME_READING = 1e-6
"""Relative difference below which two times are one reading of the clock."""

Rounds = Mapping[int, Sequence[float]]
"""Samples of a case in ms, by round."""


@dataclass(frozen=True, slots=True)
class Effect:
    """How two medians compare: ``ratio`` is new over base, over 1 is slower; ``low`` and ``high`` bound it.

    ``p`` is the probability that noise alone makes a difference at least as large.
    """

    ratio: float
    low: float
    high: float
    p: float

    @property
    def differs(self) -> bool:
        """Whether the interval leaves out 1."""
        return self.low > 1 or self.high < 1


def evidence(base: Rounds, new: Rounds, clock_ms: float = 0.0) -> Evidence | None:
    """What two cases' samples say of their difference; None where neither has two units.

    A unit is a round's median: samples of one round share all that a trial sets up, so that rounds, not samples, tell
    the noise. Where a side has a single round the units are samples.

    Args:
        base: samples in ms by round.
        new: the same of the other case.
        clock_ms: standard deviation that the clock adds to a unit.
    """
    samples = [list(chain.from_iterable(side.values())) for side in (base, new)]
    medians = [[median(values) for values in side.values()] for side in (base, new)]
    units = medians if min(map(len, medians)) > 1 else samples
    return weigh(units[0], units[1], timer_step(*samples), clock_ms / min(chain(*units)))


def evidence_of_medians(base: tuple[float, float], new: tuple[float, float], samples: int) -> Evidence:
    """The same where only a median in ms and the relative half-width of its 95 % interval are known of each side.

    Args:
        base: median and half-width.
        new: the same of the other case.
        samples: fewest of a side.
    """
    effect = math.log(new[0] / base[0])
    variance = (base[1] ** 2 + new[1] ** 2) / 1.96**2
    return Evidence(effect, variance, freedom=max(samples - 1, 1), spread=1.0)


def differs(found: Sequence[Evidence], confidence: float = CONFIDENCE) -> list[Effect]:
    """An effect for each piece of evidence; several tell each other how noisy their cases are (see ``Noise``)."""
    noise = Noise(found)
    half, p = noise.half_widths(confidence), noise.p_values()
    return [
        Effect(math.exp(effect), math.exp(effect - width), math.exp(effect + width), float(chance))
        for effect, width, chance in zip(noise.effects, half, p, strict=True)
    ]


def timer_step(*sides: Sequence[float]) -> float:
    """The clock's resolution, relative to the shortest time: the smallest gap between times in ms of one side.

    0 where each side has a single reading: the gap between the sides may be the difference itself.
    """
    shortest = min(min(side) for side in sides)
    gaps: Floats = np.concatenate([np.diff(np.unique(np.asarray(side, dtype=np.float64))) for side in sides]) / shortest
    return float(min(gaps[gaps > _SAME_READING], default=0.0))
