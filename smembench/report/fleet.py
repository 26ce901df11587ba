"""The report of a fleet: who is slow, a strip plot and a table of devices for each model, and their state."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from smembench.report.contents import Chapter, Report, Topic
from smembench.report.figures.fleet import deviations
from smembench.report.headline import Headline
from smembench.studies.fleet.members import Member
from smembench.studies.fleet.verdict import Group, Verdict
from smembench.views.columns import value
from smembench.views.fleet import devices, fleet_lines, headline, metric_names, model
from smembench.views.sections import Section, table

_SENTENCES = 3
"""Findings on the first screen."""


def fleet_contents(verdict: Verdict) -> Report:
    """The report of a fleet."""
    lines = fleet_lines(verdict)
    names = metric_names(verdict)
    groups = [group for group in verdict.groups if len(group.members) > 1]
    charts = [deviations(group, verdict, names) for group in groups]
    runs = [member.run for member in verdict.fleet.members if member.run]
    days = sorted({f"{run.began:%Y-%m-%d}" for run in runs})
    configs = dict.fromkeys(run.description.config.name for run in runs)
    top = Headline(
        headline(verdict),
        " · ".join([*configs, " to ".join(dict.fromkeys([*days[:1], *days[-1:]]))]),
        lines[:_SENTENCES],
        next(iter(charts), None),
    )
    chapters = [Chapter("All findings", [Topic("All findings", lines)])] if lines[_SENTENCES:] else []
    for group, chart in zip(groups, charts, strict=True):
        headings = [names[one.name] for one in group.metrics]
        tables = [chart.data, devices(group, verdict, headings, every=True)]
        below = [chart] if chart is not top.chart else []
        chapters.append(Chapter(model(group), [Topic(model(group), (), tables, below)]))
    chapters.append(Chapter("Devices", [Topic("Devices", (), [_states(verdict.groups)])]))
    return Report(top, chapters)


def _states(groups: Sequence[Group]) -> Section:
    """A line per device: what it is, and the worst of its states beside its figures."""
    members = [member for group in groups for member in group.members]
    columns: dict[str, Callable[[Member], str]] = {
        "device": lambda member: member.label,
        "model": lambda member: member.model,
        "UUID": lambda member: member.uuid or "",
        "driver": lambda member: (member.info.driver if member.info else None) or "",
        "SM MHz": lambda member: f"{min(values):.0f}" if (values := _known(member, "sm_clock_mhz")) else "",
        "°C": lambda member: f"{max(values):.0f}" if (values := _known(member, "temperature_c")) else "",
        "W": lambda member: f"{max(values):.0f}" if (values := _known(member, "power_w")) else "",
        "throttled": _throttled,
        "ECC errors": _errors,
        "PCIe": lambda member: _of(member, "pcie_generation", "pcie_generation_max"),
        "lanes": lambda member: _of(member, "pcie_width", "pcie_width_max"),
        "NVLinks": lambda member: _of(member, "nvlinks_up", "nvlinks"),
    }
    return table(
        "Devices, and their state during the run",
        members,
        {name: text for name, text in columns.items() if any(map(text, members))},
        words=("device", "model", "UUID", "driver", "throttled", "ECC errors", "PCIe", "lanes", "NVLinks"),
    )


def _known(member: Member, column: str) -> list[float]:
    readings = [value(row, column) for row in (member.run.rows if member.run else ())]
    return [known for known in readings if known is not None]


def _throttled(member: Member) -> str:
    """The reasons, in any case."""
    reasons = {row.throttle_reasons for row in (member.run.rows if member.run else ())}
    return ", ".join(sorted(reason for reason in reasons if reason not in (None, "none")))


def _errors(member: Member) -> str:
    """``2 corrected, 1 not``."""
    corrected = max(_known(member, "ecc_corrected"), default=None)
    uncorrected = max(_known(member, "ecc_uncorrected"), default=None)
    return "" if corrected is None or uncorrected is None else f"{corrected:.0f} corrected, {uncorrected:.0f} not"


def _of(member: Member, now: str, most: str) -> str:
    """``8 of 16``: the least of the run, of what there is."""
    known = _known(member, now)
    limit = getattr(member.info, most) if member.info else None
    return "" if not known else f"{min(known):.0f} of {limit}" if limit else f"{min(known):.0f}"
