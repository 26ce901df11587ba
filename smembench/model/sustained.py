"""A load of seconds: the time per launch at its beginning and at its end, and the energy per launch, with intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from smembench.model.ranges import Count, Milliseconds, Ratio, Reading, WholeReading
from smembench.stats.summary import student, variance

BURST_SECONDS, STEADY_SHARE = 1.0, 1 / 3
_PARTS = 5
_ENERGY_SECONDS = 1.0
"""Least duration of a part whose energy is read: counters change every 20 to 100 ms."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A batch of launches back to back, and the GPU's state at its end.

    Attributes:
        seconds: from the load's beginning to the batch's end.
        launches, elapsed_ms: their number, and ms per launch.
        energy_j: that the GPU took from the load's beginning on.
    """

    seconds: Ratio
    launches: Count
    elapsed_ms: Milliseconds
    sm_clock_mhz: WholeReading | None = None
    temperature_c: WholeReading | None = None
    power_w: Reading | None = None
    energy_j: Reading | None = None


@dataclass(frozen=True, slots=True)
class Sustained:
    """Figures of a load; None where there are too few batches, or NVML counts no energy.

    Attributes:
        burst_ms, steady_ms: per launch, in the first second and the last third.
        energy_mj: per launch, in the last third.
        burst_uncertainty, steady_uncertainty, energy_uncertainty: half-widths of their 95 % intervals, relative:
            Student's, over five parts, of energy over parts of at least 1 s.
    """

    burst_ms: float | None = None
    burst_uncertainty: float | None = None
    steady_ms: float | None = None
    steady_uncertainty: float | None = None
    energy_mj: float | None = None
    energy_uncertainty: float | None = None

    @classmethod
    def of(cls, moments: Sequence[Moment]) -> Sustained:
        """The figures of all batches of a load."""
        if not moments:
            return cls()
        begin = moments[-1].seconds * (1 - STEADY_SHARE)
        burst = [moment for moment in moments if moment.seconds <= BURST_SECONDS] or [*moments[:1]]
        before = [moment for moment in moments[:-1] if moment.seconds <= begin]
        steady = moments[len(before) :]
        parts = math.floor((moments[-1].seconds - (before[-1].seconds if before else 0)) / _ENERGY_SECONDS)
        energies = [_energy_mj(part) for part in _parts([*before[-1:], *steady], max(parts, 1), shared=1)]
        known = [energy for energy in energies if energy is not None]
        return cls(
            *_centred([_ms(part) for part in _parts(burst, _PARTS)]),
            *_centred([_ms(part) for part in _parts(steady, _PARTS)]),
            *(_centred(known) if before and len(known) == len(energies) else (None, None)),
        )


def _parts(moments: Sequence[Moment], count: int, *, shared: int = 0) -> list[Sequence[Moment]]:
    """About equal parts in a row, as many as there are moments at most; neighbours share ``shared`` moments."""
    whole = len(moments) - shared
    count = max(min(count, whole), 1)
    return [moments[whole * part // count : whole * (part + 1) // count + shared] for part in range(count)]


def _ms(moments: Sequence[Moment]) -> float:
    launches = sum(moment.launches for moment in moments)
    return sum(moment.launches * moment.elapsed_ms for moment in moments) / launches


def _energy_mj(moments: Sequence[Moment]) -> float | None:
    """Energy per launch after the first moment; None without a counter, or if it does not advance."""
    first, *others = moments
    if first.energy_j is None or not others or (last := others[-1].energy_j) is None or last <= first.energy_j:
        return None
    return 1000 * (last - first.energy_j) / sum(moment.launches for moment in others)


def _centred(values: Sequence[float]) -> tuple[float, float | None]:
    """The mean and the relative half-width of its 95 % interval; None of a single value."""
    mean, count = sum(values) / len(values), len(values)
    return mean, student(count - 1) * math.sqrt(variance(values) / count) / mean if count > 1 else None
