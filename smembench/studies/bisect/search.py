"""Choose the next commits to measure and find those that made cases slower, as a function of what was measured.

Commits are numbered along the first parents, 0 the good one and the last the bad one. A round measures both ends and a
commit between, one after another in processes of their own, each process a unit. A commit is slower than another by the
rule of comparisons: its true effect is beyond the threshold, as far as the noise shows that all commits share. Where a
middle commit is slower than the one before it, and so is the one after it than the middle, both halves have a culprit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from smembench.stats.differs import Effect
from smembench.stats.noise import Evidence, Noise
from smembench.stats.summary import centre, centre_spread, variance
from smembench.studies.compare.verdicts import Rules

ROUNDS = 3
"""Rounds before a commit is judged."""
MOST = 12
"""Rounds of a commit after which what is ambiguous stays so."""
CERTAIN = 0.01
"""Largest probability that noise alone makes a commit slower; commits are looked at several times."""
_MOVED = 0.25
"""Share of the whole slowdown that an end may move before the machine counts as another."""

Times = Mapping[str, float]
"""Centres in ms by case, of one commit in one round."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Times of each commit in the order of its rounds, and the commits that cannot be measured."""

    count: int
    times: Mapping[int, Sequence[Times]] = field(default_factory=dict)
    skipped: frozenset[int] = frozenset()

    def rounds(self, commit: int) -> int:
        """The number of measurements of a commit."""
        return len(self.times.get(commit, ()))


@dataclass(frozen=True, slots=True)
class Result:
    """Result of a search.

    Attributes:
        culprits: each as the last commit before the slowdown and the first after it; any between cannot be measured.
        undecided: ranges, in the same way, of which the noise does not say where in them the slowdown is.
        refused: the reason for no result; "" if there is one.
        cases: the cases that are slower.
    """

    culprits: Sequence[tuple[int, int]] = ()
    undecided: Sequence[tuple[int, int]] = ()
    refused: str = ""
    cases: Sequence[str] = ()


def next_step(measured: Measured, rules: Rules) -> list[int] | Result:
    """The commits of the next round, or the result."""
    first, last = 0, measured.count - 1
    ends = min(measured.rounds(first), measured.rounds(last))
    if ends < ROUNDS:
        return [first, last]
    cases = slower_cases(measured, rules)
    if not cases:
        if ends < MOST:
            return [first, last]
        return Result(refused=f"the bad commit is not slower than the good one: {_limit(measured, rules)}")
    if refused := _drifted(measured, cases):
        return Result(refused=refused, cases=cases)
    ranges, culprits, undecided = [(first, last)], list[tuple[int, int]](), list[tuple[int, int]]()
    while ranges:
        low, high = ranges.pop(0)
        between = [commit for commit in range(low + 1, high) if commit not in measured.skipped]
        if not between:
            culprits.append((low, high))
            continue
        middle = _middle(between, measured)
        if measured.rounds(middle) < ROUNDS:
            return [first, middle, last]
        halves = [(low, middle), (middle, high)]
        slower = [half for half in halves if is_slower(measured, *half, cases, rules)]
        if measured.rounds(middle) < {0: MOST, 1: ROUNDS, 2: 2 * ROUNDS}[len(slower)]:  # two are rarer, so be surer
            return sorted({first, low, middle, high, last})
        ranges += slower
        undecided += [] if slower else [(low, high)]
    return Result(sorted(culprits), sorted(undecided), cases=cases)


def slower_cases(measured: Measured, rules: Rules) -> list[str]:
    """The cases in which the bad commit is slower than the good one."""
    first, last = 0, measured.count - 1
    every = measured.times[first][0] if measured.rounds(first) else {}
    return [case for case in every if is_slower(measured, first, last, [case], rules)]


def is_slower(measured: Measured, before: int, after: int, cases: Sequence[str], rules: Rules) -> bool:
    """True if a commit is slower than another, for the mean of the cases."""
    least = math.log1p(rules.threshold)
    difference = effect(measured, before, after, cases, rules, least)
    return difference.p <= CERTAIN and math.log(difference.ratio) >= least


def effect(
    measured: Measured, before: int, after: int, cases: Sequence[str], rules: Rules, least: float = 0.0
) -> Effect:
    """The ratio of two commits' times, the mean of the cases, with its interval; ``p`` is against ``least``."""
    noise = Noise([_evidence(measured, units(measured, before, cases), units(measured, after, cases), cases)])
    (width,), (p,) = noise.half_widths(rules.confidence), noise.p_values(least=least)
    return Effect.of(float(noise.effects[0]), float(width), float(p))


def _evidence(measured: Measured, base: Sequence[float], new: Sequence[float], cases: Sequence[str]) -> Evidence:
    """Two groups of units, with the variance that all commits show."""
    every = [np.log(units(measured, commit, cases)).tolist() for commit in measured.times]
    parts = [(variance(logs), len(logs) - 1) for logs in every if len(logs) > 1]
    freedom = sum(count for _, count in parts)
    return Evidence(
        effect=math.log(centre(new) / centre(base)),
        variance=sum(value * count for value, count in parts) / freedom,
        freedom=freedom,
        spread=centre_spread(len(base)) + centre_spread(len(new)),
    )


def units(measured: Measured, commit: int, cases: Sequence[str]) -> list[float]:
    """A commit's times, each the geometric mean of the cases."""
    return [math.exp(sum(math.log(times[case]) for case in cases) / len(cases)) for times in measured.times[commit]]


def _middle(between: Sequence[int], measured: Measured) -> int:
    """The middle one, or the nearest to it that was measured."""
    place = len(between) // 2
    known = [one for one, commit in enumerate(between) if measured.rounds(commit)]
    return between[min(known, key=lambda one: abs(one - place), default=place)]


def _drifted(measured: Measured, cases: Sequence[str]) -> str:
    """The reason why the ends no longer measure as at the start of the search; "" if they do."""
    ends = 0, measured.count - 1
    whole = math.log(centre(units(measured, ends[1], cases)) / centre(units(measured, ends[0], cases)))
    for commit, name in zip(ends, ("good", "bad"), strict=True):
        of_end = units(measured, commit, cases)
        if len(of_end) < 2 * ROUNDS:
            continue
        noise = Noise([_evidence(measured, of_end[:ROUNDS], of_end[-ROUNDS:], cases)])
        if noise.p_values(least=_MOVED * abs(whole))[0] <= CERTAIN:
            ratio = math.exp(float(noise.effects[0]))
            return f"the machine has changed: the {name} commit takes {ratio:.3f}× what it took when the search began"
    return ""


def _limit(measured: Measured, rules: Rules) -> str:
    """From which slowdown on one would have been called so, for the case that shows least noise."""
    least, limits = math.log1p(rules.threshold), []
    for case in measured.times[0][0]:
        good, bad = (units(measured, end, [case]) for end in (0, measured.count - 1))
        noise = Noise([_evidence(measured, good, bad, [case])])
        limits.append(float(noise.critical(CERTAIN, least)[0] + noise.rarely(0.05)[0]))
    return f"not decidable below {100 * math.expm1(min(limits)):.2g} % at this noise"
