"""A fleet as tables: its metrics with a strip of all devices each, and its devices with their deviations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from smembench.store.schema import Row
from smembench.studies.fleet.members import Member, metric
from smembench.studies.fleet.verdict import Figure, Group, Metric, Slow, Verdict
from smembench.views.columns import milliseconds, some
from smembench.views.compare import namer
from smembench.views.fleet_strip import axis, reach, strip
from smembench.views.history import percent
from smembench.views.sections import Section, grouped, table

_ALL, _MOST = 24, 16
"""Devices of which each has a line, and lines of a larger fleet."""
_METRICS = 10
"""Metrics that have a column in the table of devices."""
_REASONS = 3
"""Metrics that a line about a slow device names."""


def fleet_sections(verdict: Verdict, *, fine: bool) -> list[Section]:
    """Two tables for each model: its metrics, and its devices, the slowest first. One, if there is one device.

    Args:
        verdict: on the fleet.
        fine: whether the output can show the marks of strips.
    """
    slow = {one.member.identity: one for one in verdict.slow}
    names = metric_names(verdict)
    return [
        section
        for group in verdict.groups
        for section in (
            [_metrics(group, slow, names, fine=fine), _devices(group, slow, verdict)]
            if len(group.members) > 1
            else [_alone(group, names)]
        )
    ]


def headline(verdict: Verdict) -> str:
    """``8 GPUs on 2 hosts: 1 slow, 1 failed``."""
    members = verdict.fleet.members
    hosts = len({member.host for member in members})
    failed = sum(member.run is None or bool(member.reason or member.run.failed) for member in members)
    figures = [figure for group in verdict.groups for one in group.metrics for figure in one.figures if figure]
    known = any(figure.fleet or figure.history for figure in figures)
    said = [f"{len(verdict.slow) or 'none'} slow" if known else "nothing to compare with"]
    said += [f"{failed} failed"] if failed else []
    return f"{many(members)} on {hosts} host{'s' * (hosts != 1)}: {', '.join(said)}"


def fleet_lines(verdict: Verdict) -> list[str]:
    """A line per slow device, then what failed and why, and what cannot be known."""
    names = metric_names(verdict)
    told = _failed(verdict.fleet.members, names)
    lines = [f"slow: {_said(one, names)}" for one in verdict.slow]
    lines += [f"failed: {some(those, 'devices')}: {why}" for why, those in told.items()]
    known = {f"{member}: {why}" for why, those in told.items() for member in those}
    return [*lines, *(f"unknown: {text}" for text in verdict.unknown if text not in known)]


def many(members: Sequence[Member]) -> str:
    """``8 GPUs``, ``1 CPU``."""
    kinds = {member.device.partition(":")[0] for member in members if member.device}
    what = {frozenset({"cuda"}): "GPU", frozenset({"cpu"}): "CPU"}.get(frozenset(kinds), "device")
    return f"{len(members)} {what}{'s' * (len(members) != 1)}"


def deviation(figure: Figure, of: Metric) -> float:
    """How much slower than the group's median a device is, as a fraction."""
    return figure.fleet.size if figure.fleet else (figure.row.elapsed_ms or of.median_ms) / of.median_ms - 1


def metric_names(verdict: Verdict) -> Mapping[str, str]:
    """The short name of each metric: its kernel, or that with what tells it from others of the kernel."""
    rows = {one.name: _row(one) for group in verdict.groups for one in group.metrics}
    cases = {name: replace(row.case, device="cuda:0") for name, row in rows.items()}
    often = Counter((case.problem, case.kernel) for case in cases.values())
    full = namer(list(cases.values()))
    return {name: full(case) if often[case.problem, case.kernel] > 1 else case.kernel for name, case in cases.items()}


def _row(one: Metric) -> Row:
    return next(figure.row for figure in one.figures if figure)


@dataclass(frozen=True, slots=True)
class _Line:
    """A device's line: its deviations by metric, and the numbers of the metrics in which it is slow."""

    member: Member
    deviations: Sequence[float | None]
    slow_in: Sequence[int]

    @property
    def order(self) -> tuple[bool, float]:
        """Slow ones first, then by the largest deviation."""
        return not self.slow_in, -max((one for one in self.deviations if one is not None), default=0.0)


