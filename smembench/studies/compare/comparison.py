"""Two sides of stored runs to verdicts."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from statistics import NormalDist

import numpy as np

from smembench.model.errors import UsageError
from smembench.stats.differs import Effect, differs
from smembench.stats.noise import discovery_rates
from smembench.store.run import Run
from smembench.studies.compare.comparability import environment
from smembench.studies.compare.pairing import Pair, by_case, pair_up
from smembench.studies.compare.verdicts import CONFIDENCE, FDR, THRESHOLD, CaseComparison, Comparison, Rules, Verdict

_DECIDED = (Verdict.SLOWER, Verdict.FASTER, Verdict.SAME)
_ONE_UNIT = (
    "with one time per side the noise is unknown: give runs of several rounds (not --quick) with their "
    "samples.csv, or several runs per side"
)


def compare_runs(
    base: Sequence[Run],
    new: Sequence[Run],
    *,
    threshold: float = THRESHOLD,
    fdr: float = FDR,
    confidence: float = CONFIDENCE,
    across: Collection[str] = (),
) -> Comparison:
    """Compare every case that both sides have.

    Args:
        base: one run or several, pooled.
        new: the same of the other side.
        threshold: the smallest effect that counts, as a fraction.
        fdr: the false discovery rate over the cases.
        confidence: of the intervals.
        across: names of ``comparability.FACETS`` that may differ.

    Raises:
        UsageError: for invalid rules, a side without runs, and samples that are not times.
    """
    rules = Rules(threshold, fdr, confidence)
    if not base or not new:
        raise UsageError("a comparison needs a run on each side")
    sides = [list(by_case(runs)) for runs in (base, new)]
    return Comparison(
        base=[run.id for run in base],
        new=[run.id for run in new],
        cases=sorted(judge(pair_up(base, new, across), rules), key=_rank),
        environment=environment([run.description for run in base], [run.description for run in new]),
        only_base=[case for case in sides[0] if case not in set(sides[1])],
        only_new=[case for case in sides[1] if case not in set(sides[0])],
        threshold=threshold,
        fdr=fdr,
        confidence=confidence,
    )


def judge(pairs: Sequence[Pair], rules: Rules) -> list[CaseComparison]:
    """A verdict for each pair.

    A case is slower or faster if its ratio is beyond the threshold and its difference is beyond the noise at the
    false discovery rate over all cases. It is the same if its whole interval lies within the threshold. Anything else
    is ambiguous, and so is a case whose verdicts by time and by cycles (time × SM clock) contradict each other.
    """
    known = [(pair, pair.evidence) for pair in pairs if pair.evidence is not None]
    by_time = differs([evidence for _, evidence in known], rules.confidence)
    shifted = [replace(evidence, effect=evidence.effect + _clock_shift(pair)) for pair, evidence in known]
    in_cycles = differs(shifted, rules.confidence)
    judged = iter(zip(by_time, _rates(by_time), in_cycles, _rates(in_cycles), strict=True))
    return [_without_evidence(pair) if pair.evidence is None else _judged(pair, *next(judged), rules) for pair in pairs]


def _rates(effects: Sequence[Effect]) -> list[float]:
    return [float(rate) for rate in discovery_rates(np.array([effect.p for effect in effects]))]


def _judged(pair: Pair, by_time: Effect, q: float, in_cycles: Effect, q_cycles: float, rules: Rules) -> CaseComparison:
    verdict, reason = _verdict(by_time, q, rules), ""
    if verdict is Verdict.AMBIGUOUS:
        reason = _why_ambiguous(by_time, rules)
    elif _disagree(verdict, _verdict(in_cycles, q_cycles, rules)):
        verdict, reason = Verdict.AMBIGUOUS, _clocks(pair, by_time, in_cycles)
    return CaseComparison(
        pair.case,
        verdict,
        reason,
        pair.base,
        pair.new,
        by_time.ratio,
        by_time.low,
        by_time.high,
        by_time.p,
        q,
        noise=math.log(by_time.high / by_time.low) / 2 / NormalDist().inv_cdf((1 + rules.confidence) / 2),
        held_against=pair.runs,
    )


def _without_evidence(pair: Pair) -> CaseComparison:
    """A pair without evidence: not comparable, or a single time on each side."""
    if pair.reason:
        return CaseComparison(pair.case, Verdict.NOT_COMPARABLE, pair.reason, pair.base, pair.new)
    assert pair.base.elapsed_ms is not None
    assert pair.new.elapsed_ms is not None
    ratio = pair.new.elapsed_ms / pair.base.elapsed_ms
    return CaseComparison(pair.case, Verdict.AMBIGUOUS, _ONE_UNIT, pair.base, pair.new, ratio)


def _verdict(effect: Effect, q: float, rules: Rules) -> Verdict:
    most = 1 + rules.threshold
    if q <= rules.fdr and max(effect.ratio, 1 / effect.ratio) >= most:
        return Verdict.SLOWER if effect.ratio > 1 else Verdict.FASTER
    return Verdict.SAME if max(effect.high, 1 / effect.low) <= most else Verdict.AMBIGUOUS


def _why_ambiguous(effect: Effect, rules: Rules) -> str:
    if max(effect.ratio, 1 / effect.ratio) >= 1 + rules.threshold:
        return "the difference may be noise: measure more rounds or runs"
    return f"the interval reaches beyond {100 * rules.threshold:g} %: measure more rounds or runs"


def _clock_shift(pair: Pair) -> float:
    """Logarithm of the new SM clock over the base's; 0 if one is unknown."""
    base, new = pair.base.sm_clock_mhz or 0.0, pair.new.sm_clock_mhz or 0.0
    return math.log(new / base) if min(base, new) > 0 else 0.0


def _disagree(by_time: Verdict, by_cycles: Verdict) -> bool:
    """A change by time must be one by cycles too; a case that is the same may be ambiguous by cycles."""
    return by_time is not by_cycles and (by_time is not Verdict.SAME or by_cycles in _DECIDED)


def _clocks(pair: Pair, by_time: Effect, in_cycles: Effect) -> str:
    return (
        f"the SM clock was {pair.base.sm_clock_mhz:g} MHz, then {pair.new.sm_clock_mhz:g} MHz: "
        f"{by_time.ratio:.3f}× in time, {in_cycles.ratio:.3f}× in cycles"
    )


def _rank(case: CaseComparison) -> tuple[int, float, str]:
    effect = abs(math.log(case.ratio)) if case.ratio else 0.0
    return list(Verdict).index(case.verdict), -effect, case.case.id
