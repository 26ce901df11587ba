"""Loads that the compiler moved into a branch, since only a store there uses their value.

In the source every thread loads and some store. In the machine code the loads then have the lanes of the stores: both
are in the same regions, under the same guards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from smembench.explain.requests import NOWHERE, AccessSite, Integers
from smembench.model.groups import grouped
from smembench.toolchains.source_lines import Lined

Moved = Mapping[tuple[str, int, int], int]
"""By space, line and width in bytes of loads: the line of stores that run for the same lanes."""


def moved_loads(lined: Sequence[Lined]) -> Moved:
    """Lines of loads that run as often as a line of stores, for the same lanes. Most do so in the source as well."""
    may = (each for each in lined if not each.access.never)
    found = grouped(may, lambda each: (each.access.kind, each.access.space, each.line))
    stores = {_lanes(every): line for (kind, _, line), every in found.items() if kind == "store"}
    return {
        (space, line, every[0].access.width): stores[_lanes(every)]
        for (kind, space, line), every in found.items()
        if kind == "load" and _lanes(every) in stores and len({each.access.width for each in every}) == 1
    }


def _lanes(of_line: Sequence[Lined]) -> Hashable:
    return frozenset(Counter((each.region, each.guard) for each in of_line).items())


def keep_lanes_that_store(
    addresses: Mapping[AccessSite, Integers], rows: Mapping[AccessSite, Mapping[Any, int]], moved: Moved
) -> None:
    """Take from a block's moved loads the threads that do not store.

    Loads stay as they are if threads store that do not load, or at other times: then values come from elsewhere, too.

    Args:
        addresses: by access site, a row per access and a column per thread; they are changed.
        rows: by access site, the row of each access by when it is made.
        moved: what ``moved_loads`` found.
    """
    for load, of_load in addresses.items():
        line = moved.get(load.statement) if load.kind == "load" else None
        stores = [site for site in addresses if site.kind == "store" and site.statement[1] == line]
        times = [(rows[load].get(time), addresses[site][row]) for site in stores for time, row in rows[site].items()]
        stored = np.full(of_load.shape, False)
        for row, of_store in times:
            if row is None or (of_load[row][of_store != NOWHERE] == NOWHERE).any():
                break
            stored[row] |= of_store != NOWHERE
        else:
            if times:
                of_load[~stored] = NOWHERE
