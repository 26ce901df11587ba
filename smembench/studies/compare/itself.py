"""A/A: runs of one configuration compared with each other, where every verdict of a change is false."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, pairwise

import numpy as np
from pydantic import JsonValue, TypeAdapter

from smembench.model.errors import UsageError
from smembench.model.progress import Step, unseen
from smembench.store.run import Run
from smembench.studies.compare.comparison import judge, smallest_seen
from smembench.studies.compare.pairing import pair_up
from smembench.studies.compare.verdicts import CHANGED, RULES, CaseById, CaseComparison, Rules, Verdict

SEEN_IN = 0.95
"""Probability with which a slowdown must be called slower to count as seen, and the share of cases and of pairs."""
_CLASSES = (
    (0.0, ""),
    (0.01, "under 10 µs"),
    (0.03, "10 to 30 µs"),
    (0.3, "30 to 300 µs"),
    (30.0, "0.3 to 30 ms"),
    (math.inf, "above 30 ms"),
)
"""Classes of duration by their upper bound in ms, with their names."""
_THRESHOLDS = (0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5)
"""Thresholds to suggest."""


@dataclass(frozen=True, slots=True)
class SelfCase:
    """A case over all pairs of runs.

    ``pairs`` counts those in which it was comparable, ``false`` those with the verdict faster or slower, ``ambiguous``
    those with that verdict. ``largest`` is the largest ratio between two runs, 1 or more. ``seen`` is the smallest
    slowdown of this case alone, as a fraction, that is called slower with a probability of ``SEEN_IN`` at the noise of
    ``SEEN_IN`` of the pairs. Both are None if no pair shows the noise. ``reason`` says why a pair is not comparable;
    empty if all are.
    """

    case: CaseById
    pairs: int
    false: int
    ambiguous: int
    largest: float | None
    seen: float | None
    reason: str = ""
    elapsed_ms: float | None = None


@dataclass(frozen=True, slots=True)
class SelfComparison:
    """All pairs of several runs of one configuration.

    ``pairs_false`` counts the pairs with any false verdict, ``largest_false`` is the largest of them, as a fraction.
    ``cases`` are sorted by ``seen``, the largest first.
    """

    runs: Sequence[str]
    pairs: int
    pairs_false: int
    cases: Sequence[SelfCase]
    threshold: float
    fdr: float
    largest_false: float

    @property
    def judged(self) -> int:
        """The number of verdicts over all pairs."""
        return sum(case.pairs for case in self.cases)

    @property
    def false(self) -> int:
        """The number of verdicts of a change, all of them false."""
        return sum(case.false for case in self.cases)

    @property
    def classes(self) -> list[tuple[str, int, float]]:
        """By class of duration: its name, how many cases it has, and the slowdown seen in ``SEEN_IN`` of them."""
        rows = []
        for (above, _), (below, name) in pairwise(_CLASSES):
            seen = [
                case.seen
                for case in self.cases
                if case.seen is not None and case.elapsed_ms is not None and above <= case.elapsed_ms < below
            ]
            if seen:
                rows.append((name, len(seen), float(np.quantile(seen, SEEN_IN, method="higher"))))
        return rows

    @property
    def suggested(self) -> float | None:
        """A threshold, as a fraction, from what is seen; None if nothing could be judged or no threshold is enough.

        It is at least half of what noise adds to a threshold before a slowdown is seen, where that is least: a smaller
        one lets little more be seen, a much larger one hides what noise would not. No false verdict is beyond it.
        """
        if not self.classes:
            return None
        added = min(seen for _, _, seen in self.classes) - self.threshold
        least = max(added / 2, self.largest_false)
        return next((step for step in _THRESHOLDS if step > least), None)

    @property
    def data(self) -> dict[str, JsonValue]:
        """Plain data for JSON; cases by their ids."""
        fields = TypeAdapter(SelfComparison).dump_python(self, mode="json", by_alias=True)
        classes: list[JsonValue] = [
            {"duration": name, "cases": count, "seen": seen} for name, count, seen in self.classes
        ]
        fields["suggested"] = self.suggested
        return {**fields, "judged": self.judged, "false": self.false, "classes": classes}


def _case(cases: Sequence[CaseComparison], effects: Sequence[float], seen: Sequence[float]) -> SelfCase:
    """A case from its verdicts in all pairs, and from the effect and what is seen in those that show the noise."""
    judged = [case for case in cases if case.verdict is not Verdict.NOT_COMPARABLE]
    times = [case.base.elapsed_ms for case in judged if case.q is not None and case.base.elapsed_ms is not None]
    return SelfCase(
        cases[0].case,
        len(judged),
        false=sum(case.verdict in CHANGED for case in judged),
        ambiguous=sum(case.verdict is Verdict.AMBIGUOUS for case in judged),
        largest=math.exp(max(map(abs, effects))) if effects else None,
        seen=math.expm1(np.quantile(seen, SEEN_IN, method="higher")) if seen else None,
        reason=next((case.reason for case in cases if case.verdict is Verdict.NOT_COMPARABLE and case.reason), ""),
        elapsed_ms=times[-1] if times else None,
    )


def compare_with_itself(
    runs: Sequence[Run], rules: Rules = RULES, *, across: Collection[str] = (), step: Step = unseen
) -> SelfComparison:
    """Compare every two of several runs of one configuration, and find the slowdowns that would be detected.

    With three runs or more, all of them show the variation between runs. ``step`` is called before each pair.

    Raises:
        UsageError: for fewer than two runs.
    """
    if len(runs) < 2:
        raise UsageError("--aa: give 2 or more runs, better 10")
    verdicts = defaultdict[str, list[CaseComparison]](list)
    effects, seen = defaultdict[str, list[float]](list), defaultdict[str, list[float]](list)
    pairs = list(combinations(runs, 2))
    changes: list[list[float]] = []
    for number, (base, new) in enumerate(pairs, 1):
        step(f"{base.id}, {new.id}", number, len(pairs))
        paired, known = pair_up([base], [new], across, runs if len(runs) > 2 else ())
        judged = judge(paired, rules, known).cases
        for case in judged:
            verdicts[case.case.id].append(case)
        changes.append([abs(math.log(case.ratio)) for case in judged if case.verdict in CHANGED and case.ratio])
        with_evidence = [(pair.case.id, pair.evidence) for pair in paired if pair.evidence is not None]
        for (name, evidence), least in zip(with_evidence, smallest_seen(paired, rules, SEEN_IN).tolist(), strict=True):
            effects[name].append(evidence.effect)
            seen[name].append(least)
    cases = [_case(of_case, effects[name], seen[name]) for name, of_case in verdicts.items()]
    return SelfComparison(
        runs=[run.id for run in runs],
        pairs=len(pairs),
        pairs_false=sum(map(bool, changes)),
        cases=sorted(cases, key=lambda case: (-(case.seen or 0.0), case.case.id)),
        threshold=rules.threshold,
        fdr=rules.fdr,
        largest_false=math.expm1(max(chain.from_iterable(changes), default=0.0)),
    )
