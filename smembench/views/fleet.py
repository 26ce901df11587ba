"""A fleet as tables: its metrics with a strip of all devices each, and its devices with their deviations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from smembench.model.groups import grouped
from smembench.model.text import number_of
from smembench.studies.fleet.members import Member, metric
from smembench.studies.fleet.verdict import Figure, Group, Metric, Slow, Verdict
from smembench.views.columns import milliseconds, some
from smembench.views.compare import namer
from smembench.views.fleet_strip import axis, reach, strip
from smembench.views.history_notes import percent
from smembench.views.sections import Section, table

_ALL, _MOST = 24, 16
"""Devices of which each has a line, and lines of a larger fleet."""
_METRICS = 10
"""Metrics that have a column in the table of devices."""
_REASONS = 3
"""Metrics that a line about a slow device names."""


@dataclass(frozen=True, slots=True)
class Point:
    """A device in a metric: how much slower than the group's median it is, as a fraction, and whether it is slow."""

    member: Member
    figure: Figure
    deviation: float
    slow: bool


def points(group: Group, verdict: Verdict) -> list[list[Point | None]]:
    """A list per metric with a point per device, in their orders; None for a device without a figure."""
    slow = {(one.member.identity, reason.metric) for one in verdict.slow for reason in one.reasons}
    return [
        [
            Point(member, figure, deviation(figure, one), (member.identity, one.name) in slow) if figure else None
            for member, figure in zip(group.members, one.figures, strict=True)
        ]
        for one in group.metrics
    ]


def deviation(figure: Figure, of: Metric) -> float:
    """A device's slowdown against the group's median, as a fraction."""
    return figure.fleet.size if figure.fleet else figure.centre_ms / of.median_ms - 1


def fleet_sections(verdict: Verdict, *, fine: bool) -> list[Section]:
    """Two tables for each model: its metrics, and its devices, the slowest first. One, if there is one device.

    Args:
        verdict: on the fleet.
        fine: whether the output can show the marks of strips.
    """
    names = metric_names(verdict)
    sections = []
    for group in verdict.groups:
        if len(group.members) == 1:
            sections.append(_alone(group, names))
        else:
            numbers = [str(number) for number in range(1, len(group.metrics) + 1)]
            sections += [_metrics(group, verdict, names, fine=fine), devices(group, verdict, numbers)]
    return sections


def headline(verdict: Verdict) -> str:
    """``8 GPUs on 2 hosts: 1 slow, 1 failed``."""
    members = verdict.fleet.members
    hosts = len({member.host for member in members})
    failed = sum(member.failed for member in members)
    figures = [figure for group in verdict.groups for one in group.metrics for figure in one.figures if figure]
    parts = [f"{len(verdict.slow) or 'none'} slow"]
    if len(verdict.uncompared) == len(members):
        parts = ["nothing to compare with"]
    elif not any(figure.fleet or figure.history for figure in figures):
        parts = ["compared with each other alone"]
    elif alone := sum(not member.failed for member in verdict.uncompared):
        parts.append(f"{alone} with nothing to compare with")
    parts += [f"{failed} failed"] if failed else []
    return f"{many(members)} on {number_of(hosts, 'host')}: {', '.join(parts)}"


def fleet_lines(verdict: Verdict) -> list[str]:
    """A line per slow device, then what failed and why, and what cannot be known."""
    names = metric_names(verdict)
    failures = _failed(verdict.fleet.members, names)
    lines = [f"slow: {_slow_line(one, names)}" for one in verdict.slow]
    lines += [f"failed: {some(labels, 'devices')}: {why}" for why, labels in failures.items()]
    known = {f"{member}: {why}" for why, labels in failures.items() for member in labels}
    lines += [f"unknown: {text}" for text in verdict.unknown if text not in known]
    for name, short in names.items():
        lines = [line.replace(name, short) for line in lines]
    return lines


def many(members: Sequence[Member]) -> str:
    """``8 GPUs``, ``1 CPU``."""
    kinds = {member.device.partition(":")[0] for member in members if member.device}
    what = {frozenset({"cuda"}): "GPU", frozenset({"cpu"}): "CPU"}.get(frozenset(kinds), "device")
    return number_of(len(members), what)


def share(value: float | None) -> str:
    """A fraction in percent; – if it is unknown."""
    return "–" if value is None else f"{100 * value:.2f} %"


def metric_names(verdict: Verdict) -> Mapping[str, str]:
    """The short name of each metric: its kernel, or that with what tells it from others of the kernel."""
    metrics = [one for group in verdict.groups for one in group.metrics]
    rows = {one.name: next(figure.row for figure in one.figures if figure) for one in metrics}
    cases = {name: replace(row.case, device="cuda:0") for name, row in rows.items()}
    alike = grouped(cases, lambda name: (cases[name].problem, cases[name].kernel))
    return {
        name: namer([cases[one] for one in group])(cases[name]) if len(group) > 1 else cases[name].kernel
        for group in alike.values()
        for name in group
    }


def _alone(group: Group, names: Mapping[str, str]) -> Section:
    """The times of a model's only device."""
    return table(
        f"{model(group)} · {group.members[0].label}",
        group.metrics,
        {"metric": lambda one: names[one.name], "elapsed ms": lambda one: milliseconds(one.median_ms)},
        words=("metric",),
    )


