"""Series of cases over runs, where they changed, and what changed with them.

The rule is not that of a night (``nightly.last``). A night asks about one run: are cases slower than their level, by
the noise that all cases show together, from the medians of all rounds? A history asks about every run of years, drivers
and clocks included, from one median per run and the noise of each case alone. So it has to be surer of a change
(``stats.changepoints``), and needs at least three runs after it. A change that is small beside the noise of its case is
reported by the night at once, and by the history later or not at all. Of the twelve runs of results/reference/slowdown
the last four have a slower kernel: on the last a night names four cases, and the history three. The fourth, of 5 µs,
is 3.5 % slower, and twelve runs of one case do not rule out noise of 2.4 %.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from statistics import median
from typing import NamedTuple

from smembench.model.progress import Step, unseen
from smembench.stats.changepoints import SHORTEST, Change, changes
from smembench.stats.threshold import THRESHOLD
from smembench.studies.accept import Acceptance, newest_for
from smembench.studies.compare.comparability import NAMES, OF_ROWS, environment
from smembench.studies.history.read import Device, Night, Timed

SHORTEST_SERIES = 2 * SHORTEST
"""Runs needed to detect a change: two levels of ``SHORTEST``."""


class Newest(StrEnum):
    """Relation of a series' newest level to those before, in the order in which it matters."""

    SLOWER = "slower"
    FASTER = "faster"
    ACCEPTED = "accepted"
    SAME = "same"
    SHORT = "too few runs"


@dataclass(frozen=True, slots=True)
class Turn:
    """A change in one series: the first run after it, and what differs between it and the run before.

    ``changed`` is empty for a drift, which has no first run. ``accepted`` is the user's reason if the change is meant.
    """

    change: Change
    night: Night
    changed: Sequence[str]
    accepted: str = ""


@dataclass(frozen=True, slots=True)
class Series:
    """A case on one device over the runs in which its time can be compared, oldest first.

    ``case_id`` is that of the newest run, ``times`` are medians in ms, ``threshold`` is the smallest relative change of
    level. ``unusable`` says why the newest run that the case is in gives no such time; empty if it does. ``missed`` are
    the runs without such a time, by reason.
    """

    case_id: str
    device: Device
    nights: Sequence[Night]
    times: Sequence[float]
    turns: Sequence[Turn]
    threshold: float
    unusable: str = ""
    missed: Mapping[str, int] = field(default_factory=dict)

    @property
    def level(self) -> float:
        """The newest level in ms; the median of all runs if nothing changed."""
        return self.turns[-1].change.after if self.turns else median(self.times)

    @property
    def slowed(self) -> Turn | None:
        """The change that stays in the news: the series is still slower than before it, and nobody accepted that."""
        since = max((place for place, turn in enumerate(self.turns, 1) if turn.accepted), default=0)
        news = self.turns[since:]
        slower = [turn for turn in news if self.level >= turn.change.before * (1 + self.threshold)]
        slower += [turn for turn in news[-1:] if turn.change.ratio > 1]
        return min(slower, key=lambda turn: turn.change.before, default=None)

    @property
    def ratio(self) -> float:
        """The newest level over the one before the change that is reported; 1 if there is none."""
        turn = self.slowed or (self.turns[-1] if self.turns else None)
        return self.level / turn.change.before if turn else 1.0

    @property
    def newest(self) -> Newest:
        """Relation of the newest level to those before."""
        if not self.turns:
            return Newest.SAME if len(self.times) >= SHORTEST_SERIES else Newest.SHORT
        if self.slowed:
            return Newest.SLOWER
        if self.turns[-1].accepted:
            return Newest.ACCEPTED
        return Newest.FASTER if self.ratio < 1 else Newest.SAME


