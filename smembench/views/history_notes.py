"""Notes below a table of series: what changed and with what, what has no time, and what to do next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from shlex import quote

from smembench.model.case import DEFAULT_COMPILER
from smembench.model.groups import grouped
from smembench.model.text import number_of
from smembench.stats.changepoints import SHORTEST
from smembench.studies.accept import patterns_of
from smembench.studies.history.read import Device, Night
from smembench.studies.history.series import SHORTEST_SERIES, Newest, Series, Timeless, Turn
from smembench.views.columns import some

_REASONS = 3
"""Reasons that are named."""


def change_notes(series: Sequence[Series]) -> list[str]:
    """A line for all changes that begin with the same run, newest first; accepted ones apart.

    What changed with them is that of the cases which are named.
    """
    by_night: dict[tuple[str, str], list[tuple[Series, Turn]]] = {}
    for one in series:
        for turn in one.turns:
            by_night.setdefault((turn.night.run_id, turn.accepted), []).append((one, turn))
    lines = []
    newest_first = sorted(by_night.items(), key=lambda item: item[1][0][1].night.started, reverse=True)
    for (run_id, reason), changes in newest_first:
        parts, changed = [], dict[str, None]()
        for word, sign in (("slower", 1), ("faster", -1)):
            group = [(one, turn) for one, turn in changes if (turn.change.ratio - 1) * sign > 0]
            if group:
                one, most = max(group, key=lambda pair: sign * pair[1].change.ratio)
                drift = ", gradually" if most.change.drift else ""
                parts.append(f"{len(group)} {word}, {short(one.case_id)} by {percent(most.change.ratio)}{drift}")
                changed |= dict.fromkeys(most.changed)
        if not all(turn.change.drift for _, turn in changes):
            parts.append("; ".join(changed) if changed else "driver, clocks, versions and code unchanged")
        lines.append("; ".join([f"{run_id}: {parts[0]}", *parts[1:], *([f"accepted: {reason}"] if reason else [])]))
    return lines


def unusable_notes(series: Sequence[Series]) -> list[str]:
    """Each reason once for which cases have no time in their newest run."""
    by_reason = grouped((one for one in series if one.unusable), lambda one: one.unusable)
    return [
        f"{some([short(one.case_id) for one in group])}: no time from the newest run: {reason}"
        for reason, group in by_reason.items()
    ]


def short_series_notes(shown: Sequence[Series], few: Sequence[Series]) -> list[str]:
    """Notes on the number of runs that a change takes, and on cases with too few for a line."""
    notes = []
    if any(one.newest is Newest.SHORT for one in shown):
        notes.append(f"n of {SHORTEST_SERIES}: runs so far, of those needed to detect a change")
    for reason, group in grouped(few, lambda one: max(one.missed, key=one.missed.__getitem__, default="")).items():
        names = some([short(one.case_id) for one in group])
        runs = number_of(max(sum(one.missed.values()) for one in group), "run")
        mostly = ", mostly" if any(len(one.missed) > 1 for one in group) else ""
        why = f"fewer than {SHORTEST} times to compare: {names}; no such time from {runs}{mostly}: {reason}"
        notes.append(why if reason else f"fewer than {SHORTEST} runs: {names}")
    return notes


def timeless_notes(timeless: Sequence[Timeless], nights: Sequence[Night], name: Callable[[Device], str]) -> list[str]:
    """Notes on cases without a time in any run, by reason; the ``name`` of a device stands for all of its cases."""
    usable = {device for night in nights for _, device in night.times}
    several = len(usable | {one.device for one in timeless}) > 1
    reasons: dict[tuple[str, str], dict[str, None]] = {}
    for case_id, device, reason in timeless:
        case = short(case_id) + (f" on {name(device)}" if several else "")
        key, text = (("cases", reason), case) if device in usable else (("devices", reason), name(device))
        reasons.setdefault(key, {})[text] = None
    most = sorted(reasons.items(), key=lambda pair: -len(pair[1]))
    lines = [f"no time can be compared of {some(list(names), what)}: {reason}" for (what, reason), names in most]
    more = f"no time can be compared of more, for {len(lines) - _REASONS} other reasons: --json lists all"
    return lines if len(lines) <= _REASONS + 1 else [*lines[:_REASONS], more]


def next_notes(slower: Sequence[Series]) -> list[str]:
    """Next steps for slower cases."""
    if not slower:
        return []
    newest = slower[0].nights[-1]
    every = {case_id for case_id, _ in (*newest.times, *newest.unusable)}
    patterns = patterns_of([one.case_id for one in slower], every)
    lines = [
        f"if that is intended: smembench accept {quote(str(newest.path))} --case {quote(patterns[0])} --reason TEXT"
    ]
    return lines + ([f"and the same for {some(patterns[1:])}"] if len(patterns) > 1 else [])


def short(case_id: str) -> str:
    """A case's id without its problem and device, and without the default compiler and cache mode."""
    parts = case_id.split("/")
    kept = [part for place, part in enumerate(parts) if place not in (0, 2) and part not in (DEFAULT_COMPILER, "warm")]
    return " ".join(kept) if len(parts) > 2 else case_id


def percent(ratio: float) -> str:
    """A ratio as a change: ``+4.1 %``."""
    return f"{100 * (ratio - 1):+z.1f} %"
