"""The stop rule: how many samples a case gets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol

from smembench.measurement import Sample

MIN_SAMPLES = 3
"""Fewest samples of a case too slow for more; below it a median says nothing."""


class Sampler(Protocol):
    """A source of samples; one call takes a device some milliseconds, or one launch if that is longer."""

    def take(self) -> Sequence[float]:
        """One or more elapsed times in ms a launch."""


@dataclass(frozen=True, slots=True)
class StopRule:
    """Stop at ``samples``, or after ``max_seconds`` with at least ``MIN_SAMPLES``."""

    samples: int = 30
    max_seconds: float = 30.0


def collect(sampler: Sampler, rule: StopRule, clock: Callable[[], float] = perf_counter) -> tuple[Sample, ...]:
    """Samples of one round, in the order they were taken."""
    values: list[float] = []
    begun = clock()
    while len(values) < rule.samples:
        if len(values) >= MIN_SAMPLES and clock() - begun >= rule.max_seconds:
            break
        values.extend(sampler.take())
    return tuple(Sample(0, index, value) for index, value in enumerate(values[: rule.samples]))