def series_of(
    nights: Sequence[Night],
    chosen: Iterable[str] | None = None,
    threshold: float = THRESHOLD,
    accepted: Sequence[Acceptance] = (),
    step: Step = unseen,
) -> list[Series]:
    """The series of every case and device, or of the chosen cases, the most important first.

    Each device has its own series, whatever its host calls it: a GPU may be cuda:0 in one run and cuda:1 in the next.
    Runs that do not say on which device they were measured are in none.

    Args:
        nights: oldest first.
        chosen: case ids; all when None.
        threshold: smallest relative change of level.
        accepted: the changes that are meant.
        step: called before each series.
    """
    wanted = None if chosen is None else set(chosen)
    times_of: dict[tuple[str, Device], list[tuple[int, Timed]]] = {}
    ids: dict[tuple[str, Device], dict[str, None]] = {}
    unusable: dict[tuple[str, Device], str] = {}
    missed: dict[tuple[str, Device], Counter[str]] = {}
    metric = cache(_metric)
    for place, night in enumerate(nights):
        for (case_id, device), timed in night.times.items():
            key = metric(case_id), device
            times_of.setdefault(key, []).append((place, timed))
            ids.setdefault(key, {})[case_id] = None
            unusable.pop(key, None)
        for (case_id, device), why in night.unusable.items():
            unusable[metric(case_id), device] = why
            missed.setdefault((metric(case_id), device), Counter())[why] += 1
    described = [[night.description] for night in nights]
    environments = cache(lambda before, after: tuple(map(str, environment(described[before], described[after]))))

    def turns_of(
        key: tuple[str, Device], where: Sequence[int], states: Sequence[Timed], times: Sequence[float]
    ) -> Iterator[Turn]:
        known = filter(None, (newest_for(accepted, case_id, key[1].id) for case_id in ids[key]))
        meant = max(known, key=lambda one: one.started_at_utc, default=None)
        begun = sum(nights[place].started < meant.started_at_utc for place in where) if meant else 0
        news = False
        for change in changes(times, threshold):
            before, first = change.index - 1, change.index
            changed = [*environments(where[before], where[first]), *_state(states[before], states[first])]
            reason = meant.reason if meant and _is_of(change, times, begun) else ""
            news |= not reason
            yield Turn(change, nights[where[first]], () if change.drift else changed, reason)
        if meant and not news:  # a drift that is accepted may go on
            for change in changes(times[begun:], threshold):
                yield Turn(replace(change, index=change.index + begun), nights[where[begun + change.index]], ())

    series = []
    for number, (key, known) in enumerate(times_of.items(), 1):
        *_, case_id = ids[key]
        step(case_id, number, len(times_of))
        if key[1].id and (wanted is None or not wanted.isdisjoint(ids[key])):
            where, states = [place for place, _ in known], [timed for _, timed in known]
            times = [timed.elapsed_ms for timed in states]
            turns = list(turns_of(key, where, states, times))
            of_series, why = [nights[place] for place in where], unusable.get(key, "")
            series.append(Series(case_id, key[1], of_series, times, turns, threshold, why, missed.get(key, {})))
    return sorted(series, key=_weight)


class Timeless(NamedTuple):
    """A case without a time that can be compared in any run, and the reason in the newest."""

    case_id: str
    device: Device
    reason: str


def timeless(nights: Sequence[Night], chosen: Collection[str] | None = None) -> list[Timeless]:
    """The cases, of the chosen or of all, that are in no series because no run has a time of them."""
    metric = cache(_metric)
    cases = {
        (metric(case_id), device): Timeless(case_id, device, why)
        for night in nights
        for (case_id, device), why in night.unusable.items()
        if device.id and (chosen is None or case_id in chosen)
    }
    for night in nights if cases else ():
        for case_id, device in night.times:
            cases.pop((metric(case_id), device), None)
    return list(cases.values())


def _metric(case_id: str) -> str:
    """A case's id without its device."""
    parts = case_id.split("/")
    return "/".join([*parts[:2], *parts[3:]])


def _is_of(change: Change, times: Sequence[float], accepted: int) -> bool:
    """True if the accepted run shows a change: it is at or after it, or its time is nearer to the level after it."""
    if change.index <= accepted:
        return True
    near = change.index - accepted < SHORTEST and not change.drift
    return near and abs(math.log(times[accepted] / change.after)) < abs(math.log(times[accepted] / change.before))


def _weight(series: Series) -> tuple[int, float, str]:
    return list(Newest).index(series.newest), -max(series.ratio, 1 / series.ratio), series.case_id


def _state(before: Timed, after: Timed) -> list[str]:
    """Differences of the device's state while this case was measured."""
    texts = []
    if before.sm_clock_mhz != after.sm_clock_mhz:
        texts.append(f"SM clock was {before.sm_clock_mhz or 'unknown'}, is {after.sm_clock_mhz or 'unknown'} MHz")
    if before.throttle_reasons != after.throttle_reasons:
        texts.append(f"throttling was {before.throttle_reasons or 'unknown'}, is {after.throttle_reasons or 'unknown'}")
    texts += [
        f"{NAMES[name]} was {was.removesuffix('.0')}, is {now.removesuffix('.0')}"
        for name, was, now in zip(OF_ROWS, before.other, after.other, strict=True)
        if was and now and was != now
    ]
    return texts
