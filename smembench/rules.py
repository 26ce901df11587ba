"""The stop rule of each kind of device, from a config."""

from __future__ import annotations

from smembench.config import Config
from smembench.timing.sampling import StopRule

PRECISION = {"cuda": 0.005, "cpu": 0.02}
"""Relative half-width of the median's interval to reach where the config says nothing: a CPU shares its cores."""


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