def model(group: Group) -> str:
    """The model of a group's devices as a heading names it."""
    return group.model or "unknown model"


def _metrics(group: Group, verdict: Verdict, names: Mapping[str, str], *, fine: bool) -> Section:
    """A line per metric: the strip of all devices, and the slowest by name."""
    there = [[point for point in line if point] for line in points(group, verdict)]
    end = reach([point.deviation for line in there for point in line])

    def drawn(place: int) -> str:
        return strip([one.deviation for one in there[place]], [one.slow for one in there[place]], end, fine=fine)

    def slow(place: int) -> str:
        """The slowest of the slow devices, and how many more there are."""
        slower = sorted((point for point in there[place] if point.slow), key=lambda point: -point.deviation)
        more = f" and {len(slower) - 1} more" if len(slower) > 1 else ""
        return slower[0].member.label + more if slower else ""

    return table(
        f"{model(group)} · {many(group.members)}",
        range(len(there)),
        {
            "": lambda place: str(place + 1),
            "metric": lambda place: names[group.metrics[place].name],
            "median\nms": lambda place: milliseconds(group.metrics[place].median_ms),
            "spread of\ndevices": lambda place: share(group.metrics[place].spread),
            axis(end): drawn,
            "slow": slow,
        },
        words=("metric", axis(end), "slow"),
        wide=("median\nms", "spread of\ndevices"),
    )


@dataclass(frozen=True, slots=True)
class _Line:
    """A device's line: its points by metric."""

    member: Member
    points: Sequence[Point | None]

    @property
    def slow_in(self) -> list[int]:
        """Places of the metrics in which it is slow."""
        return [place for place, point in enumerate(self.points) if point and point.slow]

    @property
    def order(self) -> tuple[bool, float]:
        """Slow ones first, then by the largest deviation."""
        return not self.slow_in, -max((point.deviation for point in self.points if point), default=0.0)


def devices(group: Group, verdict: Verdict, headings: Sequence[str], *, every: bool = False) -> Section:
    """A line per device, the slowest first; of a large fleet those that come first, or every one.

    Args:
        group: the devices of a model.
        verdict: on the fleet.
        headings: of the metrics.
        every: show all devices and all metrics.
    """
    by_device = zip(*points(group, verdict), strict=True)
    lines = [_Line(member, row) for member, row in zip(group.members, by_device, strict=True)]
    lines.sort(key=lambda line: line.order)
    shown = lines if every or len(lines) <= _ALL else lines[:_MOST]
    columns: dict[str, Callable[[_Line], str]] = {"device": lambda line: line.member.label}
    for place, heading in enumerate(headings if every else headings[:_METRICS]):
        columns[heading] = partial(_cell, place=place)
    columns["slow in"] = lambda line: ", ".join(headings[place] for place in line.slow_in)
    figures = [point.figure for line in lines for point in line.points if point]
    disturbed = sum(figure.row.disturbed for figure in figures)
    notes = [f"a GPU throttled or its host was busy: {disturbed} of {len(figures)} figures"] if disturbed else []
    if rest := lines[len(shown) :]:
        farthest = max((abs(point.deviation) for line in rest for point in line.points if point), default=0.0)
        others = many([line.member for line in rest])
        notes.append(f"and {others} more, all within ±{100 * farthest:.1f} %; --export FILE.csv has them")
    if len(columns) < len(headings) + 2:
        notes.append(f"{len(headings) - _METRICS} more metrics are in --export FILE.csv")
    rules = (
        f"Slow: over {100 * verdict.rules.threshold:g} % beyond normal variation, by a rule that names "
        f"{100 * verdict.rules.false_alarms:g} % of normal devices."
    )
    return table("Slower than the median of the model, in %", shown, columns, words=("device", "slow in")).below(
        sentence=rules, notes=notes
    )


def _cell(line: _Line, place: int) -> str:
    point = line.points[place]
    return "–" if point is None else f"{100 * point.deviation:+z.1f}"


def _slow_line(one: Slow, names: Mapping[str, str]) -> str:
    """A slow device: which it is, in what and how far, and what else was seen there."""
    uuid = f" {one.member.uuid}" if one.member.uuid else ""
    parts = [
        f"{names.get(reason.metric, reason.metric)} {percent(1 + reason.distance.size)} "
        f"({100 * reason.distance.low:+z.1f} to {100 * reason.distance.high:+z.1f}) against {reason.against}"
        for reason in one.reasons[:_REASONS]
    ]
    parts += [number_of(rest, "more metric")] if (rest := len(one.reasons) - _REASONS) > 0 else []
    return f"{one.member.label}{uuid}: {'; '.join([*parts, *one.seen])}"


def _failed(members: Sequence[Member], names: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
    """Labels of devices by what failed there: the device as a whole, or a case of it."""
    failures: dict[str, list[str]] = {}
    for member in members:
        if member.run is None or member.reason:
            failures.setdefault(member.reason or "nothing was measured", []).append(member.label)
        for row in member.run.failed if member.run else []:
            name = metric(row)
            failures.setdefault(f"{names.get(name, name)}: {row.status}: {row.reason}", []).append(member.label)
    return failures
