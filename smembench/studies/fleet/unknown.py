"""Limits of a verdict on a fleet, in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from smembench.model.groups import grouped
from smembench.stats.outliers import FEWEST, Outliers
from smembench.studies.compare.comparability import distrust
from smembench.studies.fleet.history import History
from smembench.studies.fleet.members import Fleet, Member
from smembench.studies.fleet.verdict import Group, Metric, Rules

_NAMED = 8
"""Devices or metrics that a sentence names."""
_BLIND = 0.05
"""A metric in which only a larger slowdown is detectable is worth a word."""
_FAR = 4.0
"""Standard errors by which two devices differ for sure."""


def unknown(
    fleet: Fleet, groups: Sequence[tuple[Group, Outliers]], past: Mapping[str, History], rules: Rules
) -> list[str]:
    """The sentences, of a whole device first."""
    return [
        *_silent(fleet, groups),
        *(f"{member.label}: {why}" for member in fleet.members if (why := _left_out(member, past))),
        *(sentence for group, outliers in groups for sentence in _of_group(group, outliers, past, rules)),
    ]


def _left_out(member: Member, past: Mapping[str, History]) -> str:
    return past[member.identity].left_out if member.identity in past else ""


def _silent(fleet: Fleet, groups: Sequence[tuple[Group, Outliers]]) -> Iterator[str]:
    judged = {member.identity for group, _ in groups for member in group.members}
    for member in fleet.members:
        if member.identity not in judged:
            yield f"{member.label}: {member.reason or _without_figures(member)}"


def _without_figures(member: Member) -> str:
    """The reason why a device whose run is complete has no figure to compare with others."""
    rows = member.run.rows if member.run else []
    reasons = [distrust(row.status, row.reason, None, row.cpu_waiting, verified=row.right) for row in rows]
    return f"none of its figures can be used: {max(reasons, key=reasons.count)}" if reasons else "nothing was measured"


def _of_group(group: Group, outliers: Outliers, past: Mapping[str, History], rules: Rules) -> Iterator[str]:
    what = group.model or "unknown model"
    if len(group.members) == 1:
        if not past.get(group.members[0].identity):
            yield f"{group.members[0].label}: the only {what} and no earlier runs: nothing tells whether it is slow"
        return
    if len(group.members) < FEWEST:
        yield from _of_two(group, past, rules)
        return
    yield from _two_groups(group, outliers)
    if blind := {one.name: one.limit for one in group.metrics if one.limit is not None and one.limit > _BLIND}:
        ends = [f"{100 * limit:.0f}" for limit in (min(blind.values()), max(blind.values()))]
        reach = " to ".join(dict.fromkeys(ends))
        yield (
            f"{what}: between {len(group.members)} devices {_some(list(blind))} vary so much that a "
            f"device less than {reach} % slower in one of them alone goes unreported"
        )


def _of_two(group: Group, past: Mapping[str, History], rules: Rules) -> Iterator[str]:
    """Two devices that differ beyond the threshold, unless their own earlier runs decide or one was not completed."""
    if all(past.get(member.identity) for member in group.members) or any(member.reason for member in group.members):
        return
    apart = sorted(((_apart(one), one) for one in group.metrics), key=lambda pair: -abs(pair[0]))
    differing = [(size, one) for size, one in apart if abs(size) > math.log1p(rules.threshold)]
    one, other = (member.label for member in group.members)
    if differing:
        size, worst = differing[0]
        slower, faster = (other, one) if size > 0 else (one, other)
        more = f", and in {len(differing) - 1} more metrics they differ" if len(differing) > 1 else ""
        yield (
            f"{slower} is {100 * math.expm1(abs(size)):.1f} % slower than {faster} in {worst.name}{more}: earlier "
            "runs of both would show which is normal"
        )
    else:
        yield f"{one} and {other} cannot be told apart: both may be slow; earlier runs or a third device would show it"


def _apart(one: Metric) -> float:
    """By how much the second of two devices is slower, in logarithms, less what noise may make of it."""
    first, second = one.figures
    if not (first and second):
        return 0.0
    size = math.log(second.centre_ms / first.centre_ms)
    noise = _FAR / 1.96 * math.hypot(first.row.interval or 0.0, second.row.interval or 0.0)
    return math.copysign(abs(size), size) if abs(size) > noise else 0.0


def _two_groups(group: Group, outliers: Outliers) -> Iterator[str]:
    """Groups of a similar number, by who is in the slower one."""
    apart_in = np.flatnonzero(outliers.slower.any(axis=1)).tolist()
    splits = grouped(apart_in, lambda row: tuple(np.flatnonzero(outliers.slower[row]).tolist()))
    for slower, rows in splits.items():
        apart = [
            float(np.nanmedian(values[list(slower)]) - np.nanmedian(np.delete(values, slower)))
            for values in outliers.distance[rows]
        ]
        yield (
            f"two groups in {_some([group.metrics[row].name for row in rows])}: {len(slower)} of {len(group.members)} "
            f"devices are {100 * math.expm1(max(apart)):.1f} % slower than the others, and either may be the normal "
            f"ones: {_some([group.members[place].label for place in slower])}"
        )


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
