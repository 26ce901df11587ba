"""Samples of a trial, taken while the device is undisturbed, and the order of the cases in a round."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TypeVar

from smembench.devices.base import Sampler
from smembench.model.groups import grouped
from smembench.model.measurement import Conditions

BATCH_SECONDS = 0.05
"""Sampling time between two readings of the device's state."""
_DISCARDS_PER_SAMPLE = 2
"""Most disturbed samples to discard per requested sample; later ones are kept and marked."""

_UNKNOWN = Conditions()

T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Batch:
    """Samples of a trial in ms, the device's states, the discarded samples, and the seconds it took."""

    values: tuple[float, ...]
    states: tuple[Conditions, ...]
    discarded: tuple[float, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Limit:
    """End of sampling: after ``count`` samples, or once ``seconds`` have passed or ``stopped`` returns True."""

    count: int
    seconds: float
    stopped: Callable[[], bool] = lambda: False
    clock: Callable[[], float] = perf_counter

    def late(self, begun: float) -> bool:
        """True if sampling that began at this time of the clock has to end."""
        return self.clock() - begun >= self.seconds or self.stopped()


def collect(
    sampler: Sampler, limit: Limit, observe: Callable[[], Conditions] = Conditions, before: Conditions = _UNKNOWN
) -> Batch:
    """Take samples up to a limit, but at least one.

    The device's state is read after each batch; ``before`` is its state before the first. If the device was throttled
    before or after a batch, or other processes used the cores, the batch is discarded and taken again. With no time
    left, or after too many discards, such a batch is kept, and its state shows why. So is one that met the power limit,
    which it would meet again, and be slower (results/reference/notes/timing.md).
    """
    values: list[float] = []
    states: list[Conditions] = []
    discarded: list[float] = []
    begun = limit.clock()
    while len(values) < limit.count and not (limit.stopped() and values):
        batch: list[float] = []
        batch_begun = limit.clock()
        while len(values) + len(batch) < limit.count:
            batch.append(sampler.take())
            if limit.clock() - batch_begun >= BATCH_SECONDS or limit.late(begun):
                break
        after = observe()
        state, before = _around(before, after), after
        late = limit.late(begun)
        passing = state.disturbed and not after.at_power_limit
        if passing and not late and len(discarded) < _DISCARDS_PER_SAMPLE * limit.count:
            discarded += batch
            continue
        values += batch
        states.append(state)
        if late:
            break
    return Batch(tuple(values), tuple(states), tuple(discarded), limit.clock() - begun)


def _around(before: Conditions, after: Conditions) -> Conditions:
    """The state of a batch: the state after it, with throttling before it included.

    Waiting for a core is counted since the previous reading, so only the reading after the batch is about the batch.
    """
    if after.throttled or not before.throttled:
        return after
    return replace(after, throttle_reasons=before.throttle_reasons)


def shuffled(cases: Sequence[T], group: Callable[[T], Hashable], seed: int, round_: int) -> list[T]:
    """The cases of a round in seeded random order, with each group kept together.

    A group shares its inputs, which are then made once per round, and its cases are compared with each other.
    """
    rng = random.Random(f"{seed}/{round_}")
    order = list(grouped(cases, group).values())
    rng.shuffle(order)
    for members in order:
        rng.shuffle(members)
    return [case for members in order for case in members]
