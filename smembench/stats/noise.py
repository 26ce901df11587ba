"""How large a difference noise alone can cause: p-values and intervals of many cases with few rounds each.

Three rounds per side are too few to resample: a bootstrap interval never leaves the range of the values seen, and
covers the truth too rarely. Student's t is right for one case, but with four degrees of freedom it detects nothing
among two hundred. So the cases share what they show about the noise. Its distribution is estimated from all of them
(nonparametric maximum likelihood, by expectation maximisation on a grid), and each case's p-value averages over the
noise that this distribution and its own rounds allow. This is the empirical partially Bayes test of Ignatiadis and
Sen, "Empirical partially Bayes multiple testing and compound χ² decisions" (2023). It assumes that logarithms of round
medians are distributed normally around their side's centre, and nothing about how the noise varies between cases. For
a single case it is Student's t. Simulations: results/reference/notes/statistics.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import erfc

Floats = npt.NDArray[np.float64]

_NOISE = np.exp(np.linspace(math.log(1e-5), math.log(1.0), 150))
"""Grid of relative standard deviations of a round's median: from 0.001 % to 100 %."""
_UNSEEN = 3.0
"""Weight, in cases, of a prior that is uniform over the logarithm of the noise. It keeps a few cases that happen to
agree from ruling out the rest. Chosen by simulation (results/reference/notes/statistics.md)."""
_STEPS = 30
"""Steps of expectation maximisation; more steps do not change the p-values noticeably."""
_FARTHEST = 37.0
"""Standard deviations beyond which a tail probability underflows a float."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the units (rounds or runs) of one case show, in logarithms of ms.

    Attributes:
        effect: difference of the sides' medians.
        variance: variance of a single unit, estimated with ``freedom`` degrees of freedom.
        freedom: degrees of freedom of ``variance``.
        spread: variance of ``effect`` if a unit's variance is 1.
        step: resolution of the clock; a difference is known to within one step.
        clock: standard deviation that the clock adds to every unit, even if the units agree.
    """

    effect: float
    variance: float
    freedom: float
    spread: float
    step: float = 0.0
    clock: float = 0.0


def weigh(base: Sequence[float], new: Sequence[float], step: float = 0.0, clock: float = 0.0) -> Evidence | None:
    """Evidence from the units' medians in ms; None if neither side has two units, which leaves the noise unknown.

    Each side's variance is weighted by its contribution to the variance of the effect, as in Welch's test, so that
    many quiet units do not hide a few noisy ones. The degrees of freedom are Satterthwaite's for equal variances. A
    side with a single unit is assumed to be as noisy as the other. If few cases are compared and one side is many
    times noisier, false verdicts are more frequent (results/reference/notes/statistics.md).
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
    """Estimated noise of several cases, each from its own units and those of the other cases."""

    def __init__(self, evidence: Sequence[Evidence]) -> None:
        def column(name: str) -> Floats:
            return np.array([getattr(item, name) for item in evidence], dtype=np.float64)

        self.effects = column("effect")
        self._steps = column("step")
        # The clock's part is known; the rest may be any noise on the grid.
        noise = np.hypot(_NOISE, column("clock")[:, None])
        self._weights = _weights(column("variance"), column("freedom"), noise)
        self._deviations = noise * np.sqrt(column("spread"))[:, None]

    def p_values(self, effects: Floats | None = None) -> Floats:
        """Probability that noise alone causes a difference as large as ``effects``; as those observed if None."""
        size = np.abs(self.effects if effects is None else effects)
        return self._beyond(np.maximum(size - self._steps, 0.0))

    def half_widths(self, confidence: float) -> Floats:
        """Half the width of the interval around each effect that covers the true one."""
        return self.critical(1 - confidence)

    def critical(self, p: float) -> Floats:
        """The smallest effect whose p-value is at most ``p``."""
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
    """Posterior weight of each noise (columns) per case (rows), from its own units and those of the other cases."""
    observed = np.maximum(variances, _NOISE[0] ** 2)
    # Density of the observed variance, with its degrees of freedom, for each possible noise.
    log_likelihood = -freedom[:, None] * (np.log(noise) + observed[:, None] / noise**2 / 2)
    likelihood = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    anything = np.full(len(_NOISE), _UNSEEN / len(_NOISE))
    prior: Floats = np.ones(len(_NOISE))
    for _ in range(_STEPS):
        prior = _share(likelihood * prior).sum(axis=0) + anything
    # A case's prior excludes its own share, so that its data do not count twice.
    own = _share(likelihood * prior)
    return _share(likelihood * (own.sum(axis=0) - own + anything))


def _share(weights: Floats) -> Floats:
    return np.asarray(weights / weights.sum(axis=1, keepdims=True), dtype=np.float64)


def discovery_rates(p_values: Floats) -> Floats:
    """For each p-value the smallest false discovery rate at which it counts: Benjamini and Hochberg's q-value.

    Their procedure at rate α accepts exactly the cases with q ≤ α ("Controlling the false discovery rate", 1995). If
    no case differs, at most α of the comparisons contain a false verdict.
    """
    from scipy.stats import false_discovery_control  # takes a second to import, and only comparisons of runs need it

    return np.asarray(false_discovery_control(p_values), dtype=np.float64)
