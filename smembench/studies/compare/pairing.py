"""Pairs of cases from two sides: the centres of their runs, their comparability, and the evidence of their noise.

A run's rounds share its process and its hour, so runs are the units wherever two of them show the variation between
runs: several on a side, or others beside them. With one run on each side and no others, the rounds are the units, and
the variation between runs is unknown.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import repeat
from statistics import median

import numpy as np
from numpy.typing import NDArray

from smembench.model.case import Case
from smembench.model.hardware import EVENT_NOISE_MS
from smembench.stats.alternation import Habit
from smembench.stats.differs import timer_step
from smembench.stats.levels import Levels, levels
from smembench.stats.noise import Evidence, Floats, Own, weigh
from smembench.stats.summary import MIN_SAMPLES, centre, centre_spread, variance
from smembench.store.run import Run
from smembench.store.schema import Row
from smembench.studies.compare.comparability import causes, clock_was_set, device_reason, fault, not_the_same_case
from smembench.studies.compare.verdicts import Difference, Side

ALONE = {"cuda": 0.05, "cpu": 0.15}
"""By kind of device the effect, as a fraction, that two runs must exceed where the variation between runs is unknown
(results/reference/notes/statistics.md)."""
SHORT_MS = 0.03
"""Below this the clock makes most of a kernel's noise."""
LONG_MS = 30.0
"""Above this a round has few samples."""
_FLIP_MS = 0.65e-4
"""Standard deviation of a clock that reads one of two levels 0.13 µs apart: what its flips alone add to a round."""


@dataclass(frozen=True)
class Timed:
    """A case in one run; ``why`` is the reason why its time cannot be compared, empty if it can."""

    run: Run
    row: Row
    why: str

    @cached_property
    def case(self) -> Case:
        """The case of the row."""
        return self.row.case

    @cached_property
    def units(self) -> list[float]:
        """Medians of the rounds in ms; the samples where rounds have too few for a median; else the row's median."""
        samples = self.run.samples.get(self.row.case_id)
        if not samples:
            return [self.row.elapsed_ms] if self.row.elapsed_ms is not None else []
        if len(samples) > 1 and min(map(len, samples.values())) < MIN_SAMPLES:
            return self.times
        return [median(values) for values in samples.values()]

    @property
    def times(self) -> list[float]:
        """All samples in ms; the row's median if there are none."""
        return self.run.values(self.row.case_id) or self.units

    @cached_property
    def centre(self) -> float:
        """The centre of the units, in ms."""
        return centre(self.units)

    @cached_property
    def family(self) -> int:
        """Number of the cases that share what they show of noise: those of a kind of device, and of similar duration.

        On a GPU the clock makes most noise of the short, few samples most of the longest; no CPU is as quiet.
        """
        time = self.centre if self.units else 0.0
        duration = (time >= SHORT_MS) + (time >= LONG_MS)
        return duration if self.case.kind == "cuda" else -1 - duration

    @cached_property
    def rounds(self) -> tuple[float, int]:
        """Variance among the logarithms of the units, and its degrees of freedom."""
        logs = [math.log(unit) for unit in self.units]
        return variance(logs), len(logs) - 1


@dataclass(frozen=True, slots=True)
class Pair:
    """A case on both sides.

    ``reason`` says why it is not comparable, ``other_device`` whether that is for want of one device on both sides;
    ``evidence`` is None then, and if its noise is unknown. ``sides`` are the usable rows of both, also if it is not
    comparable. ``least`` is the effect below which nothing is a change, whatever the threshold. ``open`` is whether the
    newest nights before were off their level, ``returned`` the deviation that nights show without a change of level
    (``Levels.returned``), ``habit`` what the case's own were.
    """

    case: Case
    base: Side
    new: Side
    reason: str = ""
    other_device: bool = False
    evidence: Evidence | None = None
    sides: tuple[Sequence[Timed], Sequence[Timed]] = ((), ())
    least: float = 0.0
    open: bool = False
    returned: float = 0.0
    habit: Habit | None = None

    @property
    def runs(self) -> tuple[str, ...]:
        """The ids of the base's usable runs."""
        return tuple(dict.fromkeys(item.run.id for item in self.sides[0]))

    @property
    def causes(self) -> list[Difference]:
        """Possible causes of the case's change."""
        return causes(*_measured(*self.sides))

    @property
    def clock_was_set(self) -> bool:
        """True if a clock or power limit changed."""
        return clock_was_set(*_measured(*self.sides))


