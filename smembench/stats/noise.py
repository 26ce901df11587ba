"""How large a difference noise alone makes: p-values and intervals of many cases with few rounds each.

Three rounds per side are too few to resample: a bootstrap's interval never leaves the values seen, and covers the truth
too rarely. Student's t is right for one case, but its four degrees of freedom detect nothing among two hundred. So
cases share what they tell of the noise: its distribution is estimated from all of them (nonparametric maximum
likelihood, by expectation maximisation on a grid), and each case's p-value averages over the noise that this
distribution and its own rounds allow. That is the empirical partially Bayes test of Ignatiadis and Sen, "Empirical
partially Bayes multiple testing and compound χ² decisions" (2023). It assumes that logarithms of round medians scatter
normally around their side's centre, and nothing of how noise varies between cases. A single case gets Student's t.
Simulations: results/reference/notes/statistics.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import erfc

Floats = npt.NDArray[np.float64]

_NOISE = np.exp(np.linspace(math.log(1e-5), math.log(1.0), 150))
"""Grid of relative standard deviations of a round's median: from 0.001 % to 100 %."""
_UNSEEN = 3.0
"""Weight, in cases, of a prior that is uniform over the logarithm of the noise, so that a few cases that happen to
agree do not rule out the rest. Chosen by simulation (results/reference/notes/statistics.md)."""
_STEPS = 30
"""Steps of expectation maximisation; more change no p-value that matters."""
_FARTHEST = 37.0
"""Standard deviations beyond which a tail probability underflows a float."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the units (rounds or runs) of one case say, in logarithms of ms.

    ``effect`` is the difference of the sides' medians, ``variance`` that of a single unit with ``freedom`` degrees of
    freedom, ``spread`` the variance of ``effect`` for a unit's variance of 1, and ``step`` the resolution of the
    clock: a difference is known to within a step. ``clock`` is the standard deviation that the clock gives every unit,
    however well its units agree.
    """

    effect: float
    variance: float
    freedom: float
    spread: float
    step: float = 0.0
    clock: float = 0.0


def weigh(base: Sequence[float], new: Sequence[float], step: float = 0.0, clock: float = 0.0) -> Evidence | None:
    """Evidence of units' medians in ms; None where neither side has two, so that nothing tells the noise.

    Each side's variance counts as much as it adds to that of the effect, as in Welch's test, so that many quiet units
    do not speak for a few noisy ones; the degrees of freedom are Satterthwaite's at equal variances. A side of a
    single unit is taken to be as noisy as the other. Where few cases are compared and one side is many times noisier,
    false verdicts are more frequent (results/reference/notes/statistics.md).
    """
    logs = [np.log(np.asarray(side, dtype=np.float64)) for side in (base, new)]
    if max(map(len, logs)) < 2:
        return None
    spreads = [_median_spread(len(side)) for side in logs]
    parts = [(spread, side) for spread, side in zip(spreads, logs, strict=True) if len(side) > 1]
    total = sum(spread for spread, _ in parts)
    return Evidence(
        effect=float(np.median(logs[1]) - np.median(logs[0])),
        variance=float(sum(spread * side.var(ddof=1) for spread, side in parts) / total),
        freedom=total**2 / sum(spread**2 / (len(side) - 1) for spread, side in parts),
        spread=sum(spreads),
        step=step,
        clock=clock,
    )


def _median_spread(count: int) -> float:
    """Variance of the median of ``count`` normal values of variance 1, from 1 for one to π/2n for many.

    Within 2 % for odd counts, up to a quarter too large for even ones.
    """
    return math.pi / (2 * count + math.pi - 2)


class Noise:
    """Estimated noise of several cases, each from its own units and the other cases'."""

    def __init__(self, evidence: Sequence[Evidence]) -> None:
        def column(name: str) -> Floats:
            return np.array([getattr(item, name) for item in evidence], dtype=np.float64)

        self.effects = column("effect")
        self._steps = column("step")
        # The clock's share is known; the rest may be any noise of the grid.
        noise = np.hypot(_NOISE, column("clock")[:, None])
        self._weights = _weights(column("variance"), column("freedom"), noise)
        self._deviations = noise * np.sqrt(column("spread"))[:, None]

    def p_values(self, effects: Floats | None = None) -> Floats:
        """Probability that noise alone makes a difference as large as ``effects``, those observed when None."""
        size = np.abs(self.effects if effects is None else effects)
        return self._beyond(np.maximum(size - self._steps, 0.0))

    def half_widths(self, confidence: float) -> Floats:
        """Half the width of the interval around each effect that covers the true one."""
        return self.critical(1 - confidence)

    def critical(self, p: float) -> Floats:
        """The size of effect from which on the p-value is at most ``p``."""
        low = np.zeros(len(self.effects))
        high = self._deviations[:, -1] * _FARTHEST
        for _ in range(40):
            middle = (low + high) / 2
            over = self._beyond(middle) > p
            low, high = np.where(over, middle, low), np.where(over, high, middle)
        return high + self._steps

    def _beyond(self, sizes: Floats) -> Floats:
        tails = erfc(sizes[:, None] / self._deviations / math.sqrt(2))
        return np.asarray(np.minimum((self._weights * tails).sum(axis=1), 1.0), dtype=np.float64)


def _weights(variances: Floats, freedom: Floats, noise: Floats) -> Floats:
    """Posterior weight of each noise (columns) per case (rows), from its own units and the other cases'."""
    observed = np.maximum(variances, _NOISE[0] ** 2)
    # Density of a variance with so many degrees of freedom, for each noise it may come from.
    log_likelihood = -freedom[:, None] * (np.log(noise) + observed[:, None] / noise**2 / 2)
    likelihood = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    anything = np.full(len(_NOISE), _UNSEEN / len(_NOISE))
    prior: Any = np.ones(len(_NOISE))
    for _ in range(_STEPS):
        prior = _share(likelihood * prior).sum(axis=0) + anything
    # A case's prior excludes its own share, so that its data do not count twice.
    own = _share(likelihood * prior)
    return _share(likelihood * (own.sum(axis=0) - own + anything))


def _share(weights: Floats) -> Floats:
    return np.asarray(weights / weights.sum(axis=1, keepdims=True), dtype=np.float64)


def discovery_rates(p_values: Floats) -> Floats:
    """For each p-value the smallest false discovery rate at which it counts: Benjamini and Hochberg's q-value.

    Their procedure at rate α accepts exactly what has q ≤ α ("Controlling the false discovery rate", 1995); where no
    case differs, that is any false verdict in at most α of the comparisons.
    """
    from scipy.stats import false_discovery_control  # takes a second to import, and only comparisons of runs need it

    return np.asarray(false_discovery_control(p_values), dtype=np.float64)
