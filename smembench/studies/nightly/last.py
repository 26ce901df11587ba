"""A new run against the nights before it, each case against those of its own that stand at its level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from smembench.store.run import Run
from smembench.studies.compare.comparison import compare_runs
from smembench.studies.compare.verdicts import Comparison, Rules

READ = 60
"""Runs before the new one that are read: enough for a change that stays unaccepted for weeks."""


def compare_with_last(
    before: Sequence[Run],
    new: Run,
    count: int,
    rules: Rules,
    accepted: Mapping[str, str] | None = None,
) -> Comparison:
    """Compare a run with the newest ``count`` runs before it.

    Args:
        before: the stored runs like it that began before it, oldest first; the newest ``READ`` are enough.
        new: the run to judge.
        count: how many runs each case is held against.
        rules: the threshold and the error rates.
        accepted: by case id, the id of the run from which on a new level is accepted.

    Raises:
        UsageError: for no runs before it.
    """
    return compare_runs(before[-count:], [new], threshold=rules.threshold, fdr=rules.fdr, confidence=rules.confidence)


def needed(before: Sequence[Run], count: int) -> list[str]:
    """Ids of the runs that the next run's cases are held against: a removal of old runs has to keep them."""
    return [run.id for run in before[-count:]]