def by_case(runs: Sequence[Run]) -> dict[str, list[Timed]]:
    """All rows of the runs by case id, in the order of the files."""
    cases: dict[str, list[Timed]] = {}
    for run in runs:
        for case, items in timed(run).items():
            cases.setdefault(case, []).extend(items)
    return cases


def timed(run: Run) -> dict[str, list[Timed]]:
    """All rows of a run by case id; a case's samples are those of all its rows."""
    cases: dict[str, list[Timed]] = {}
    for row in run.rows:
        known, samples = cases.setdefault(row.case_id, []), run.samples.get(row.case_id, {})
        if not (known and samples):
            known.append(Timed(run, row, fault(row) or _no_times(samples)))
    return cases


def _no_times(samples: Mapping[int, Sequence[float]]) -> str:
    bad = [value for values in samples.values() for value in values if not 0 < value < math.inf]
    return f"its samples have {bad[0]}, which is not an elapsed time" if bad else ""


def pair_up(
    base: Sequence[Run], new: Sequence[Run], across: Collection[str] = (), beside: Sequence[Run] = ()
) -> tuple[list[Pair], Levels | None]:
    """The cases that both sides have, and what the runs beside them show; see ``compare_runs``.

    A case that each side has by one engine is a case of both.
    """
    before, after, like = by_case(base), by_case(new), by_case(beside)
    for case in [case for case in before if case not in after]:
        other = before[case][0].case.by_other_engine
        if other is not None and other.id in after and other.id not in before:
            after[case] = after[other.id]
    cases = [case for case in before if case in after]
    others = [
        [item for item in like.get(case, ()) if not item.why and on_one_device(item, after[case][0])] for case in cases
    ]
    shown = levels_of(beside, others, [after[case][0] for case in cases], len(beside)) if beside else None
    known = zip(shown.variance.tolist(), shown.freedom.tolist(), strict=True) if shown else repeat((math.nan, 0.0))
    return [
        replace(
            pair(before[case], after[case], across, known=noise, like=others[row]),
            returned=float(shown.returned[row]) if shown else 0.0,
            habit=Habit(shown.at[row], shown.off[row]) if shown else None,
        )
        for row, (case, noise) in enumerate(zip(cases, known, strict=False))
    ], shown


def on_one_device(one: Timed, other: Timed) -> bool:
    """True if two rows are of the same device, or neither names one."""
    named = (item.run.description.identity(item.row.device) for item in (one, other))
    return len(set(named)) == 1


def comparable(one: Timed, other: Timed) -> bool:
    """True if two rows are of one case on one device."""
    both = [(one.run, one.row), (other.run, other.row)]
    return not (not_the_same_case(both) or device_reason(both))


def levels_of(
    runs: Sequence[Run],
    cases: Sequence[Sequence[Timed]],
    now: Sequence[Timed],
    count: int,
    starts: NDArray[np.int64] | None = None,
    least: float = 0.0,
) -> Levels:
    """The standing level of each case in runs; ``now`` decides which cases are alike."""
    devices = {name: number for number, name in enumerate(dict.fromkeys(item.row.device for item in now))}
    return levels(
        series_of(runs, cases),
        count,
        starts,
        least,
        families=np.array([item.family for item in now], dtype=np.int64),
        devices=np.array([devices[item.row.device] for item in now], dtype=np.int64),
    )


def series_of(runs: Sequence[Run], cases: Sequence[Sequence[Timed]]) -> Floats:
    """Logarithms of the centres of cases in runs, shape (cases, runs); NaN where a run has no time for one."""
    places = {id(run): place for place, run in enumerate(runs)}
    series = np.full((len(cases), len(runs)), math.nan)
    for row, items in enumerate(cases):
        for item in items:
            series[row, places[id(item.run)]] = math.log(item.centre)
    return series


