"""Notes below a table of series: what changed and with what, what has no time, and what to do next."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote

from smembench.model.case import DEFAULT_COMPILER
from smembench.model.groups import grouped
from smembench.stats.changepoints import SHORTEST
from smembench.studies.accept import patterns_of
from smembench.studies.history.series import SHORTEST_SERIES, Newest, Series, Turn
from smembench.views.columns import some


def change_notes(series: Sequence[Series]) -> list[str]:
    """A line for all changes that begin with the same run, newest first; accepted ones apart."""
    by_night: dict[tuple[str, str], list[tuple[Series, Turn]]] = {}
    for one in series:
        for turn in one.turns:
            by_night.setdefault((turn.night.run_id, turn.accepted), []).append((one, turn))
    lines = []
    newest_first = sorted(by_night.items(), key=lambda item: item[1][0][1].night.started, reverse=True)
    for (run_id, reason), changes in newest_first:
        parts = []
        for word, sign in (("slower", 1), ("faster", -1)):
            group = [(one, turn) for one, turn in changes if (turn.change.ratio - 1) * sign > 0]
            if group:
                one, most = max(group, key=lambda pair: sign * pair[1].change.ratio)
                drift = ", gradually" if most.change.drift else ""
                parts.append(f"{len(group)} {word}, {short(one.case_id)} by {percent(most.change.ratio)}{drift}")
        changed = dict.fromkeys(what for _, turn in changes for what in turn.changed)
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
        notes.append(f"n of {SHORTEST_SERIES}: how many there are of the runs that it takes to detect a change")
    if few:
        notes.append(f"fewer than {SHORTEST} runs: {some([short(one.case_id) for one in few])}")
    return notes


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
