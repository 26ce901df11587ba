"""Series of cases over runs, where they changed, and what changed with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from statistics import median

from smembench.stats.changepoints import SHORTEST, THRESHOLD, Change, changes
from smembench.studies.compare.comparability import environment
from smembench.studies.history.read import Device, Night, Timed


class Newest(StrEnum):
    """How the newest stretch of a series compares with the one before, in the order in which it matters."""

    SLOWER = "slower"
    FASTER = "faster"
    SAME = "same"
    SHORT = "too few runs"


@dataclass(frozen=True, slots=True)
class Turn:
    """A change in one series: the first run after it, and what differs between it and the run before.

    ``changed`` is empty for a drift, which has no first run.
    """

    change: Change
    night: Night
    changed: Sequence[str]


@dataclass(frozen=True, slots=True)
class Series:
    """One case on one device over the runs in which it succeeded, oldest first; ``times`` are medians in ms.

    ``failed`` is how the case ended in the newest run it is in, empty if it succeeded.
    """

    case_id: str
    device: Device
    nights: Sequence[Night]
    times: Sequence[float]
    turns: Sequence[Turn]
    failed: str = ""

    @property
    def newest(self) -> Newest:
        """How the newest stretch compares with the one before."""
        if self.turns:
            return Newest.SLOWER if self.turns[-1].change.ratio > 1 else Newest.FASTER
        return Newest.SAME if len(self.times) >= 2 * SHORTEST else Newest.SHORT

    @property
    def level(self) -> float:
        """The level of the newest stretch in ms, or the median of all runs if nothing changed."""
        return self.turns[-1].change.after if self.turns else median(self.times)


def series_of(
    nights: Sequence[Night], chosen: Iterable[str] | None = None, threshold: float = THRESHOLD
) -> list[Series]:
    """The series of every case and device, or of the chosen cases, the most important first.

    Each GPU has its own series, by model and UUID. Slower newest stretches come first, then the larger changes, then
    by name.

    Args:
        nights: oldest first.
        chosen: case ids; all when None.
        threshold: smallest relative change of level.
    """
    wanted = None if chosen is None else set(chosen)
    places: dict[tuple[str, Device], list[int]] = {}
    failed: dict[tuple[str, Device], str] = {}
    for place, night in enumerate(nights):
        for key in night.times:
            places.setdefault(key, []).append(place)
            failed.pop(key, None)
        failed |= night.failed
    environments = cache(lambda before, after: tuple(_environment(nights[before], nights[after])))
    found = []
    for key, where in places.items():
        if wanted is not None and key[0] not in wanted:
            continue
        states = [nights[place].times[key] for place in where]
        times = [state.elapsed_ms for state in states]
        turns = []
        for change in changes(times, threshold):
            before, first = change.index - 1, change.index
            changed = [*environments(where[before], where[first]), *_state(states[before], states[first])]
            turns.append(Turn(change, nights[where[first]], () if change.drift else changed))
        found.append(Series(*key, [nights[place] for place in where], times, turns, failed.get(key, "")))
    return sorted(found, key=_weight)


def _weight(series: Series) -> tuple[int, float, str]:
    size = series.turns[-1].change.ratio if series.turns else 1.0
    return list(Newest).index(series.newest), -max(size, 1 / size), series.case_id


def _environment(before: Night, after: Night) -> list[str]:
    """Differences in run.json: versions and revision, devices with driver and clocks, sampling."""
    found = environment([before.description], [after.description])
    return [f"{one.what} was {one.base}, is {one.new}" for one in found]


def _state(before: Timed, after: Timed) -> list[str]:
    """Differences of the device's state while this case was measured."""
    found = []
    if before.sm_clock_mhz != after.sm_clock_mhz:
        found.append(f"SM clock was {before.sm_clock_mhz or 'unknown'}, is {after.sm_clock_mhz or 'unknown'} MHz")
    if before.throttle_reasons != after.throttle_reasons:
        found.append(f"throttling was {before.throttle_reasons or 'unknown'}, is {after.throttle_reasons or 'unknown'}")
    return found
