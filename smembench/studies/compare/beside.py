"""The stored runs beside two compared ones: they show the variation between runs of that config on those devices."""

from __future__ import annotations

from collections.abc import Sequence

from smembench.model.errors import UsageError
from smembench.store.csv_files import CASES
from smembench.store.load import load
from smembench.store.run import Run
from smembench.studies.compare.comparability import alike
from smembench.studies.nightly.runs import runs_like

_ENOUGH = 10
"""Newest runs that are read."""


def beside(base: Sequence[Run], new: Sequence[Run]) -> list[Run]:
    """The newest runs like both in their folders, oldest first; none where a side has several runs of its own."""
    sides = [*base, *new]
    if len(sides) > 2 or not all(run.path is not None and run.path.is_dir() for run in sides):
        return []
    if not alike(*sides) or sides[0].description.config.name != sides[1].description.config.name:
        return []
    own = {run.id for run in sides}
    like = {
        other.run_id: (other.started_at_utc, path)
        for root in dict.fromkeys(run.path.resolve().parent for run in sides if run.path is not None)
        for other, path in runs_like(root, new[0].description)
        if other.run_id not in own and (path / CASES).is_file()
    }
    runs = []
    for _, path in sorted(like.values())[-_ENOUGH:]:
        try:
            runs.append(load(path, shown=False))
        except UsageError:
            continue  # a damaged run is no evidence
    return [run for run in runs if alike(run, new[0])]
