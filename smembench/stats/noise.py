"""P-values and intervals of many cases with few rounds: the largest difference that noise alone can cause.

Three rounds per side are too few to resample: a bootstrap interval never leaves the range of the values seen, and
covers the truth too rarely. Student's t is right for one case, but with four degrees of freedom it detects nothing
among two hundred. So the cases share what they show about the noise. Its distribution is estimated from all of them
(nonparametric maximum likelihood, by expectation maximisation on a grid), and each case's p-value averages over the
noise that this distribution and its own rounds allow. This is the empirical partially Bayes test of Ignatiadis and
Sen, "Empirical partially Bayes multiple testing and compound χ² decisions" (2023). It assumes that logarithms of
rounds' medians, or of runs' centres, are distributed normally around their side's, and nothing about how the noise
varies between cases. For a single case it is Student's t. Simulations: results/reference/notes/statistics.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from smembench.stats.summary import centre, centre_spread, variance

Floats = npt.NDArray[np.float64]

_ignoring_underflow = np.errstate(under="ignore")
"""Weights of what is most unlikely are 0, even in a process whose NumPy raises on underflow."""
_NOISE = np.exp(np.linspace(math.log(1e-5), math.log(1.0), 150))
"""Grid of relative standard deviations of a round's median: from 0.001 % to 100 %."""
_UNSEEN = 3.0
"""Weight, in cases, of a prior that is uniform over the logarithm of the noise. It keeps a few cases that happen to
agree from ruling out the rest. Chosen by simulation (results/reference/notes/statistics.md)."""
_EXCESS = np.concatenate([[0.0], np.exp(np.linspace(math.log(2e-3), math.log(0.1), 12))])
"""Grid of relative standard deviations by which the rounds of a noisy run exceed the usual."""
_ANY_EXCESS = 0.1
"""Weight, in cases, of the prior that any excess is as likely as another."""
_STEPS = 30
"""Steps of expectation maximisation; more steps do not change the p-values noticeably."""
_FARTHEST = 37.0
"""Standard deviations beyond which a tail probability underflows a float."""


@dataclass(frozen=True, slots=True)
class Own:
    """Noise among the new run's own rounds, to detect a run noisier than those it is compared with.

    Attributes:
        variance: among the new run's rounds, with ``freedom`` degrees of freedom.
        usual: the same of the runs it is compared with.
        spread: variance of the run's centre if a round's variance is 1.
    """

    variance: float
    freedom: float
    usual: float
    spread: float


@dataclass(frozen=True, slots=True)
class Evidence:
    """Difference and noise of the units (rounds or runs) of one case, in logarithms of ms.

    Attributes:
        effect: difference of the sides' centres.
        variance: variance of a single unit, estimated with ``freedom`` degrees of freedom.
        freedom: degrees of freedom of ``variance``.
        spread: variance of ``effect`` if a unit's variance is 1.
        step: resolution of the clock; a difference is known to within one step.
        clock: standard deviation that the clock adds to every unit, even if the units agree.
        own: where units are runs, what the new run's rounds show.
        family: number of the cases that are alike, as by the kind of device. Only they share what they show of noise.
    """

    effect: float
    variance: float
    freedom: float
    spread: float
    step: float = 0.0
    clock: float = 0.0
    own: Own | None = None
    family: int = 0


def weigh(
    base: Sequence[float], new: Sequence[float], step: float = 0.0, clock: float = 0.0, family: int = 0
) -> Evidence | None:
    """Evidence from the units' medians in ms; None if neither side has two units, which leaves the noise unknown.

    Each side's variance is weighted by its contribution to the variance of the effect, as in Welch's test, so that
    many quiet units do not hide a few noisy ones. The degrees of freedom are Satterthwaite's for equal variances. A
    side with a single unit is assumed to be as noisy as the other. If few cases are compared and one side is many
    times noisier, false verdicts are more frequent (results/reference/notes/statistics.md).
    """
    logs = [[math.log(unit) for unit in side] for side in (base, new)]
    if max(map(len, logs)) < 2:
        return None
    spreads = [centre_spread(len(side)) for side in logs]
    parts = [(spread, side) for spread, side in zip(spreads, logs, strict=True) if len(side) > 1]
    total = sum(spread for spread, _ in parts)
    return Evidence(
        effect=math.log(centre(new) / centre(base)),
        variance=sum(spread * variance(side) for spread, side in parts) / total,
        freedom=total**2 / sum(spread**2 / (len(side) - 1) for spread, side in parts),
        spread=sum(spreads),
        step=step,
        clock=clock,
        family=family,
    )


