"""Fleets as arrays of times under models of how normal GPUs vary, with GPUs made slow on purpose.

The models' widths are published or measured ones; results/reference/notes/fleet.md names the sources.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import stats

from smembench.stats.noise import Floats
from smembench.stats.summary import centre_spread

METRICS = 20
"""Of which the first are limited by power, the others by memory or latency."""
BY_POWER = 3
MEASURED = 0.0015
"""Standard deviation between runs, and between copies on equal GPUs, as a fraction."""
PUBLISHED = 0.08 / (2 * 2.698)
"""The same where the whiskers of a box plot are 8 % apart."""
ROUNDS = 3
PER_HOST = 8
_TOGETHER = 0.8
"""Correlation of the power-limited metrics of a GPU: the chip's quality."""


@dataclass(frozen=True, slots=True)
class Model:
    """How normal GPUs vary.

    Attributes:
        shape: of the variation, with quartiles like a normal distribution's.
        by_power: width in the metrics limited by power.
        by_host: share of the variance that the GPUs of a host have in common.
        noisy: share of GPUs whose rounds are ten times as noisy.
        fast: share of GPUs that are 5 % faster.
        slow: share of GPUs that are 5 % slower beside the one in question.
    """

    shape: Callable[[np.random.Generator, tuple[int, ...]], Floats]
    quantile: Callable[[float], float]
    by_power: float = PUBLISHED
    by_host: float = 0.0
    noisy: float = 0.0
    fast: float = 0.0
    slow: float = 0.0


def _normal(rng: np.random.Generator, size: tuple[int, ...]) -> Floats:
    return rng.normal(size=size)


def _skewed(rng: np.random.Generator, size: tuple[int, ...]) -> Floats:
    return (rng.gamma(4, size=size) - float(stats.gamma.median(4))) / 2


def _heavy(rng: np.random.Generator, size: tuple[int, ...]) -> Floats:
    return rng.standard_t(4, size=size) * 0.6745 / 0.7407


def _normal_edge(p: float) -> float:
    return float(stats.norm.isf(p))


def _skewed_edge(p: float) -> float:
    return float(stats.gamma.isf(p, 4) - stats.gamma.median(4)) / 2


def _heavy_edge(p: float) -> float:
    return float(stats.t.isf(p, 4)) * 0.6745 / 0.7407


MODELS = {
    "measured": Model(_normal, _normal_edge, by_power=MEASURED),
    "published": Model(_normal, _normal_edge),
    "published, hosts": Model(_normal, _normal_edge, by_host=0.5),
    "published, noisy": Model(_normal, _normal_edge, noisy=0.1),
    "published, a tenth slow": Model(_normal, _normal_edge, slow=0.1),
    "published, a fifth slow": Model(_normal, _normal_edge, slow=0.2),
    "published, a tenth fast": Model(_normal, _normal_edge, fast=0.1),
    "largest published": Model(_normal, _normal_edge, by_power=0.22 / (2 * 2.698)),
    "skewed": Model(_skewed, _skewed_edge),
    "heavy-tailed": Model(_heavy, _heavy_edge),
}


def widths(model: Model) -> Floats:
    """By metric the width of the normal variation, as a fraction."""
    return np.array([model.by_power] * BY_POWER + [MEASURED] * (METRICS - BY_POWER))


def edge(model: Model, rate: float) -> Floats:
    """By metric the distance, in logarithms, that a share of ``rate`` of normal GPUs exceeds."""
    return widths(model) * model.quantile(rate)


@dataclass(frozen=True, slots=True)
class Simulated:
    """A fleet: logarithms of times, shape (metrics, GPUs), before they are measured.

    ``normal`` says which GPUs are; the first is one. ``rounds`` is the standard deviation of a round.
    """

    times: Floats
    normal: np.ndarray[tuple[int], np.dtype[np.bool_]]
    rounds: Floats


def simulated(model: Model, count: int, rng: np.random.Generator) -> Simulated:
    """A fleet of normal GPUs, but for those that the model makes slow."""
    own = model.shape(rng, (METRICS, count))
    chip = model.shape(rng, (1, count))
    # Which of the two a value is leaves the shape as it is; a weighted sum would not.
    own[:BY_POWER] = np.where(rng.random((BY_POWER, count)) < _TOGETHER, chip, own[:BY_POWER])
    hosts = model.shape(rng, (METRICS, -(-count // PER_HOST))).repeat(PER_HOST, axis=1)[:, :count]
    varied = math.sqrt(1 - model.by_host) * own + math.sqrt(model.by_host) * hosts
    times = varied * widths(model)[:, None]
    kinds = rng.permutation(np.arange(1, count))
    slow, fast = round(model.slow * count), round(model.fast * count)
    times[:, kinds[:slow]] += math.log1p(0.05)
    times[:, kinds[slow : slow + fast]] -= math.log1p(0.05)
    normal = np.ones(count, dtype=bool)
    normal[kinds[:slow]] = False
    noise = rng.uniform(0.0003, 0.0015, METRICS)[:, None] * np.where(rng.random(count) < model.noisy, 10.0, 1.0)
    return Simulated(times, normal, noise)


def measured(fleet: Simulated, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """The times as measured in a few rounds, and the standard errors that the rounds tell."""
    rounds = fleet.times[..., None] + fleet.rounds[..., None] * rng.normal(size=(*fleet.times.shape, ROUNDS))
    pairs = (rounds[..., :, None] + rounds[..., None, :]) / 2
    upper = np.triu_indices(ROUNDS)
    centre = np.median(pairs[..., upper[0], upper[1]], axis=-1)
    return centre, rounds.std(axis=-1, ddof=1) * math.sqrt(centre_spread(ROUNDS))