def _metrics(group: Group, slow: Mapping[str, Slow], names: Mapping[str, str], *, fine: bool) -> Section:
    """A line per metric: the strip of all devices, and the slowest by name."""
    there = {one.name: [deviation(figure, one) for figure in one.figures if figure] for one in group.metrics}
    end = reach([value for values in there.values() for value in values])

    def slow_here(one: Metric) -> list[Member]:
        found = [
            (figure, member)
            for figure, member in zip(one.figures, group.members, strict=True)
            if figure and one.name in _metrics_of(slow.get(member.identity))
        ]
        return [member for _, member in sorted(found, key=lambda pair: -deviation(pair[0], one))]

    def drawn(one: Metric) -> str:
        bad = [
            one.name in _metrics_of(slow.get(member.identity))
            for figure, member in zip(one.figures, group.members, strict=True)
            if figure
        ]
        return strip(there[one.name], bad, end, fine=fine)

    def named(one: Metric) -> str:
        first, *others = [member.label for member in slow_here(one)] or [""]
        return f"{first} and {len(others)} more" if others else first

    number = {one.name: str(place) for place, one in enumerate(group.metrics, 1)}
    columns: dict[str, Callable[[Metric], str]] = {
        "": lambda one: number[one.name],
        "metric": lambda one: names[one.name],
        "median\nms": lambda one: milliseconds(one.median_ms),
        "spread": lambda one: "–" if one.spread is None else f"{100 * one.spread:.2f} %",
        axis(end): drawn,
        "slow": named,
    }
    return table(
        f"{group.model or 'unknown model'} · {many(group.members)}",
        group.metrics,
        columns,
        words=("metric", axis(end), "slow"),
        wide=("median\nms", "spread"),
    )


def _alone(group: Group, names: Mapping[str, str]) -> Section:
    """The times of a model's only device."""
    return table(
        f"{group.model or 'unknown model'} · {group.members[0].label}",
        group.metrics,
        {"metric": lambda one: names[one.name], "elapsed ms": lambda one: milliseconds(one.median_ms)},
        words=("metric",),
    )


def _metrics_of(slow: Slow | None) -> set[str]:
    """The metrics in which a device is slow."""
    return {reason.metric for reason in slow.reasons} if slow else set()


def _devices(group: Group, slow: Mapping[str, Slow], verdict: Verdict) -> Section:
    """A line per device, of a large fleet the farthest; the columns are the numbers of metrics."""
    lines = []
    for place, member in enumerate(group.members):
        figures = [(one.figures[place], one) for one in group.metrics]
        bad = _metrics_of(slow.get(member.identity))
        lines.append(
            _Line(
                member,
                [deviation(figure, one) if figure else None for figure, one in figures],
                [number for number, one in enumerate(group.metrics, 1) if one.name in bad],
            )
        )
    lines.sort(key=lambda line: line.order)
    shown = lines if len(lines) <= _ALL else lines[:_MOST]
    columns: dict[str, Callable[[_Line], str]] = {"device": lambda line: line.member.label}
    columns |= {str(number): partial(_cell, number=number) for number in range(1, len(group.metrics) + 1)[:_METRICS]}
    columns["slow in"] = lambda line: ", ".join(map(str, line.slow_in))
    notes = []
    if rest := lines[len(shown) :]:
        farthest = max((abs(one) for line in rest for one in line.deviations if one is not None), default=0.0)
        others = many([line.member for line in rest])
        notes.append(f"and {others} more, all within ±{100 * farthest:.1f} %; --csv has them")
    if len(group.metrics) > _METRICS:
        notes.append(f"{len(group.metrics) - _METRICS} more metrics are in --csv")
    return table(
        "Slower than the median of the model, in %",
        shown,
        columns,
        words=("device", "slow in"),
        sentence=_rules(verdict),
        notes=notes,
    )


def _cell(line: _Line, number: int) -> str:
    one = line.deviations[number - 1]
    return "–" if one is None else f"{100 * one:+.1f}"


def _rules(verdict: Verdict) -> str:
    rules = verdict.rules
    return (
        f"Slow: over {100 * rules.threshold:g} % beyond normal variation, by a rule that names "
        f"{100 * rules.false_alarms:g} % of normal devices."
    )


def _said(one: Slow, names: Mapping[str, str]) -> str:
    """A slow device: which it is, in what and how far, and what else was seen there."""
    uuid = f" {one.member.info.uuid}" if one.member.info and one.member.info.uuid else ""
    said = [
        f"{names.get(reason.metric, reason.metric)} {percent(1 + reason.distance.size)} "
        f"({100 * reason.distance.low:+.1f} to {100 * reason.distance.high:+.1f}) against {reason.against}"
        for reason in one.reasons[:_REASONS]
    ]
    said += [f"{rest} more metric{'s' * (rest > 1)}"] if (rest := len(one.reasons) - _REASONS) > 0 else []
    return f"{one.member.label}{uuid}: {'; '.join([*said, *one.seen])}"


def _failed(members: Sequence[Member], names: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
    """Labels of devices by what failed there: the device as a whole, or a case of it."""
    found = []
    for member in members:
        if member.run is None or member.reason:
            found.append((member.reason or "nothing was measured", member.label))
        rows = member.run.failed if member.run else []
        found += [(f"{names.get(name := metric(row), name)}: {row.status}: {row.reason}", member.label) for row in rows]
    return {why: [label for _, label in those] for why, those in grouped(found, lambda one: one[0]).items()}