class Noise:
    """Estimated noise of several cases, each from its own units and those of the other cases."""

    def __init__(self, evidence: Sequence[Evidence]) -> None:
        def column(name: str) -> Floats:
            return np.array([getattr(item, name) for item in evidence], dtype=np.float64)

        self.effects = column("effect")
        self._steps = column("step")
        # The clock's part is known; the rest may be any noise on the grid.
        noise = np.hypot(_NOISE, column("clock")[:, None])
        spread, families = column("spread"), column("family")
        self._weights = np.empty((len(evidence), len(_NOISE)))
        for family in np.unique(families):
            like = np.flatnonzero(families == family)
            weights = _weights(column("variance")[like], column("freedom")[like], noise[like])
            self._weights[like] = _with_own(weights, [evidence[place].own for place in like.tolist()], spread[like])
        self._deviations = noise * np.sqrt(spread)[:, None]

    def p_values(self, effects: Floats | None = None, least: Floats | float = 0.0) -> Floats:
        """Probability that noise causes a difference as large as ``effects`` where the true one is ``least`` or less.

        The effects are those observed if None. With 0 for ``least`` the null hypothesis is that nothing differs.
        """
        size = np.maximum(np.abs(self.effects if effects is None else effects) - self._steps, 0.0)
        return np.minimum(self._tails(size, least), 1.0)

    def half_widths(self, confidence: float) -> Floats:
        """Half the width of the interval around each effect that covers the true one."""
        return self.critical(1 - confidence)

    def critical(self, p: float, least: Floats | float = 0.0) -> Floats:
        """The smallest effect whose p-value against ``least`` is at most ``p``."""
        return self._quantile(p, least) + self._steps

    def rarely(self, p: float) -> Floats:
        """The amount by which noise shifts an effect, up or down, with a probability of ``p``."""
        return self._quantile(2 * p)

    def _quantile(self, p: float, least: Floats | float = 0.0) -> Floats:
        low, high = self._deviations[:, 0] / 1e3, self._deviations[:, -1] * _FARTHEST + least
        for _ in range(18):  # the ends' ratio is 1e10 at first, 1.0001 then
            middle = np.sqrt(low * high)
            over = self._tails(middle, least) > p
            low, high = np.where(over, middle, low), np.where(over, high, middle)
        return high

    def _tails(self, sizes: Floats, least: Floats | float) -> Floats:
        """Probability that noise around ``least`` or its negative is beyond each size, on either side."""
        if not np.any(least):
            return self._beyond(sizes)
        return (self._beyond(sizes - least) + self._beyond(sizes + least)) / 2

    @_ignoring_underflow
    def _beyond(self, sizes: Floats) -> Floats:
        """Twice the probability that noise exceeds each size, which may be negative."""
        tails = _erfc(sizes[:, None] / self._deviations / math.sqrt(2))
        return np.asarray((self._weights * tails).sum(axis=1), dtype=np.float64)


def _erfc(values: Floats) -> Floats:
    """math.erfc of each; np.vectorize takes half as long again."""
    return np.fromiter(map(math.erfc, values.ravel().tolist()), np.float64, values.size).reshape(values.shape)


@_ignoring_underflow
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


@_ignoring_underflow
def _with_own(weights: Floats, owns: Sequence[Own | None], spreads: Floats) -> Floats:
    """Posterior weights of the noise of a case with what its new run's rounds add, on the same grid.

    A noisy night is noisy in many cases, so the cases share what their rounds show of this too. What the rounds have
    beyond those of earlier runs, from nothing to 10 %, adds to the variance of the new run's centre.
    """
    places = np.array([place for place, own in enumerate(owns) if own is not None], dtype=np.intp)
    known = [own for own in owns if own is not None]
    if not known:
        return weights
    observed, freedom, usual, spread = (
        np.array([getattr(own, name) for own in known], dtype=np.float64)
        for name in ("variance", "freedom", "usual", "spread")
    )
    variance = np.maximum(usual[:, None], _NOISE[0] ** 2) + _EXCESS**2
    log_likelihood = -freedom[:, None] / 2 * (np.log(variance) + observed[:, None] / variance)
    likelihood = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    prior: Floats = np.ones(len(_EXCESS))
    for _ in range(_STEPS):
        prior = _share(likelihood * prior).sum(axis=0) + _ANY_EXCESS
    excess = _share(likelihood * prior)
    step = math.log(_NOISE[1] / _NOISE[0])
    posterior = np.zeros_like(weights)
    posterior[:] = weights
    posterior[places] *= excess[:, :1]
    rows = np.repeat(places, len(_NOISE))
    for column, size in enumerate(_EXCESS[1:], start=1):
        added = size**2 * spread / spreads[places]
        place = np.log(np.sqrt(_NOISE**2 + added[:, None]) / _NOISE[0]) / step
        upper = np.minimum(np.ceil(place), len(_NOISE) - 1).astype(np.intp)
        np.add.at(posterior, (rows, upper.ravel()), (weights[places] * excess[:, [column]]).ravel())
    return posterior


def _share(weights: Floats) -> Floats:
    return np.asarray(weights / weights.sum(axis=1, keepdims=True), dtype=np.float64)


def discovery_rates(p_values: Floats) -> Floats:
    """For each p-value the smallest false discovery rate at which it counts: Benjamini and Hochberg's q-value.

    Their procedure at rate α accepts exactly the cases with q ≤ α ("Controlling the false discovery rate", 1995). If
    no case differs, at most α of the comparisons contain a false verdict. These are the values of
    ``scipy.stats.false_discovery_control``; SciPy would be a third of an installation.
    """
    count = len(p_values)
    order = np.argsort(p_values)[::-1]
    rates: Floats = np.empty(count)
    rates[order] = np.minimum.accumulate(p_values[order] * count / np.arange(count, 0, -1))
    return np.minimum(rates, 1.0)