def pair(
    base: Sequence[Timed],
    new: Sequence[Timed],
    across: Collection[str] = (),
    *,
    known: tuple[float, float] = (math.nan, 0.0),
    like: Sequence[Timed] = (),
) -> Pair:
    """Pair a case's rows of both sides.

    Args:
        base: its rows on one side.
        new: the same of the other side.
        across: see ``comparability``.
        known: from other runs: the variance of a run in logarithms, and its degrees of freedom.
        like: other runs, whose rounds show the usual noise.
    """
    case = base[0].case
    before, after = ([item for item in side if not item.why] for side in (base, new))
    blank = Pair(case, _side(before), _side(after), sides=(before, after))
    for name, rows, usable in (("base", base, before), ("new", new, after)):
        if not usable:
            return replace(blank, reason=f"{name}: {rows[0].why}")
    every = [one for side in _measured(before, after) for one in side]
    if reason := not_the_same_case(every):
        return replace(blank, reason=reason)
    if "device" not in across and (reason := device_reason(every)):
        return replace(blank, reason=reason, other_device=True)
    evidence = _between_runs(before, after, known, like)
    if evidence is not None:
        return replace(blank, evidence=evidence)
    units = before[0].units, after[0].units
    clock = EVENT_NOISE_MS / min(*units[0], *units[1]) if case.kind == "cuda" else 0.0
    return replace(
        blank,
        base=replace(blank.base, units=len(units[0])),
        new=replace(blank.new, units=len(units[1])),
        evidence=weigh(*units, _step(before, after), clock, before[0].family),
        least=ALONE[case.kind],
    )


def _between_runs(
    base: Sequence[Timed], new: Sequence[Timed], known: tuple[float, float], like: Sequence[Timed]
) -> Evidence | None:
    """Evidence with runs as units; None if the variation between runs is unknown."""
    sides = [[math.log(item.centre) for item in side] for side in (base, new)]
    parts = [known, *((variance(side), len(side) - 1.0) for side in sides)]
    freedom = sum(part[1] for part in parts)
    if not freedom:
        return None
    single = [side[0] for side in (base, new) if len(side) == 1]
    others = [item.rounds for side in (base, new, like) if len(side) > 1 for item in side]
    judged = [item.rounds for item in single]
    own = None
    if (usual := sum(rounds[1] for rounds in others)) and (own_freedom := sum(rounds[1] for rounds in judged)):
        own = Own(
            variance=sum(variance * count for variance, count in judged) / own_freedom,
            freedom=own_freedom,
            usual=sum(variance * count for variance, count in others) / usual,
            spread=sum(centre_spread(len(item.units)) for item in single),
        )
    shortest = min(item.centre for item in (*base, *new))
    rounds = min(len(item.units) for item in (*base, *new))
    clock = _FLIP_MS / shortest if base[0].case.kind == "cuda" else 0.0
    # A run is no quieter than its rounds let it be, however well a few runs agree; half of it, because rounds are few.
    least = max(clock, math.sqrt(own.usual / 2) if own is not None else 0.0) * math.sqrt(centre_spread(rounds))
    return Evidence(
        effect=math.log(centre([item.centre for item in new]) / centre([item.centre for item in base])),
        variance=sum(variance * count for variance, count in parts if count) / freedom,
        freedom=freedom,
        spread=centre_spread(len(base)) + centre_spread(len(new)),
        step=_step(base, new),
        clock=least,
        own=own,
        family=base[-1].family,
    )


def _step(base: Sequence[Timed], new: Sequence[Timed]) -> float:
    """The clock's resolution, from the newest runs of both sides."""
    return timer_step(base[-1].times, new[-1].times)


def _measured(*sides: Sequence[Timed]) -> list[list[tuple[Run, Row]]]:
    return [[(item.run, item.row) for item in side] for side in sides]


def _side(items: Sequence[Timed]) -> Side:
    clocks = [item.row.sm_clock_mhz for item in items if item.row.sm_clock_mhz is not None]
    elapsed = centre([item.centre for item in items]) if items else None
    energies = [energy for item in items if (energy := item.row.energy_mj) is not None]
    widest = max((width for item in items if (width := item.row.energy_uncertainty) is not None), default=None)
    clock, energy = (median(values) if values else None for values in (clocks, energies))
    return Side(elapsed, len(items), clock, energy, widest)
