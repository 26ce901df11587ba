"""What a night's run is compared with: the run before, the pinned baseline, or a run that was named."""

from __future__ import annotations

from pathlib import Path

from smembench.baseline import baselines
from smembench.compare import Comparison, compare_runs
from smembench.errors import SmembenchError, UsageError
from smembench.nightly.runs import run_before
from smembench.stored import StoredRun, load

LAST, BASELINE = "last", "baseline"


def check(compare_to: str, root: Path, config: str) -> None:
    """Make sure before a run that it can be compared.

    Raises:
        UsageError: for a baseline that is not pinned, and a run that cannot be read.
    """
    pinned = baselines(root)
    if compare_to == BASELINE and config not in pinned:
        raise UsageError(f"--compare-to baseline: none is pinned for {config}: smembench baseline set {root}/<run>")
    for path in [pinned[config]] if config in pinned else []:
        _load(path, "baseline")
    if compare_to not in (LAST, BASELINE):
        _load(Path(compare_to), "--compare-to")


def compare(compare_to: str, root: Path, new: StoredRun) -> tuple[list[tuple[str, Comparison]], list[str], list[str]]:
    """The comparisons asked for by what each is with, what is to be said of them, and those that failed.

    ``last`` compares with the baseline as well, when one is pinned: a slow drift never shows from one run to the
    next.
    """
    before = run_before(root, new.run) if compare_to == LAST else None
    named = Path(compare_to) if compare_to not in (LAST, BASELINE) else None
    pinned = baselines(root).get(new.run["config"]["name"]) if named is None else None
    bases = {before: LAST, named: compare_to}
    if pinned is not None:
        bases.setdefault(pinned, BASELINE)
    compared, failed = [], []
    for path, asked in bases.items():
        if path is None:
            continue
        try:
            compared.append((asked, compare_runs([_load(path, asked)], [new])))
        except SmembenchError as error:
            failed.append(f"not compared: {error}")
    return compared, [] if compared or failed else ["there is no run before it to compare with"], failed


def _load(path: Path, what: str) -> StoredRun:
    try:
        return load(path)
    except UsageError as error:
        raise UsageError(f"{what}: {error}") from None
