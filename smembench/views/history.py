"""Series of many runs as tables with sparklines, and as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import Any

from smembench.model.case import DEFAULT_COMPILER
from smembench.stats.changepoints import SHORTEST
from smembench.studies.history.read import Device, Night, Skipped
from smembench.studies.history.series import Newest, Series, Turn
from smembench.views.columns import Column, milliseconds
from smembench.views.sections import Section

LEVELS = "▁▂▃▄▅▆▇█"
_ASCII_LEVELS = "_.-=+*%@"
_WIDTH = 16
"""Characters of a sparkline."""
_SPAN = 1.02
"""Smallest range of a sparkline, highest over lowest, so that noise does not look like a change."""


def sparkline(times: Sequence[float], *, fine: bool, width: int = _WIDTH) -> str:
    """Times as characters of eight heights, oldest first, in blocks or in ASCII.

    Each character is the median of some runs, fewer for newer ones, so that recent runs show in a long history too.
    """
    count = min(len(times), width)
    ages = [max(place, round(len(times) * (place / count) ** 2)) for place in range(count, -1, -1)]
    edges = [len(times) - age for age in ages]
    heights = [median(times[start:end]) for start, end in pairwise(edges)]
    low = min(heights)
    span = max(max(heights), low * _SPAN) - low
    signs = LEVELS if fine else _ASCII_LEVELS
    return "".join(signs[min(int(len(signs) * (height - low) / span), len(signs) - 1)] for height in heights)


def history_sections(series: Sequence[Series], *, fine: bool) -> list[Section]:
    """A section for every device, in the order of its first series: a row per case, and a note for every change.

    Args:
        series: the most important first.
        fine: whether the output can show blocks.
    """
    devices: dict[Device, list[Series]] = {}
    for one in series:
        devices.setdefault(one.device, []).append(one)
    models = [device.model for device in devices]
    return [
        _section(_name(device, several=models.count(device.model) > 1), found, fine=fine)
        for device, found in devices.items()
    ]


def _section(name: str, series: Sequence[Series], *, fine: bool) -> Section:
    nights = sorted({night.run_id: night for one in series for night in one.nights}.values(), key=lambda n: n.started)
    columns = [
        Column("case", numeric=False),
        Column("runs", wide=True),
        Column("oldest to newest", numeric=False),
        Column("ms now"),
        Column("changed"),
        Column("since", numeric=False),
    ]
    slower = sum(one.newest is Newest.SLOWER for one in series)
    return Section(
        heading=f"{name} · {len(nights)} runs, {_day(nights[0])} to {_day(nights[-1])}",
        columns=columns,
        cells=[_line(one, fine=fine) for one in series],
        sentence=f"Slower in the newest stretch than in the one before: {slower} of {len(series)} cases.",
        notes=[*_changes(series), *_unknown(series)],
    )


def _line(series: Series, *, fine: bool) -> list[str]:
    line = [short(series.case_id), str(len(series.times)), sparkline(series.times, fine=fine)]
    line.append(milliseconds(series.level))
    if not series.turns:
        return [*line, "" if series.newest is Newest.SAME else "?", ""]
    last = series.turns[-1]
    return [*line, percent(last.change.ratio), _day(last.night)]


def _changes(series: Sequence[Series]) -> list[str]:
    """A line for all changes that begin with the same run, newest first."""
    by_night: dict[str, list[tuple[Series, Turn]]] = {}
    for one in series:
        for turn in one.turns:
            by_night.setdefault(turn.night.run_id, []).append((one, turn))
    lines = []
    for run_id, found in sorted(by_night.items(), key=lambda item: item[1][0][1].night.started, reverse=True):
        said = []
        for word, sign in (("slower", 1), ("faster", -1)):
            those = [(one, turn) for one, turn in found if (turn.change.ratio - 1) * sign > 0]
            if those:
                one, most = max(those, key=lambda pair: sign * pair[1].change.ratio)
                drift = ", gradually" if most.change.drift else ""
                said.append(f"{len(those)} {word}, {short(one.case_id)} by {percent(most.change.ratio)}{drift}")
        changed = dict.fromkeys(what for _, turn in found for what in turn.changed)
        if not all(turn.change.drift for _, turn in found):
            said.append("; ".join(changed) if changed else "no difference in run.json")
        lines.append(f"{run_id}: {'; '.join(said)}")
    return lines


def _unknown(series: Sequence[Series]) -> list[str]:
    notes = [f"{short(one.case_id)}: {one.failed} in its newest run" for one in series if one.failed]
    if any(one.newest is Newest.SHORT for one in series):
        notes.append(f"?: fewer than {2 * SHORTEST} runs, too few to compare")
    return notes


def short(case_id: str) -> str:
    """A case's id without its problem and device, and without the default compiler and cache mode."""
    parts = case_id.split("/")
    kept = [part for place, part in enumerate(parts) if place not in (0, 2) and part not in (DEFAULT_COMPILER, "warm")]
    return " ".join(kept) if len(parts) > 2 else case_id


def percent(ratio: float) -> str:
    """A ratio as a change: ``+4.1 %``."""
    return f"{100 * (ratio - 1):+.1f} %"


def _name(device: Device, *, several: bool) -> str:
    return f"{device.model} {device.id or 'without a UUID'}" if several else device.model


def _day(night: Night) -> str:
    return f"{night.started:%Y-%m-%d}"


def history_data(nights: Sequence[Night], skipped: Sequence[Skipped], series: Sequence[Series]) -> dict[str, Any]:
    """All of it as plain data for JSON; times in ms, moments in ISO 8601."""
    return {
        "runs": [{"run_id": night.run_id, "started_at_utc": night.started.isoformat()} for night in nights],
        "skipped": [{"path": str(one.path), "reason": one.reason} for one in skipped],
        "series": [
            {
                "case_id": one.case_id,
                "device": one.device.model,
                "device_id": one.device.id,
                "newest": one.newest.value,
                "level_ms": one.level,
                "failed": one.failed or None,
                "run_ids": [night.run_id for night in one.nights],
                "elapsed_ms": list(one.times),
                "changes": [_turn_data(turn) for turn in one.turns],
            }
            for one in series
        ],
    }


def _turn_data(turn: Turn) -> dict[str, Any]:
    return {
        "run_id": turn.night.run_id,
        "started_at_utc": turn.night.started.isoformat(),
        "kind": "drift" if turn.change.drift else "step",
        "before_ms": turn.change.before,
        "after_ms": turn.change.after,
        "ratio": turn.change.ratio,
        "changed": list(turn.changed),
    }
