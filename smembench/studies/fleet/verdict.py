"""Which devices of a fleet are slow: each against the others of its model, and against its own earlier runs.

Both questions are asked of every metric of every device, with one error rate over all of them: of the devices that are
named, at most the share ``Rules.fdr`` is expected to be named for nothing. How the rule was chosen and what it sees:
results/reference/notes/fleet.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from smembench.model.errors import FAILED, REGRESSION
from smembench.stats.noise import discovery_rates
from smembench.stats.outliers import Outliers, outliers
from smembench.stats.summary import centre_spread
from smembench.store.schema import Row
from smembench.studies.compare import Rules
from smembench.studies.compare.pairing import by_case
from smembench.studies.fleet.members import Fleet, Member, metric

RULES = Rules(threshold=0.01, fdr=0.005)
"""Defaults of a fleet's verdict."""


class Against(StrEnum):
    """What a device is slower than."""

    FLEET = "the fleet"
    HISTORY = "its own history"


@dataclass(frozen=True, slots=True)
class Distance:
    """How far a device is from what it is held against, as a fraction: 0.03 is 3 % slower, below 0 is faster.

    ``low`` and ``high`` are the 95 % interval that the noise of its own measurement leaves. ``q`` is the smallest
    false discovery rate, over the whole fleet, at which it counts as slow.
    """

    size: float
    low: float
    high: float
    q: float


@dataclass(frozen=True, slots=True)
class Figure:
    """One metric of one device.

    Attributes:
        row: what was measured, with the state of the device.
        fleet: distance to the median of its group; None in a group of fewer than three.
        history: distance to its own earlier runs; None without any.
    """

    row: Row
    fleet: Distance | None = None
    history: Distance | None = None


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric of a group.

    Attributes:
        name: as ``members.metric`` gives it.
        median_ms: over the group.
        spread: standard deviation between the group's devices as a fraction, whatever one in five does.
        figures: in the order of the group's members; None for a device without this figure.
    """

    name: str
    median_ms: float
    spread: float
    figures: Sequence[Figure | None]


@dataclass(frozen=True, slots=True)
class Group:
    """The devices of one model that have figures."""

    model: str
    members: Sequence[Member]
    metrics: Sequence[Metric]


@dataclass(frozen=True, slots=True)
class Reason:
    """A metric in which a device is slow."""

    metric: str
    against: Against
    distance: Distance


@dataclass(frozen=True, slots=True)
class Slow:
    """A slow device: why, the largest distance first, and what else was seen on it, such as a throttle reason."""

    member: Member
    reasons: Sequence[Reason]
    seen: Sequence[str]


@dataclass(frozen=True, slots=True)
class Verdict:
    """A fleet's verdict.

    Attributes:
        groups: by model, in the order of the fleet.
        slow: the slowest first.
        unknown: sentences on what cannot be known, such as which of two devices is the slow one.
        rules: the threshold and the error rate.
    """

    fleet: Fleet
    groups: Sequence[Group]
    slow: Sequence[Slow]
    unknown: Sequence[str]
    rules: Rules

    @property
    def exit_code(self) -> int:
        """3 if a device is slow, else 1 if one has no figures or a failed case, else 0."""
        if self.slow:
            return REGRESSION
        failed = any(member.reason or member.run is None or member.run.failed for member in self.fleet.members)
        return FAILED if failed else 0


def judge(fleet: Fleet, rules: Rules = RULES) -> Verdict:
    """The verdict on a fleet."""
    models = dict.fromkeys(member.model for member in fleet.members if _measured(member))
    groups = [
        _group(model, [member for member in fleet.members if member.model == model and _measured(member)], rules)
        for model in models
    ]
    groups = _with_rates(groups)
    slow = [found for group in groups for place in range(len(group.members)) if (found := _slow(group, place, rules))]
    unknown = [
        f"{member.label}: {member.reason or 'nothing was measured'}"
        for member in fleet.members
        if not _measured(member)
    ]
    return Verdict(fleet, groups, sorted(slow, key=lambda one: -one.reasons[0].distance.size), unknown, rules)


def _measured(member: Member) -> bool:
    return member.run is not None and any(row.ok for row in member.run.rows)


def _group(model: str, members: Sequence[Member], rules: Rules) -> Group:
    """The figures of one model's devices, and their distances; ``q`` is still the p-value."""
    timed = [
        {metric(item.row): item for items in by_case([member.run]).values() for item in items if item.row.ok}
        for member in members
        if member.run
    ]
    names = list(dict.fromkeys(name for found in timed for name in found))
    times = np.full((len(names), len(members)), math.nan)
    noise = np.zeros_like(times)
    for place, name in enumerate(names):
        for number, items in enumerate(timed):
            if name in items:
                item = items[name]
                times[place, number] = math.log(item.centre)
                noise[place, number] = math.sqrt(item.rounds[0] * centre_spread(len(item.units)))
    found = outliers(times, noise, math.log1p(rules.threshold))
    return Group(
        model,
        members,
        [
            Metric(
                name,
                float(np.exp(np.nanmedian(times[place]))),
                float(np.expm1(found.spread[place])),
                [
                    Figure(timed[number][name].row, _distance(found, noise[place, number], place, number))
                    if name in timed[number]
                    else None
                    for number in range(len(members))
                ],
            )
            for place, name in enumerate(names)
        ],
    )


def _distance(found: Outliers, noise: float, place: int, number: int) -> Distance | None:
    if math.isnan(p := float(found.p[place, number])):
        return None
    size, half = float(found.distance[place, number]), 1.96 * noise
    return Distance(math.expm1(size), math.expm1(size - half), math.expm1(size + half), p)


def _with_rates(groups: Sequence[Group]) -> list[Group]:
    """The same with q-values over all metrics of all devices."""
    judged = [
        distance
        for group in groups
        for one in group.metrics
        for figure in one.figures
        if figure
        for distance in (figure.fleet, figure.history)
        if distance
    ]
    rates = iter(discovery_rates(np.array([distance.q for distance in judged])).tolist() if judged else [])

    def rated(distance: Distance | None) -> Distance | None:
        return distance and Distance(distance.size, distance.low, distance.high, next(rates))

    return [
        Group(
            group.model,
            group.members,
            [
                Metric(
                    one.name,
                    one.median_ms,
                    one.spread,
                    [
                        figure and Figure(figure.row, rated(figure.fleet), rated(figure.history))
                        for figure in one.figures
                    ],
                )
                for one in group.metrics
            ],
        )
        for group in groups
    ]


def _slow(group: Group, place: int, rules: Rules) -> Slow | None:
    reasons = [
        Reason(one.name, against, distance)
        for one in group.metrics
        if (figure := one.figures[place])
        for against, distance in ((Against.FLEET, figure.fleet), (Against.HISTORY, figure.history))
        if distance and distance.q <= rules.fdr and distance.size >= rules.threshold
    ]
    reasons.sort(key=lambda reason: -reason.distance.size)
    return Slow(group.members[place], reasons, _seen(group, place)) if reasons else None


def _seen(group: Group, place: int) -> list[str]:
    """What else was seen on a device that the others do not show."""
    rows = [figure.row for one in group.metrics if (figure := one.figures[place])]
    reasons = sorted({row.throttle_reasons for row in rows if row.throttle_reasons not in (None, "none")}, key=str)
    return [f"the GPU throttled ({', '.join(map(str, reasons))})"] if reasons else []
