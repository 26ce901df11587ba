"""The stop rule: how many samples a case gets, and in which rounds. Pure but for the clock."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Protocol, TypeVar

from smembench.measurement import Conditions
from smembench.summary import MIN_SAMPLES, precision_of

MAX_EXTRA_ROUNDS = 12
"""Rounds added for cases that have not converged, each twice as long as the one before."""
_BATCH_SECONDS = 0.05
"""Samples between two looks at the device's state."""
_DISCARDS_PER_SAMPLE = 2
"""How many disturbed samples are thrown away for each one wanted, before one is kept and marked."""

_UNKNOWN = Conditions()

T = TypeVar("T", bound=Hashable)


class Sampler(Protocol):
    """A source of samples; one call takes a device some milliseconds, or one launch if that is longer."""

    def take(self) -> float:
        """An elapsed time in ms a launch."""


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


@dataclass(frozen=True, slots=True)
class Batch:
    """Samples of one visit in ms, the states seen around them, and the samples that were thrown away."""

    values: tuple[float, ...]
    states: tuple[Conditions, ...]
    discarded: tuple[float, ...]
    seconds: float


def collect(
    sampler: Sampler,
    count: int,
    seconds: float,
    observe: Callable[[], Conditions] = Conditions,
    stopped: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = perf_counter,
    before: Conditions = _UNKNOWN,
) -> Batch:
    """Take ``count`` samples, fewer when ``seconds`` run out or ``stopped`` says so, but at least one.

    The device's state is read after each batch; ``before`` is what it was before the first. Samples from a batch
    that began or ended throttled, or was crowded out by other processes, are thrown away and taken again while
    there is time and patience; after that they are kept, and their state says so.
    """
    values: list[float] = []
    states: list[Conditions] = []
    discarded: list[float] = []
    begun = clock()
    while len(values) < count and not (stopped() and values):
        batch: list[float] = []
        batch_begun = clock()
        while len(values) + len(batch) < count:
            batch.append(sampler.take())
            now = clock()
            if now - batch_begun >= _BATCH_SECONDS or now - begun >= seconds or stopped():
                break
        after = observe()
        state, before = _around(before, after), after
        late = clock() - begun >= seconds or stopped()
        if state.disturbed and not late and len(discarded) < _DISCARDS_PER_SAMPLE * count:
            discarded += batch
            continue
        values += batch
        states.append(state)
        if late:
            break
    return Batch(tuple(values), tuple(states), tuple(discarded), clock() - begun)


def _around(before: Conditions, after: Conditions) -> Conditions:
    """The state of a batch: as it was after it, and throttled if it was so before.

    What the state before says of waiting for a core is of the time before the batch.
    """
    if after.throttled or not before.throttled:
        return after
    return replace(after, throttle_reasons=before.throttle_reasons)


def shuffled(cases: Sequence[T], group: Callable[[T], Hashable], seed: int, round_: int) -> list[T]:
    """The cases of one round in seeded random order, those of a group together.

    A group shares its inputs: keeping it together makes them once a round, and its cases are those that are
    compared with each other.
    """
    rng = random.Random(f"{seed}/{round_}")
    groups: dict[Hashable, list[T]] = {}
    for case in cases:
        groups.setdefault(group(case), []).append(case)
    order = list(groups.values())
    rng.shuffle(order)
    for members in order:
        rng.shuffle(members)
    return [case for members in order for case in members]
