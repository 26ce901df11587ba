"""A new run against the nights before it, each case against those of its own that are at its standing level."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from smembench.stats.alternation import Habit
from smembench.stats.walk import RECENT
from smembench.store.run import Run
from smembench.studies.compare.comparison import compared, judge
from smembench.studies.compare.pairing import Timed, by_case, comparable, levels_of, pair
from smembench.studies.compare.verdicts import Comparison, Rules


def compare_with_last(
    before: Sequence[Run], new: Run, count: int, rules: Rules, accepted: Mapping[str, str] | None = None
) -> Comparison:
    """Compare each case of a run with the newest ``count`` runs before it that are at the case's standing level.

    A run that is off the level does not become part of it, so a change is reported every night until it is accepted.

    Args:
        before: the runs like it that began before it, oldest first.
        new: the run to judge.
        count: how many runs each case is compared with.
        rules: the threshold and the error rates.
        accepted: by case id, the id of the run from which on a new level is accepted.
    """
    after, earlier = by_case([new]), by_case(before)
    cases = [case for case in earlier if case in after]
    known: dict[tuple[object, ...], bool] = {}

    def like(item: Timed, now: Timed) -> bool:
        """True if they are comparable; of one case only the run and the device decide it."""
        key = (id(item.run), item.row.device)
        if key not in known:
            known[key] = comparable(item, now)
        return known[key]

    usable = [[item for item in earlier[case] if not item.why and like(item, after[case][0])] for case in cases]
    place = {run.id: number for number, run in enumerate(before)}
    starts = np.array([place.get((accepted or {}).get(case, ""), -1) for case in cases], dtype=np.int64)
    now = [after[case][0] for case in cases]
    levels = levels_of(before, usable, now, count, starts, math.log1p(rules.threshold))
    at_level = [_at_level(before, items, levels.at[row], count) for row, items in enumerate(usable)]
    pairs = [
        replace(
            pair(
                at_level[row] or earlier[case],
                after[case],
                known=(float(levels.variance[row]), float(levels.freedom[row])),
                like=usable[row] if len(at_level[row]) == 1 else (),  # of one run no rounds are the usual ones
            ),
            open=bool(levels.open[row]),
            returned=float(levels.returned[row]),
            habit=Habit(levels.at[row, -RECENT:], levels.off[row, -RECENT:]),
        )
        for row, case in enumerate(cases)
    ]
    used = {id(item.run) for items in at_level for item in items}
    base = [run for run in before if id(run) in used] or before[-count:]
    result = compared(base, [new], judge(pairs, rules, levels), rules)
    previous = {row.case_id for run in before[-1:] for row in run.rows}
    return replace(result, only_base=[case for case in result.only_base if case in previous])


def _at_level(runs: Sequence[Run], usable: Sequence[Timed], at: Sequence[bool], count: int) -> list[Timed]:
    """The newest times of a case that are at its level."""
    standing = {id(run) for run, is_at in zip(runs, at, strict=True) if is_at}
    return [item for item in usable if id(item.run) in standing][-count:]
