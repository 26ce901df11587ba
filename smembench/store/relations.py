"""Ratios of times, by one estimator, and those between the cases of a run: % of the ceiling, speed-ups."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from smembench.kernels.problems import PROBLEMS
from smembench.model.case import DEFAULT_COMPILER, Case
from smembench.model.hardware import EVENT_NOISE_MS
from smembench.model.measurement import Measurement
from smembench.stats.differs import Effect, Rounds, differs, evidence
from smembench.stats.noise import Evidence
from smembench.stats.summary import MIN_SAMPLES

UNSURE = 0.2
"""Relative half-width of an interval beyond which a time makes no ratio."""


class Ratio(NamedTuple):
    """Speed-up of a case over another.

    Attributes:
        value: the ratio of their medians.
        within: half the width of its 95 % interval over rounds, relative; None for too few samples.
        differs: whether the interval excludes 1.
    """

    value: float
    within: float | None = None
    differs: bool = False

    @classmethod
    def of(cls, value: float, effect: Effect | None) -> Ratio:
        """With the interval of the effect, None where it is unknown."""
        return cls(value) if effect is None else cls(value, math.sqrt(effect.high / effect.low) - 1, effect.differs)


def unsure(samples: int, interval: float | None) -> bool:
    """True if a time is too uncertain for a ratio: its interval is known, and wider than ±20 %."""
    return samples >= MIN_SAMPLES and (interval or 0.0) > UNSURE


def evidence_between(base: Rounds, new: Rounds, *kinds: str) -> Evidence | None:
    """Evidence of the difference between two cases, from their samples and kinds of device."""
    return evidence(base, new, EVENT_NOISE_MS if "cuda" in kinds else 0.0)


@dataclass(frozen=True, slots=True)
class Relations:
    """Ratios to other cases of the run; None if the other case is missing or did not succeed, or a time is unsure.

    Each has the ends of its 95 % interval, None for too few samples.

    Attributes:
        percent_of_copy: relative to the ceiling, such as memcpy, at the same size, dtype, device and cache mode.
        percent_of_copygmem: relative to copyGmem, at the same block as well.
        speedup_vs_naive: over naiveGmem or naive, at the same block as well.
        speedup_vs_cpu: over the CPU's baseline at the same size, dtype and cache mode.
    """

    percent_of_copy: float | None = None
    percent_of_copy_low: float | None = None
    percent_of_copy_high: float | None = None
    percent_of_copygmem: float | None = None
    percent_of_copygmem_low: float | None = None
    percent_of_copygmem_high: float | None = None
    speedup_vs_cpu: float | None = None
    speedup_vs_cpu_low: float | None = None
    speedup_vs_cpu_high: float | None = None
    speedup_vs_naive: float | None = None
    speedup_vs_naive_low: float | None = None
    speedup_vs_naive_high: float | None = None


def relate(measurements: Iterable[Measurement]) -> dict[Case, Relations]:
    """Relations of each measurement that has figures."""
    measured = {m.case: m for m in measurements if m.ok}

    def related(new: Measurement) -> Relations:
        values: dict[str, float] = {}
        for column, wanted in OTHERS.items():
            other = wanted(new.case)
            if other and other not in measured:  # a ceiling by the same compiler
                other = replace(other, compiler=new.case.compiler)
            if other not in measured or (ratio := _times_faster(measured[other], new)) is None:
                continue
            value = 100 * ratio.value if column in _PERCENT else ratio.value
            values[column] = value
            if ratio.within is not None:
                values |= {f"{column}_low": value / (1 + ratio.within), f"{column}_high": value * (1 + ratio.within)}
        return Relations(**values)

    return {case: related(one) for case, one in measured.items()}


def _times_faster(base: Measurement, new: Measurement) -> Ratio | None:
    """Speed-up of ``new`` over ``base``; None for times too uncertain for a ratio."""
    one, other = base.summary, new.summary
    if one is None or other is None or any(unsure(len(side.samples), side.uncertainty) for side in (base, new)):
        return None
    if base is new:
        return Ratio(1.0)
    basis = evidence_between(base.by_round, new.by_round, base.case.kind, new.case.kind)
    return Ratio.of(one.median / other.median, differs([basis])[0] if basis is not None else None)


def _peer(case: Case, kernel: str | None) -> Case | None:
    return None if kernel is None else replace(case, kernel=kernel, pad=None)


def _blockless(case: Case, kernel: str | None, device: str = "") -> Case | None:
    if kernel is None:
        return None
    return replace(case, kernel=kernel, device=device or case.device, block=None, pad=None, compiler=DEFAULT_COMPILER)


OTHERS: Mapping[str, Callable[[Case], Case | None]] = {
    "percent_of_copy": lambda case: _blockless(case, PROBLEMS[case.problem].ceiling_kernel),
    "percent_of_copygmem": lambda case: _peer(case, PROBLEMS[case.problem].copy_kernel),
    "speedup_vs_cpu": lambda case: _blockless(case, PROBLEMS[case.problem].cpu_kernel, device="cpu"),
    "speedup_vs_naive": lambda case: _peer(case, PROBLEMS[case.problem].naive_kernel),
}
"""By column of cases.csv, the case that a case is compared with; None if its problem has none."""
_PERCENT = ("percent_of_copy", "percent_of_copygmem")
