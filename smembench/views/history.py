"""Series of many runs as tables with sparklines, and as plain data."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Any

from smembench.model.groups import grouped
from smembench.model.text import number_of
from smembench.stats.changepoints import SHORTEST
from smembench.store.run_folder import resume_command
from smembench.studies.history.read import Device, Night, Skipped
from smembench.studies.history.series import SHORTEST_SERIES, Newest, Series, Timeless, Turn
from smembench.views.columns import milliseconds
from smembench.views.export import Result
from smembench.views.history_notes import (
    change_notes,
    next_notes,
    percent,
    short,
    short_series_notes,
    timeless_notes,
    unusable_notes,
)
from smembench.views.sections import Section, table

_LEVELS = "▁▂▃▄▅▆▇█"
_WIDTH = 16
"""Characters of a sparkline."""
_DEVICES = 8
"""Devices of which each has a table; of more, those have one that changed."""
_FEW = 3
"""Lines, and reasons in a line, about folders that were skipped."""
_SPAN = 1.02
"""Smallest range of a sparkline, highest over lowest, so that noise does not look like a change."""


def sparkline(times: Sequence[float]) -> str:
    """Times as characters of eight heights, oldest first.

    Each character is the median of some runs, fewer for newer ones, so that recent runs show in a long history too.
    """
    count = min(len(times), _WIDTH)
    ages = [max(place, round(len(times) * (place / count) ** 2)) for place in range(count, -1, -1)]
    edges = [len(times) - age for age in ages]
    heights = [median(times[start:end]) for start, end in pairwise(edges)]
    low = min(heights)
    span = max(max(heights), low * _SPAN) - low
    return "".join(_LEVELS[min(int(len(_LEVELS) * (height - low) / span), len(_LEVELS) - 1)] for height in heights)


def series_names(series: Sequence[Series]) -> list[str]:
    """Each case's short name, with its device where there are several."""
    devices = grouped(series, lambda one: one.device)
    places = {device: place(device, group[0].nights) or device.id for device, group in devices.items()}
    often = Counter(places.values())
    labels = {device: text if often[text] == 1 else f"{text} {device.id}" for device, text in places.items()}
    return [short(one.case_id) + (f" on {labels[one.device]}" if len(devices) > 1 else "") for one in series]


def history_sections(series: Sequence[Series]) -> list[Section]:
    """A section for every device, in the order of its first series: a row per case, and a note for every change.

    Of many devices there is a table with a line each, and then a section for those that changed. In ``series`` the most
    important come first.
    """
    devices = grouped(series, lambda one: one.device)
    models = [device.model for device in devices]

    def section(device: Device) -> Section:
        """Named by its model; one of several of a model also by the host, the index there and the id."""
        group = devices[device]
        several = models.count(device.model) > 1
        more = [place(device, group[0].nights), device.id] if several else []
        return _section(" ".join(filter(None, (device.model, *more))), group)

    if len(devices) <= _DEVICES:
        return list(map(section, devices))
    changed = {device: group for device, group in devices.items() if any(one.turns for one in group)}
    return [_overview(len(devices), changed), *map(section, list(changed)[:_DEVICES])]


def left_out(nights: Sequence[Night], skipped: Sequence[Skipped]) -> list[str]:
    """Notes on what a history omits: unusable folders, unfinished runs, and devices that a run does not identify."""
    lines = [f"skipped {one.path}: {one.reason}" for one in skipped]
    if len(lines) > _FEW:
        often = Counter(re.split(";|, line |: '", one.reason)[0] for one in skipped).most_common(_FEW)
        reasons = ", ".join(f"{count} {reason}" for reason, count in often)
        which = f"the first of them {skipped[0].path}; --json lists all"
        lines = [f"skipped {number_of(len(skipped), 'folder')}: {reasons}; {which}"]
    if cut := [night.path for night in nights if not night.complete]:
        such = f"such as {cut[0]}; continue with: {resume_command(cut[0])}"
        lines.append(f"{number_of(len(cut), 'run')} not finished, of which what was measured is used, {such}")
    untold = [night.run_id for night in nights if not all(device.id for _, device in (*night.times, *night.unusable))]
    if untold:
        lines.append(
            f"left out of {number_of(len(untold), 'run')}, such as {untold[0]}: cases on a GPU or host that the run "
            "does not identify, so that it may be a different one each time"
        )
    return lines


def without_times(timeless: Sequence[Timeless], nights: Sequence[Night]) -> list[str]:
    """Notes on cases and devices without any time that can be compared."""
    return timeless_notes(timeless, nights, lambda device: place(device, nights) or device.model)


def no_series(timeless: Sequence[Timeless]) -> str:
    """The reason that no case has a series: the most frequent one for unusable times, or no run names its device."""
    if timeless:
        ((reason, _),) = Counter(one.reason for one in timeless).most_common(1)
        return f"no time can be compared with others: {reason}"
    return (
        "no run says on which device it was measured, so there is no series; two runs can be compared: "
        "smembench compare BASE NEW --across device"
    )


