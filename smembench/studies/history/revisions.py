"""Runs by the git revision that they were made from: one point per revision, the median of its runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from smembench.model.groups import grouped
from smembench.studies.compare.comparability import revision
from smembench.studies.history.read import Device, Night, Timed


def by_revision(nights: Sequence[Night]) -> tuple[list[Night], int]:
    """A point per revision in the order in which they were first measured; and how many runs have none.

    A checkout with changes is a point of its own, ``abc+``.
    """
    known = [night for night in nights if (git := night.description.measured_git) is not None and git.revision]
    groups = grouped(known, lambda night: revision(night.description.measured_git))
    return [_point(name, runs) for name, runs in groups.items()], len(nights) - len(known)


def _point(name: str, runs: Sequence[Night]) -> Night:
    """The runs of a revision as one: what its newest has, at the time of its oldest, with medians."""
    times: dict[tuple[str, Device], list[Timed]] = {}
    for run in runs:
        for key, timed in run.times.items():
            times.setdefault(key, []).append(timed)
    newest, begun = runs[-1], runs[0].started
    medians = {key: median(one.elapsed_ms for one in timings) for key, timings in times.items()}
    points = {key: timings[-1]._replace(elapsed_ms=medians[key]) for key, timings in times.items()}
    unusable = {key: why for key, why in newest.unusable.items() if key not in times}
    return replace(newest, run_id=name, revision=name, runs=runs, started=begun, times=points, unusable=unusable)
