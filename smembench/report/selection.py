"""Selection of the runs that a report shows in full, and of the runs that they are compared with."""

from __future__ import annotations

from collections.abc import Sequence

from smembench.store.run import Run
from smembench.studies.history.read import devices_of


def by_time(runs: Sequence[Run]) -> list[Run]:
    """Runs, oldest first."""
    return sorted(runs, key=lambda stored: (stored.began, stored.id))


def whole(ordered: Sequence[Run]) -> list[tuple[Run, Run | None]]:
    """Of runs, oldest first, those that no newer one replaces, each with the newest run that it replaces, if any.

    A newer run on the same devices replaces one of the same configuration, and one whose cases it all has.
    """
    before: dict[int, Run | None] = {}
    for place, stored in enumerate(ordered):
        newer = [other for other in range(place + 1, len(ordered)) if _replaces(ordered[other], stored)]
        if newer:
            before[newer[-1]] = stored
        else:
            before.setdefault(place, None)
    return [(ordered[place], previous) for place, previous in sorted(before.items())]


def _replaces(newer: Run, older: Run) -> bool:
    if devices_of(newer.description) != devices_of(older.description):
        return False
    name = newer.description.config.name
    if name and name == older.description.config.name:
        return True
    return {row.case_id for row in older.rows} <= {row.case_id for row in newer.rows}
