"""Two sides of stored runs to verdicts."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from statistics import NormalDist, median
from typing import NamedTuple

import numpy as np

from smembench.model.errors import UsageError
from smembench.stats.differs import Effect
from smembench.stats.levels import Levels
from smembench.stats.noise import Floats, Noise, discovery_rates
from smembench.store.run import Run
from smembench.studies.compare.comparability import FACETS, environment
from smembench.studies.compare.pairing import ALONE, Pair, pair_up
from smembench.studies.compare.verdicts import CHANGED, RULES, CaseComparison, Comparison, Difference, Rules, Verdict

_DECIDED = (Verdict.SLOWER, Verdict.FASTER, Verdict.SAME)
_MORE = 3.0
"""A change must be larger by this factor than what nights that came and went have shown."""
_APART = 2.0
"""Half-widths of the interval within which the effects of two nights are of one level."""
_AS_MANY = 140
"""Cases for which the false discovery rate was chosen. Fewer are judged as if they were up to five times as many, so
that noise alone gives one comparison of a few cases in a hundred a false verdict."""
_OPEN = 10.0
"""Weight of a case that was off its level in the night before."""
_ONE_UNIT = (
    "with one time per side the noise is unknown: give runs of several rounds (not --quick) with their "
    "samples.csv, or several runs per side"
)


def compare_runs(
    base: Sequence[Run],
    new: Sequence[Run],
    rules: Rules = RULES,
    *,
    across: Collection[str] = (),
    beside: Sequence[Run] = (),
) -> Comparison:
    """Compare every case that both sides have.

    Args:
        base: one run or several, pooled.
        new: the same of the other side.
        across: which of ``comparability.FACETS`` may differ.
        beside: other runs of the same config on the same devices, oldest first: they show the variation between runs.

    Raises:
        UsageError: for an unknown name in ``across``, and a side without runs.
    """
    if unknown := set(across) - set(FACETS):
        raise UsageError(f"across {min(unknown)}: only {FACETS[0]} can be given; all else is compared across anyway")
    if not base or not new:
        raise UsageError("a comparison needs a run on each side")
    pairs, known = pair_up(base, new, across, beside)
    return compared(base, new, judge(pairs, rules, known), rules)


class Judged(NamedTuple):
    """A verdict for each pair, and by device the fraction, taken off each effect, that all its cases share."""

    cases: list[CaseComparison]
    shared: dict[str, float]


def compared(base: Sequence[Run], new: Sequence[Run], judged: Judged, rules: Rules) -> Comparison:
    """Verdicts with their context."""
    cases = judged.cases
    rows = [{row.case_id: row.case for run in runs for row in run.rows} for runs in (base, new)]
    paired = {case.case.id for case in cases}
    across = [case.case for case in cases if case.case.id not in rows[1]]
    others = {other.id: other for case in across if (other := case.by_other_engine)}
    engines = [", ".join(sorted({case.compiler for case in side})) for side in (across, others.values())]
    return Comparison(
        base=[run.id for run in base],
        new=[run.id for run in new],
        cases=sorted(cases, key=_rank),
        environment=[
            *([Difference("compiler", *engines)] if across else []),
            *environment([run.description for run in base], [run.description for run in new]),
        ],
        only_base=[case for case in rows[0] if case not in paired],
        only_new=[case for case in rows[1] if case not in paired and case not in others],
        threshold=rules.threshold,
        fdr=rules.fdr,
        confidence=rules.confidence,
        alone={case.case.kind: ALONE[case.case.kind] for case in cases if case.alone},
        shared=judged.shared,
    )


def smallest_seen(pairs: Sequence[Pair], rules: Rules, share: float) -> Floats:
    """By case with evidence: the change, in logarithms, detected with probability ``share`` if no other changed.

    What is measured is the change with noise. Even with the most that noise takes off it at that probability, it must
    reach what the verdict asks for (``judge``; for a single discovery Benjamini and Hochberg's bound is the rate over
    the number of cases).
    """
    with_evidence = [pair for pair in pairs if pair.evidence is not None]
    noise = Noise([pair.evidence for pair in with_evidence if pair.evidence is not None])
    asked = noise.critical(rules.fdr / max(_as_many(len(with_evidence)), 1), _least(with_evidence, rules))
    return np.maximum(asked, _MORE * np.array([pair.returned for pair in with_evidence])) + noise.rarely(1 - share)


def _as_many(cases: int) -> int:
    return max(cases, min(5 * cases, _AS_MANY))


def _least(pairs: Sequence[Pair], rules: Rules) -> Floats:
    return np.asarray(np.log1p([max(pair.least, rules.threshold) for pair in pairs]), dtype=np.float64)


def judge(pairs: Sequence[Pair], rules: Rules, known: Levels | None = None) -> Judged:
    """A verdict for each pair.

    A case is slower or faster if its true effect is beyond the threshold: noise around an effect of the threshold
    would hardly cause what was measured, at the false discovery rate over all cases, and nights that came and went
    have not caused as much. It is the same if its whole interval lies within the threshold. Anything else is ambiguous,
    and so is a case whose verdicts by time and by cycles (time × SM clock) contradict each other. But a case that is
    slower than runs whose noise is known stays so if the clock is the reason: a GPU whose clock is lower is slower. So
    does any for which a clock or power limit was changed.
    """
    with_evidence = [pair for pair in pairs if pair.evidence is not None]
    noise = Noise([pair.evidence for pair in with_evidence if pair.evidence is not None])
    half = noise.half_widths(rules.confidence)
    shared = _shared(pairs, known) if known is not None else {}
    effects = noise.effects - np.array([shared.get(pair.case.device, 0.0) for pair in with_evidence])
    in_cycles = effects + np.array([_clock_shift(pair) for pair in with_evidence])
    by_time = _effects(noise, effects, half, with_evidence, rules)
    judged = iter(zip(by_time, _effects(noise, in_cycles, half, with_evidence, rules), strict=True))
    cases = [
        _without_evidence(pair) if pair.evidence is None else _judged(pair, *next(judged), rules) for pair in pairs
    ]
    return Judged(cases, {device: math.expm1(by) for device, by in shared.items()})


def _shared(pairs: Sequence[Pair], known: Levels) -> dict[str, float]:
    """By device what all its cases share, as far as nights that differ by as much are no change."""
    effects: dict[str, list[float]] = {}
    limits: dict[str, float] = {}
    for pair, limit in zip(pairs, known.shared.tolist(), strict=True):
        if pair.evidence is not None and limit:
            effects.setdefault(pair.case.device, []).append(pair.evidence.effect)
            limits[pair.case.device] = limit
    together = {device: median(values) for device, values in effects.items()}
    return {device: by for device, by in together.items() if abs(by) <= limits[device]}


class _Weighed(NamedTuple):
    """An effect with its interval and p-value, its q-value, and why it is no change where noise does not say so."""

    effect: Effect
    q: float
    usual: str


def _effects(noise: Noise, effects: Floats, half: Floats, pairs: Sequence[Pair], rules: Rules) -> list[_Weighed]:
    """Each effect, weighed.

    A case that was off its level before is likelier to be so again: its p-value has more weight (Genovese, Roeder and
    Wasserman, False discovery control with p-value weighting, Biometrika 93, 2006).
    """
    p = noise.p_values(effects, _least(pairs, rules))
    weights = np.array([_OPEN if pair.open else 1.0 for pair in pairs])
    q = discovery_rates(np.minimum(p * weights.mean() / weights, 1.0)) if len(p) else p
    q = np.minimum(q * _as_many(len(p)) / max(len(p), 1), 1.0)
    return [
        _Weighed(
            Effect.of(effect, width, float(chance)),
            float(rate),
            _usual(pair, float(effect), float(width)) if rate <= rules.fdr else "",
        )
        for pair, effect, width, chance, rate in zip(pairs, effects, half, p, q, strict=True)
    ]


def _usual(pair: Pair, effect: float, width: float) -> str:
    """The reason why an effect is one that nights show without a change; "" if it is not."""
    if pair.habit is not None and (alternation := pair.habit.alternation(effect, _APART * width)):
        apart = f"{100 * math.expm1(abs(effect)):.1f} %"
        return (
            f"alternates between two levels {apart} apart, and was off its usual one on {alternation.off} of "
            f"{alternation.off + alternation.at} nights: reported once it stays off for {alternation.needed} nights"
        )
    if abs(effect) <= _MORE * pair.returned:
        off = f"{100 * math.expm1(pair.returned):.1f} %"
        return (
            f"cases of similar duration were {off} off on some nights and came back; only {_MORE:g} times that counts"
        )
    return ""


def _judged(pair: Pair, in_time: _Weighed, in_cycles: _Weighed, rules: Rules) -> CaseComparison:
    by_time, q, usual = in_time
    verdict, reason = _verdict(in_time, rules), ""
    hidden = _verdict(in_time._replace(usual=""), rules) is not verdict
    if verdict is Verdict.AMBIGUOUS:
        reason = usual or _why_ambiguous(by_time, rules)
    elif _clock_shift(pair) and _disagree(verdict, _verdict(in_cycles, rules)):
        slower = verdict is Verdict.SLOWER and (not pair.least or pair.clock_was_set)
        verdict = verdict if slower else Verdict.AMBIGUOUS
        reason = _clocks(pair, by_time, in_cycles.effect)
    noise = math.log(by_time.high / by_time.low) / 2 / NormalDist().inv_cdf((1 + rules.confidence) / 2)
    return CaseComparison(
        *(pair.case, verdict, reason, pair.base, pair.new),
        *(by_time.ratio, by_time.low, by_time.high, by_time.p, 1.0 if usual else q),
        noise=noise,
        chance=_chance(by_time.ratio, noise, rules),
        held_against=pair.runs,
        alone=pair.least > 0,
        open=pair.open,
        hidden=hidden,
        causes=pair.causes if verdict in CHANGED else (),
    )


def _chance(ratio: float, noise: float, rules: Rules) -> float:
    """The probability that a case is slower by more than the threshold, if any effect was as likely before."""
    beyond = math.log(ratio) - math.log1p(rules.threshold)
    return NormalDist().cdf(beyond / noise) if noise else float(beyond > 0)


def _without_evidence(pair: Pair) -> CaseComparison:
    """A pair without evidence: not comparable, or a single time on each side."""
    if pair.reason:
        comparison = CaseComparison(pair.case, Verdict.NOT_COMPARABLE, pair.reason, pair.base, pair.new)
        return replace(comparison, held_against=pair.runs, open=pair.open, other_device=pair.other_device)
    assert pair.base.elapsed_ms is not None
    assert pair.new.elapsed_ms is not None
    ratio = pair.new.elapsed_ms / pair.base.elapsed_ms
    return CaseComparison(pair.case, Verdict.AMBIGUOUS, _ONE_UNIT, pair.base, pair.new, ratio)


def _verdict(weighed: _Weighed, rules: Rules) -> Verdict:
    effect, q, usual = weighed
    most = 1 + rules.threshold
    if not usual and q <= rules.fdr and max(effect.ratio, 1 / effect.ratio) >= most:
        return Verdict.SLOWER if effect.ratio > 1 else Verdict.FASTER
    return Verdict.SAME if max(effect.high, 1 / effect.low) <= most else Verdict.AMBIGUOUS


def _why_ambiguous(effect: Effect, rules: Rules) -> str:
    if max(effect.low, 1 / effect.high) > 1 + rules.threshold:
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
    first = case.chance or 0.0 if case.verdict is Verdict.AMBIGUOUS else effect
    return list(Verdict).index(case.verdict), -first, case.case.id
