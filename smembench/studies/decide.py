"""Ambiguous cases of a stored run, measured again until they are decided or the time is over.

Runs are the units, as between nights: each time all undecided cases are measured in a run of its own, interleaved round
by round. Only these runs are judged, not the one whose noise made the cases ambiguous, against the runs that each case
was compared with. Each of the looks has its share of the false discovery rate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic

from smembench.model.errors import SmembenchError
from smembench.model.measurement import moment
from smembench.run.config import from_stored
from smembench.run.narrowed import narrowed
from smembench.run.session import open_plan
from smembench.store.load import load
from smembench.store.run import Run
from smembench.store.run_folder import new_run_id
from smembench.studies.compare.comparison import Judged, compared, judge, smallest_seen
from smembench.studies.compare.pairing import pair_up
from smembench.studies.compare.verdicts import CaseComparison, Comparison, Rules, Verdict
from smembench.studies.nightly.runs import runs_like
from smembench.studies.run import SILENT, RunInterrupted, Storage, Watch, run

LOOKS = 5
"""Most runs."""
SEEN_IN = 0.95
"""Probability with which a slowdown of the size that is given as decidable would have been called slower."""


@dataclass(slots=True)
class Decided:
    """Result of measuring again: the verdicts of the new runs, which are in ``folder``.

    Attributes:
        comparison: None if nothing was measured, as where no case is ambiguous.
        left: how many ambiguous cases there was no time for.
        error: what ended it before the time was over.
    """

    folder: Path
    comparison: Comparison | None = None
    left: int = 0
    error: SmembenchError | RunInterrupted | None = None
    runs: list[Run] = field(default_factory=list)


def decide(asked: Comparison, old: Run, seconds: float, rules: Rules, watch: Watch = SILENT) -> Decided:
    """Measure the ambiguous cases of a comparison again, the one that is most probably slower first.

    Args:
        asked: of the run with those before it.
        old: the run.
        seconds: time to be taken; the first run is made in any case.
        rules: the threshold and the error rates.
        watch: callbacks for notes and progress.

    Raises:
        UsageError: for a config that cannot be measured any more.
        DeviceUnavailable: for a device that is missing or in use.
    """
    assert old.path is not None
    root, described = old.path.resolve().parent, old.description
    result = Decided(root / new_run_id(f"{described.config.name}-decide"))
    ambiguous = unsure(asked)
    begun, count = monotonic(), max(int(seconds / (LOOKS * _seconds_per_case(old))), 1)
    wanted, result.left = ambiguous[:count], max(len(ambiguous) - count, 0)
    base = _base(root, old, wanted)
    config = from_stored(described.config.data, tuple(described.kernels))
    with open_plan(config) as (planned, _, _):
        cases = {item.case.id: item.case for item in planned if not item.skip}
    wanted = [case for case in wanted if case.case.id in cases]
    open_cases, decided = [case.case.id for case in wanted], dict[str, CaseComparison]()
    share = replace(rules, fdr=rules.fdr / LOOKS)
    for number in range(1, LOOKS + 1):
        if not open_cases:
            break
        watch.note(f"run {number} of at most {LOOKS}; cases: {len(open_cases)}")
        own = narrowed(config, map(cases.__getitem__, open_cases), name=f"decide-{number}", seed=None)
        anonymous, before = described.host is None, monotonic()
        outcome = run(own, Storage(result.folder, anonymous=anonymous), wait=True, watch=watch)
        if outcome.error is not None:
            result.error = outcome.error
            break
        result.runs.append(outcome.run)
        judged = {case.case.id: case for case in judged_with_limit(base, result.runs, share)}
        decided |= {case_id: judged[case_id] for case_id in open_cases if case_id in judged}
        open_cases = [case_id for case_id in open_cases if decided[case_id].verdict is Verdict.AMBIGUOUS]
        if monotonic() - begun + (monotonic() - before) > seconds:
            break
    if decided:
        own_rows = [run.only([row for row in run.rows if row.case_id in decided]) for run in result.runs]
        result.comparison = compared(base, own_rows, Judged(list(decided.values()), {}), rules)
    return result


def unsure(asked: Comparison) -> list[CaseComparison]:
    """The ambiguous cases that measuring again may decide: not those at a level that they have now and then."""
    cases = (case for case in asked.cases if case.verdict is Verdict.AMBIGUOUS)
    return [case for case in cases if case.held_against and not case.hidden]


def judged_with_limit(base: Sequence[Run], new: Sequence[Run], rules: Rules) -> list[CaseComparison]:
    """Verdicts; the reason of an ambiguous one is the slowdown from which on it would have been decided."""
    pairs, _ = pair_up(base, new)
    limits = iter(smallest_seen(pairs, rules, SEEN_IN).tolist())
    seen = {pair.case.id: math.expm1(next(limits)) for pair in pairs if pair.evidence is not None}
    return [
        replace(case, reason=f"not decidable below {100 * seen[case.case.id]:.2g} % at this noise")
        if case.verdict is Verdict.AMBIGUOUS and case.case.id in seen
        else case
        for case in judge(pairs, rules).cases
    ]


def _base(root: Path, old: Run, cases: Sequence[CaseComparison]) -> list[Run]:
    """The runs that cases were compared with, each with the rows that were."""
    ids = {case.case.id: frozenset(case.held_against) for case in cases}
    wanted = frozenset[str]().union(*ids.values())
    paths = {other.run_id: path for other, path in runs_like(root, old.description) if other.run_id in wanted}
    runs = [load(path, shown=False) for path in paths.values()]
    return [run.only([row for row in run.rows if run.id in ids.get(row.case_id, ())]) for run in runs]


def _seconds_per_case(old: Run) -> float:
    """Seconds per case of the old run, at least 1."""
    described = old.description
    try:
        took = (moment(described.ended_at_utc or "") - moment(described.started_at_utc)).total_seconds()
    except ValueError:
        took = 0.0
    return max(took / max(len(old.rows), 1), 1.0)