def _section(name: str, series: Sequence[Series]) -> Section:
    nights = runs_of(series)
    shown = [one for one in series if len(one.times) >= SHORTEST]
    few = [one for one in series if len(one.times) < SHORTEST]
    slower = [one for one in series if one.newest is Newest.SLOWER]
    return table(
        f"{name} · {number_of(len(nights), 'revision' if nights[0].revision else 'run')}, "
        f"{' to '.join(dict.fromkeys((_when(nights[0]), _when(nights[-1]))))}",
        shown,
        {
            "case": lambda one: short(one.case_id),
            "points" if nights[0].revision else "runs": lambda one: str(len(one.times)),
            "oldest to newest": lambda one: sparkline(one.times),
            "newest\nms": lambda one: milliseconds(one.times[-1]),
            "level\nms": lambda one: milliseconds(one.level),
            "changed": _changed,
            "since": _since,
        },
        words=("case", "oldest to newest", "since"),
        wide=("points", "runs", "since"),
    ).below(
        sentence=f"Unaccepted slowdowns: {len(slower)} of {number_of(len(series), 'case')}.",
        notes=[
            *change_notes(series),
            *unusable_notes(shown),
            *short_series_notes(shown, few),
            *next_notes(slower),
        ],
    )


def runs_of(series: Sequence[Series]) -> list[Night]:
    """The runs of series, oldest first. Those of several GPUs may have begun in the same second, and have one id."""
    nights = {id(night): night for one in series for night in one.nights}
    return sorted(nights.values(), key=lambda night: night.started)


def _overview(devices: int, changed: Mapping[Device, Sequence[Series]]) -> Section:
    """A line per device that changed, with its slower cases; the others of all ``devices`` are counted."""
    steady = devices - len(changed)
    return table(
        f"{number_of(devices, 'device')}, of which {len(changed)} changed",
        changed,
        {
            "device": lambda device: place(device, changed[device][0].nights) or device.id,
            "cases": lambda device: str(len(changed[device])),
            "slower": lambda device: str(sum(one.newest is Newest.SLOWER for one in changed[device])),
            "most": lambda device: _changed(changed[device][0]),
            "case": lambda device: short(changed[device][0].case_id),
            "since": lambda device: _since(changed[device][0]),
        },
        words=("device", "case", "since"),
    ).below(
        sentence=f"{number_of(steady, 'device')} did not change." if steady else "",
        notes=[f"tables of the first {_DEVICES} are below; --json has all"] if len(changed) > _DEVICES else [],
    )


def _changed(series: Series) -> str:
    if not series.turns:
        return "" if series.newest is Newest.SAME else f"{len(series.times)} of {SHORTEST_SERIES}"
    return f"({percent(series.ratio)})" if _shown_turn(series).accepted else percent(series.ratio)


def _since(series: Series) -> str:
    return _when(_shown_turn(series).night) if series.turns else ""


def _shown_turn(series: Series) -> Turn:
    """The change that its line is about."""
    return series.slowed or series.turns[-1]


def place(device: Device, nights: Sequence[Night]) -> str:
    """A device's place in the newest run that had it: ``node7 cuda:3``; "" if the run does not record it."""
    runs = [run.description for night in nights for run in night.runs or [night]]
    for run in reversed(runs):
        for info in run.devices:
            if run.identity(info.name) == device.id:
                return f"{run.host.name} {info.name}".strip() if run.host else info.name
    return ""


def _when(night: Night) -> str:
    return night.revision or f"{night.started:%Y-%m-%d}"


def result(
    nights: Sequence[Night], skipped: Sequence[Skipped], series: Sequence[Series], timeless: Sequence[Timeless]
) -> Result:
    """The tables; as CSV each case's time in each run, as JSON all of it."""
    return Result(
        sections=history_sections(series),
        data=lambda: history_data(nights, skipped, series, timeless),
        rows=lambda: [
            {
                "case_id": one.case_id,
                "device": one.device.model,
                "revision" if night.revision else "run_id": night.run_id,
                "elapsed_ms": time,
            }
            for one in series
            for night, time in zip(one.nights, one.times, strict=True)
        ],
    )


def history_data(
    nights: Sequence[Night],
    skipped: Sequence[Skipped],
    series: Sequence[Series],
    timeless: Sequence[Timeless] = (),
) -> dict[str, Any]:
    """All of it as plain data for JSON; times in ms, moments in ISO 8601."""
    return {
        "runs": [
            {"run_id": night.run_id, "started_at_utc": night.started.isoformat(), "complete": night.complete}
            for night in nights
        ],
        "skipped": [{"path": str(one.path), "reason": one.reason} for one in skipped],
        "without_times": [
            {"case_id": one.case_id, "device_id": one.device.id, "reason": one.reason} for one in timeless
        ],
        "series": [
            {
                "case_id": one.case_id,
                "device": one.device.model,
                "device_id": one.device.id,
                "place": place(one.device, one.nights) or None,
                "newest": one.newest.value,
                "newest_ms": one.times[-1],
                "level_ms": one.level,
                "unusable": one.unusable or None,
                "run_ids": [night.run_id for night in one.nights],
                "elapsed_ms": list(one.times),
                "changes": [
                    {
                        "run_id": turn.night.run_id,
                        "started_at_utc": turn.night.started.isoformat(),
                        "kind": "drift" if turn.change.drift else "step",
                        "before_ms": turn.change.before,
                        "after_ms": turn.change.after,
                        "ratio": turn.change.ratio,
                        "changed": list(turn.changed),
                        "accepted": turn.accepted or None,
                    }
                    for turn in one.turns
                ],
            }
            for one in series
        ],
    }
