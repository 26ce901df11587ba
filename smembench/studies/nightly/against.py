"""What a night's run is compared with: the runs before it, the pinned baseline, or a named run.

Two runs alone do not tell the noise between runs; several previous runs do.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from smembench.model.errors import SmembenchError, UsageError
from smembench.store.run import Run
from smembench.studies.baseline import baselines
from smembench.studies.compare import Comparison, compare_runs
from smembench.studies.compare.comparability import alike
from smembench.studies.load import load
from smembench.studies.nightly.runs import runs_before

LAST, BASELINE = "last", "baseline"


def check(compare_to: str, root: Path, config: str) -> None:
    """Make sure before a run that it can be compared.

    Raises:
        UsageError: for an invalid number of runs, a baseline that is not pinned, and a run that cannot be read.
    """
    pinned = baselines(root)
    if compare_to == BASELINE and config not in pinned:
        raise UsageError(f"--compare-to baseline: none is pinned for {config}: smembench baseline set {root}/<run>")
    for path in [pinned[config]] if config in pinned else []:
        _load(path, "baseline")
    if _count(compare_to) == 0 and compare_to != BASELINE:
        _load(Path(compare_to), "--compare-to")


def compare(compare_to: str, root: Path, new: Run) -> tuple[list[tuple[str, Comparison]], list[str], list[str]]:
    """The comparisons, each with the name of what it compares with, notes on them, and failures.

    ``last`` is the previous run, ``last:N`` the previous N, pooled, without those with another driver or other clocks.
    If a baseline is pinned, both compare with that too, since a slow drift never shows from one run to the next. With
    ``last:N`` the newest N runs, including this one, are compared with the baseline.
    """
    count = _count(compare_to)
    pinned = baselines(root).get(new.description.config.name) if count or compare_to == BASELINE else None
    asked: dict[str, list[Path]] = {}
    if compare_to != BASELINE:
        asked[compare_to] = runs_before(root, new.description, count) if count else [Path(compare_to)]
    if pinned is not None and [pinned] not in asked.values():
        asked[BASELINE] = [pinned]

    compared: list[tuple[str, Comparison]] = []
    notes: list[str] = []
    failed: list[str] = []
    newest = [new]
    for what, paths in asked.items():
        runs, damaged = _readable(paths, what)
        base = [run for run in runs if alike(run, new)] or runs
        if len(base) < len(runs):
            notes.append(f"{what}: left out {len(runs) - len(base)} of {len(runs)} runs, of another driver or clocks")
        (notes if base else failed).extend(f"not compared: {reason}" for reason in damaged)
        if not base:
            continue
        try:
            compared.append((what, compare_runs(base, newest if what == BASELINE else [new])))
        except SmembenchError as error:
            failed.append(f"not compared: {what}: {error}")
        newest = [*base, new][-max(count, 1) :]
    if not compared and not failed:
        notes.append("there is no run before it to compare with")
    return compared, notes, failed


def _count(compare_to: str) -> int:
    """The number of previous runs: 1 for ``last``, N for ``last:N``, 0 for anything else.

    Raises:
        UsageError: for an N that is not a positive number.
    """
    name, colon, number = compare_to.partition(":")
    if name != LAST:
        return 0
    if not colon:
        return 1
    if not number.isdecimal() or len(number) > 9 or int(number) < 1:
        raise UsageError(f"--compare-to {compare_to[:80]}: give a number of runs, such as last:7")
    return int(number)


def _readable(paths: Sequence[Path], what: str) -> tuple[list[Run], list[str]]:
    """The runs that can be read, and why others cannot."""
    runs, damaged = [], []
    for path in paths:
        try:
            runs.append(_load(path, what))
        except UsageError as error:
            damaged.append(str(error))
    return runs, damaged


def _load(path: Path, what: str) -> Run:
    try:
        return load(path)
    except UsageError as error:
        raise UsageError(f"{what}: {error}") from None
