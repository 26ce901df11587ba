"""Judge a fleet: each device against the others of its model, and against its own earlier runs.

Both questions are asked of every metric of every device. A device's p-values are adjusted together (Benjamini and
Hochberg), so one rate holds for all: the share of normal devices that is named. How the rule was chosen, and what it
finds: results/reference/notes/fleet.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from smembench.model.hardware import EVENT_NOISE_MS
from smembench.stats.noise import Floats, discovery_rates
from smembench.stats.outliers import FEWEST, Outliers, outliers
from smembench.stats.summary import centre_spread
from smembench.studies.compare.comparability import SM_CLOCK, distrust
from smembench.studies.compare.pairing import Timed
from smembench.studies.fleet.history import History, history
from smembench.studies.fleet.members import Fleet, Member, metric
from smembench.studies.fleet.seen import seen
from smembench.studies.fleet.unknown import unknown
from smembench.studies.fleet.verdict import (
    RULES,
    Against,
    Distance,
    Figure,
    Group,
    Metric,
    Reason,
    Rules,
    Slow,
    Verdict,
)

_HALF = 1.96
"""Half the width of a 95 % interval, in standard errors."""


def judge(fleet: Fleet, before: Mapping[str, Sequence[Member]] | None = None, rules: Rules = RULES) -> Verdict:
    """The verdict on a fleet.

    Args:
        fleet: its members.
        before: by identity what its members were in earlier runs, oldest first (``history.earlier``).
        rules: the threshold and the error rate.
    """
    timed = {member.identity: items for member in fleet.members if (items := _timed(member))}
    past = {
        member.identity: history(member, before[member.identity], rules)
        for member in fleet.members
        if before and member.identity in before and member.identity in timed
    }
    pairs = []
    for model in dict.fromkeys(member.model for member in fleet.members if member.identity in timed):
        members = [member for member in fleet.members if member.model == model and member.identity in timed]
        pairs.append(_group(model, members, timed, past, rules))
    groups = [group for group, _ in pairs]
    slow = [one for group in groups for place in range(len(group.members)) if (one := _slow(group, place, past, rules))]
    return Verdict(
        fleet,
        groups,
        sorted(slow, key=lambda one: -one.reasons[0].distance.size),
        unknown(fleet, pairs, past, rules),
        rules,
    )


def _timed(member: Member) -> dict[str, Timed]:
    """Times to compare with other devices: a throttled device is slow, one that waited for cores is left out."""
    if member.run is None:
        return {}
    return {
        metric(row): Timed(member.run, row, "")
        for row in member.run.rows
        if row.elapsed_ms and not distrust(row.status, row.reason, None, row.cpu_waiting, verified=row.right)
    }


def _group(
    model: str,
    members: Sequence[Member],
    timed: Mapping[str, Mapping[str, Timed]],
    past: Mapping[str, History],
    rules: Rules,
) -> tuple[Group, Outliers]:
    """The devices of one model, and what is known of each metric."""
    names = list(dict.fromkeys(chain.from_iterable(timed[member.identity] for member in members)))
    times, noise = _arrays(names, [timed[member.identity] for member in members])
    own = [past[member.identity].distances if member.identity in past else {} for member in members]
    questions = len(names) * max((len(members) >= FEWEST) + any(map(bool, own)), 1)
    result = outliers(times, noise, math.log1p(rules.threshold), rules.false_alarms / questions)
    figures = [
        _figures(
            [timed[member.identity].get(name) for name in names],
            [_distance(result, noise, row, column) for row in range(len(names))],
            [own[column].get(name) for name in names],
        )
        for column, member in enumerate(members)
    ]
    medians = np.exp(np.nanmedian(times, axis=1)).tolist()
    spreads, limits = map(_known, result.spread), map(_known, result.limit)
    metrics = [Metric(*one) for one in zip(names, medians, spreads, limits, zip(*figures, strict=True), strict=True)]
    return Group(model, members, metrics), result


def _figures(
    items: Sequence[Timed | None], fleet: Sequence[Distance | None], history: Sequence[Distance | None]
) -> list[Figure | None]:
    """A device's figures, with the p-values of all its tests adjusted together."""
    tests = _adjusted([one if item else None for item, one in zip([*items, *items], [*fleet, *history], strict=True)])
    both = zip(tests[: len(items)], tests[len(items) :], strict=True)
    return [Figure(item.row, item.centre, *sizes) if item else None for item, sizes in zip(items, both, strict=True)]


def _adjusted(tests: Sequence[Distance | None]) -> list[Distance | None]:
    rates = iter(discovery_rates(np.array([one.p for one in tests if one])).tolist())
    return [replace(one, p=next(rates)) if one else None for one in tests]


def _arrays(names: Sequence[str], timed: Sequence[Mapping[str, Timed]]) -> tuple[Floats, Floats]:
    """Logarithms of the times and their standard errors, shape (metrics, members); NaN where there is none."""
    times = np.full((len(names), len(timed)), math.nan)
    noise = np.zeros_like(times)
    for row, name in enumerate(names):
        for column, items in enumerate(timed):
            if (item := items.get(name)) is not None:
                times[row, column] = math.log(item.centre)
                noise[row, column] = _noise(item)
    return times, noise


def _noise(item: Timed) -> float:
    """The standard error of a time's logarithm: from its rounds, of one round from the interval of its samples."""
    clock = EVENT_NOISE_MS / item.centre if item.row.case.kind == "cuda" else 0.0
    alone = (item.row.precision or 0.0) / _HALF if len(item.units) == 1 else 0.0
    return max(math.sqrt(item.rounds[0]), clock, alone) * math.sqrt(centre_spread(len(item.units)))


def _known(value: float) -> float | None:
    return None if math.isnan(value) else math.expm1(value)


def _distance(result: Outliers, noise: Floats, row: int, column: int) -> Distance | None:
    if math.isnan(p := float(result.p[row, column])):
        return None
    size, half = float(result.distance[row, column]), _HALF * float(noise[row, column])
    return Distance(math.expm1(size), math.expm1(size - half), math.expm1(size + half), p)


def _slow(group: Group, place: int, past: Mapping[str, History], rules: Rules) -> Slow | None:
    member = group.members[place]
    reasons = [
        Reason(one.name, against, distance)
        for one in group.metrics
        if (figure := one.figures[place])
        for against, distance in ((Against.FLEET, figure.fleet), (Against.HISTORY, figure.history))
        if distance and distance.p <= rules.false_alarms and distance.size >= rules.threshold
    ]
    reasons.sort(key=lambda reason: -reason.distance.size)
    changed = [
        str(cause)
        for reason in reasons
        if reason.against is Against.HISTORY
        for cause in past[member.identity].causes[reason.metric]
        if cause.what != SM_CLOCK  # which is reported beside the others'
    ]
    return Slow(member, reasons, [*dict.fromkeys(changed), *seen(group, place)]) if reasons else None
