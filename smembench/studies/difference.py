"""Difference between two cases of one run, by the rule of ``stats.differs``."""

from __future__ import annotations

from smembench.stats.differs import Effect, differs, evidence_of_medians
from smembench.stats.noise import Evidence
from smembench.stats.summary import MIN_SAMPLES
from smembench.store.relations import UNSURE as UNSURE
from smembench.store.relations import Ratio as Ratio
from smembench.store.relations import evidence_between, unsure
from smembench.store.run import Run
from smembench.store.schema import Row


def difference(run: Run, base: Row, new: Row) -> Effect | None:
    """The effect of ``new`` against ``base``, from their samples if the run kept them, else from their medians.

    None if a case has no time, or too few samples to estimate the noise.
    """
    evidence = _evidence(run, base, new)
    return differs([evidence])[0] if evidence is not None else None


def _evidence(run: Run, base: Row, new: Row) -> Evidence | None:
    before, after = run.samples.get(base.case_id), run.samples.get(new.case_id)
    if before and after:
        return evidence_between(before, after, base.case.kind, new.case.kind)
    known = [(row.elapsed_ms, row.interval) for row in (base, new)]
    medians = [(median, width) for median, width in known if median is not None and width is not None]
    samples = min(base.samples, new.samples)
    if len(medians) < 2 or samples < MIN_SAMPLES:
        return None
    return evidence_of_medians(medians[0], medians[1], samples)


def comparable(*rows: Row) -> bool:
    """True if the ratio of the times is meaningful: no interval is known to be wider than ±20 %."""
    return not any(unsure(row.samples, row.interval) for row in rows)


def ratio(run: Run, base: Row, new: Row) -> Ratio | None:
    """Speed-up of ``new`` over ``base``; None without a time of both, and for times too uncertain for a ratio."""
    if base.elapsed_ms is None or new.elapsed_ms is None or not comparable(base, new):
        return None
    return Ratio.of(base.elapsed_ms / new.elapsed_ms, difference(run, base, new))


def tells_apart(run: Run, one: Row, other: Row) -> bool:
    """True if the times of two cases differ by more than the noise."""
    effect = difference(run, one, other)
    return effect is not None and effect.differs
