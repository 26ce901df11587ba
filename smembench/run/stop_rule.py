"""The stop rule: how many samples a case gets, over how many rounds, and when it has enough."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from smembench.run.config import Config
from smembench.stats.summary import MIN_SAMPLES, precision_of

MAX_EXTRA_ROUNDS = 12
"""Rounds added for cases that have not converged, each twice as long as the one before."""

PRECISION = {"cuda": 0.005, "cpu": 0.02}
"""Relative half-width of the median's interval to reach where the config says nothing: a CPU shares its cores."""


@dataclass(frozen=True, slots=True)
class StopRule:
    """When a case has enough.

    At least ``samples`` over at least ``rounds`` rounds, and on until the relative half-width of the median's
    95 % interval is under ``precision``; whatever happens no longer than ``max_seconds`` of sampling, save that
    ``MIN_SAMPLES`` are always taken.
    """

    samples: int = 30
    rounds: int = 3
    precision: float = 0.005
    max_seconds: float = 30.0
    warmup: float = 0.02

    def share(self, round_: int) -> int:
        """Samples to take in a round: an even part in the first ``rounds``, then twice as many each time."""
        part = math.ceil(max(self.samples, MIN_SAMPLES) / self.rounds)
        return part << max(round_ - self.rounds + 1, 0)

    def seconds(self, round_: int, spent: float) -> float:
        """Seconds a round may sample: an even part of the limit at first, then what is left."""
        if round_ < self.rounds:
            return self.max_seconds / self.rounds
        return max(self.max_seconds - spent, 0.0)

    def satisfied(self, values: Sequence[float], spent: float) -> bool:
        """Whether a case needs no further round."""
        if len(values) < MIN_SAMPLES:
            return False
        return spent >= self.max_seconds or (len(values) >= self.samples and precision_of(values) <= self.precision)


def rules_of(config: Config) -> dict[str, StopRule]:
    """Stop rules by kind of device."""
    return {
        kind: StopRule(
            config.samples,
            config.rounds,
            precision if config.precision is None else config.precision / 100,
            config.max_seconds,
            config.warmup,
        )
        for kind, precision in PRECISION.items()
    }
