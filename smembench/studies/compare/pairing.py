"""Pairs of cases from two sides: the medians of their units, and whether they are comparable.

A unit is a round's median: samples of one round share the setup of a trial, and count once. If a side has three runs or
more, the unit is a run's median, for the same reason: rounds of one run share its process and its hour. The spread of
such a side also tells the noise between runs for the other side.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from statistics import median

from smembench.model.case import Case
from smembench.model.errors import UsageError
from smembench.model.hardware import EVENT_NOISE_MS
from smembench.stats.differs import timer_step
from smembench.stats.noise import Evidence, weigh
from smembench.store.csv_files import Samples
from smembench.store.run import Run
from smembench.store.schema import Row
from smembench.studies.compare.comparability import facet_reason, fault
from smembench.studies.compare.verdicts import RUNS_AS_UNITS, Side

_Found = Sequence[tuple[Run, Row]]


@dataclass(frozen=True, slots=True)
class Pair:
    """One case on both sides. ``reason`` says why it is not comparable; ``evidence`` is None then, and if its noise is
    unknown. ``runs`` are the ids of the base's usable runs.
    """

    case: Case
    base: Side
    new: Side
    reason: str = ""
    evidence: Evidence | None = None
    runs: tuple[str, ...] = ()


def by_case(runs: Sequence[Run]) -> dict[str, list[tuple[Run, Row]]]:
    """All rows of the runs by case id, in the order of the files."""
    found: dict[str, list[tuple[Run, Row]]] = {}
    for run in runs:
        for row in run.rows:
            found.setdefault(row.case_id, []).append((run, row))
    return found


def pair_up(base: Sequence[Run], new: Sequence[Run], across: Collection[str] = ()) -> list[Pair]:
    """The cases that both sides have; see ``comparability`` for ``across``.

    Raises:
        UsageError: for a sample that is not a positive number.
    """
    known, found = by_case(base), by_case(new)
    return [_pair(known[case], found[case], across) for case in known if case in found]


def _pair(base: _Found, new: _Found, across: Collection[str]) -> Pair:
    case = base[0][1].case
    before, after = (_usable(side) for side in (base, new))
    runs_before, runs_after = _by_run(before), _by_run(after)
    whole_runs = max(len(runs_before), len(runs_after)) >= RUNS_AS_UNITS
    units_before, units_after = (_units(runs, whole_runs=whole_runs) for runs in (runs_before, runs_after))
    sides = _side(units_before, before), _side(units_after, after)
    for name, rows, usable in (("base", base, before), ("new", new, after)):
        if not usable:
            return Pair(case, sides[0], sides[1], f"{name}: {fault(rows[0][1])}")
    if reason := facet_reason(before, after, across):
        return Pair(case, sides[0], sides[1], reason)
    step = timer_step(_times(runs_before), _times(runs_after))
    clock = EVENT_NOISE_MS / min(*units_before, *units_after) if case.kind == "cuda" else 0.0
    runs = tuple(dict.fromkeys(run.id for run, _ in before))
    return Pair(case, sides[0], sides[1], evidence=weigh(units_before, units_after, step, clock), runs=runs)


def _usable(found: _Found) -> _Found:
    return [item for item in found if not fault(item[1])]


def _times(runs: Sequence[Samples]) -> list[float]:
    return [time for run in runs for round_ in run.values() for time in round_]


def _side(units: Sequence[float], rows: _Found) -> Side:
    return Side(median(units) if units else None, len(units), _clock(rows))


def _by_run(found: _Found) -> list[Samples]:
    """Times in ms by round of each run; a row without samples counts as a run of one round of one time, its median."""
    runs: list[Samples] = []
    sampled: set[int] = set()
    for run, row in found:
        samples = run.samples.get(row.case_id)
        if not samples:
            assert row.elapsed_ms is not None  # an ok row has a time
            runs.append({0: [row.elapsed_ms]})
        elif id(run) not in sampled:
            sampled.add(id(run))
            runs.append(samples)
            for value in (value for values in samples.values() for value in values):
                if not (math.isfinite(value) and value > 0):
                    raise UsageError(
                        f"{run.path}: the samples of {row.case_id} have {value}, which is not an elapsed time"
                    )
    return runs


def _units(runs: Sequence[Samples], *, whole_runs: bool) -> list[float]:
    by_run = [[median(values) for values in run.values()] for run in runs]
    return [median(rounds) for rounds in by_run] if whole_runs else [value for rounds in by_run for value in rounds]


def _clock(rows: _Found) -> float | None:
    clocks = [row.sm_clock_mhz for _, row in rows if row.sm_clock_mhz is not None]
    return median(clocks) if clocks else None
