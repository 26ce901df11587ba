"""Whether two cases of one run differ, by the rule of ``stats.differs``."""

from __future__ import annotations

import math
from typing import NamedTuple

from smembench.model.hardware import EVENT_NOISE_MS
from smembench.stats.differs import Effect, differs, evidence, evidence_of_medians
from smembench.stats.noise import Evidence
from smembench.stats.summary import MIN_SAMPLES
from smembench.store.run import Run
from smembench.store.schema import Row

UNSURE = 0.2
"""Relative half-width of an interval beyond which a time makes no ratio."""


def difference(run: Run, base: Row, new: Row) -> Effect | None:
    """The effect of ``new`` against ``base``, from their samples if the run kept them, else from their medians.

    None if a case has no time, or too few samples to tell the noise.
    """
    found = _evidence(run, base, new)
    return differs([found])[0] if found is not None else None


def _evidence(run: Run, base: Row, new: Row) -> Evidence | None:
    before, after = run.samples.get(base.case_id), run.samples.get(new.case_id)
    if before and after:
        return evidence(before, after, EVENT_NOISE_MS if "cuda" in (base.case.kind, new.case.kind) else 0.0)
    known = [(row.elapsed_ms, row.interval) for row in (base, new)]
    medians = [(median, width) for median, width in known if median is not None and width is not None]
    samples = min(base.samples, new.samples)
    if len(medians) < 2 or samples < MIN_SAMPLES:
        return None
    return evidence_of_medians(medians[0], medians[1], samples)


def comparable(*rows: Row) -> bool:
    """Whether the ratio of times means anything: no interval is known to be wider than ±20 %."""
    return all(row.samples < MIN_SAMPLES or (row.interval or 0.0) <= UNSURE for row in rows)


class Ratio(NamedTuple):
    """How many times as fast a case is as another.

    Attributes:
        value: the ratio of their medians.
        within: half the width of its 95 % interval over rounds, relative; None if too few samples tell it.
        differs: whether the interval excludes 1.
    """

    value: float
    within: float | None = None
    differs: bool = False


def ratio(run: Run, base: Row, new: Row) -> Ratio | None:
    """How many times as fast ``new`` is as ``base``; None without a time of both, and for times that make no ratio."""
    if base.elapsed_ms is None or new.elapsed_ms is None or not comparable(base, new):
        return None
    value, effect = base.elapsed_ms / new.elapsed_ms, difference(run, base, new)
    return Ratio(value) if effect is None else Ratio(value, math.sqrt(effect.high / effect.low) - 1, effect.differs)


def tells_apart(run: Run, one: Row, other: Row) -> bool:
    """Whether the times of two cases differ by more than the noise."""
    effect = difference(run, one, other)
    return effect is not None and effect.differs
