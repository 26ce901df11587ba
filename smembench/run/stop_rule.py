"""The stop rule: how many samples and rounds a case gets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from smembench.run.config import Config
from smembench.stats.summary import MIN_SAMPLES, ci_width
from smembench.store.assemble import ci_widths

MAX_EXTRA_ROUNDS = 12
"""Most additional rounds for cases that have not converged."""

_FIRST_ROUND = {"cuda": None, "cpu": 0.1}
"""``first_round`` by kind of device; short on CPUs, where a launch can take seconds."""

PRESETS: dict[str, dict[str, Any]] = {
    "quick": {"samples": 10, "rounds": 1, "precision": 5.0, "max_seconds": 2.0},
    "rigorous": {"samples": 100, "rounds": 10, "precision": 0.2, "max_seconds": 120.0},
}
"""The keys that --quick and --rigorous set; a key's own flag overrides them."""


@dataclass(frozen=True, slots=True)
class StopRule:
    """Rule for the number of samples of a case.

    A case gets at least ``samples`` samples over at least ``rounds`` rounds, then more until the relative half-width
    of the median's 95 % interval is at most ``ci_width``. Sampling ends after ``max_seconds`` in any case, but never
    before ``MIN_SAMPLES`` samples. ``warmup`` is in seconds per trial. ``first_round`` is the share of ``max_seconds``
    for the first of several rounds, an equal one if None. A load of ``sustained`` seconds follows all rounds.
    """

    samples: int = 30
    rounds: int = 3
    ci_width: float = 0.005
    max_seconds: float = 30.0
    warmup: float = 0.02
    first_round: float | None = None
    sustained: float = 0.0

    def share(self, round_: int, *, throttled: bool = False) -> int:
        """Samples to take in a round: an equal share in the first ``rounds``, then twice as many each round.

        Of a case that was ``throttled`` as many as before: at the power limit samples get slower the longer the load
        lasts, so that a case that got longer rounds would be slower than one that did not need them.
        """
        part = math.ceil(max(self.samples, MIN_SAMPLES) / self.rounds)
        return part if throttled else part << max(round_ - self.rounds + 1, 0)

    def seconds(self, round_: int, spent: float) -> float:
        """Limit for sampling in a round, in seconds.

        The first of several rounds may be short, so that a slow case has a first time soon; the others up to ``rounds``
        have equal shares of what is left, and each later one has all of it.
        """
        if round_ == 0 and self.rounds > 1 and self.first_round is not None:
            return self.first_round * self.max_seconds
        return max(self.max_seconds - spent, 0.0) / max(self.rounds - round_, 1)

    def satisfied(self, values: Sequence[float], spent: float) -> bool:
        """True if a case needs no further rounds."""
        if len(values) < MIN_SAMPLES:
            return False
        return spent >= self.max_seconds or (len(values) >= self.samples and ci_width(values) <= self.ci_width)


def rules_of(config: Config) -> dict[str, StopRule]:
    """Stop rules by kind of device."""
    every, loads = (config.max_seconds, config.warmup), {"cuda": config.sustained, "cpu": 0.0}
    return {
        kind: StopRule(config.samples, config.rounds, ci_width, *every, _FIRST_ROUND[kind], loads[kind])
        for kind, ci_width in ci_widths(config.precision).items()
    }
