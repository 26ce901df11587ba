"""Samples of one trial, taken while the device is undisturbed, and the order of a round's cases."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TypeVar

from smembench.devices.base import Sampler
from smembench.model.measurement import Conditions

_BATCH_SECONDS = 0.05
"""Samples between two looks at the device's state."""
_DISCARDS_PER_SAMPLE = 2
"""How many disturbed samples are thrown away for each one wanted, before one is kept and marked."""

_UNKNOWN = Conditions()

T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Batch:
    """Samples of one trial in ms, the states seen around them, and the samples that were thrown away."""

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
