"""The shared arrays of a launch and the parts of them that are used apart, with what is asked of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from smembench.explain.costs import Costs
from smembench.explain.declared import Declared, declared
from smembench.explain.rearranged import Asked, asked_by
from smembench.explain.requests import NOWHERE, Accesses, AccessSite
from smembench.explain.trace import SharedArray
from smembench.explain.warp import WIDTHS


class Area(NamedTuple):
    """A shared array or a part of one, what a launch asks of it, and the array's declaration, if that is known."""

    array: SharedArray
    asked: Asked
    known: Declared | None


def areas_of_launch(explained: Costs, *, conflicts: bool = False) -> Iterator[Area]:
    """The shared arrays with loads or stores, or with ``conflicts`` of them.

    Memory without rows of its own, whose parts no access has in common, is several arrays.
    """
    times = {access.site: access.requests for access in explained.shared}
    asked_for = {access.site.array for access in explained.shared if not conflicts or access.wavefronts > access.ideal}
    for array in explained.trace.shared:
        if array.name not in asked_for:
            continue
        own = [
            accesses
            for accesses in explained.trace.accesses
            if (accesses.site.space, accesses.site.array) == ("shared", array.name) and accesses.site.in_kernel in times
        ]
        asked = asked_by(own)
        if not asked.sites or not _inside(array, asked):
            continue
        known = _declared(explained.trace.filename, array, asked)
        rows = len(array.shape) > 1 or array.itemsize > 1 or (known is not None and len(known.sides) > 1)
        for area, sites in [(array, {*asked.sites})] if rows else _areas(array, own):
            of_area = asked_by([accesses for accesses in own if accesses.site.in_kernel in sites])
            factors = np.array([times[site] for site in of_area.sites]) / of_area.requests
            yield Area(area, of_area.times(factors), known)


def _declared(filename: str, array: SharedArray, asked: Asked) -> Declared | None:
    """The declaration of an array whose elements the trace does not know, if the source has it."""
    line = min(site.line for site in asked.sites)
    return None if array.itemsize > 1 else declared(filename, array.name, array.bytes, line)


def _inside(array: SharedArray, asked: Asked) -> bool:
    rows = ((width, rows[rows != NOWHERE]) for width, rows in asked.rows())
    return all(array.base <= at.min() and at.max() + width <= array.base + array.bytes for width, at in rows)


def _areas(array: SharedArray, own: Sequence[Accesses]) -> list[tuple[SharedArray, set[AccessSite]]]:
    """The parts of an array that no access has in common with another part; it alone if there is one."""
    extents: dict[AccessSite, tuple[int, int]] = {}
    for accesses in own:
        active, site = accesses.addresses[accesses.addresses != NOWHERE], accesses.site.in_kernel
        if not len(active):
            continue
        begin, end = extents.get(site, (array.base + array.bytes, 0))
        extents[site] = min(begin, int(active.min())), max(end, int(active.max()) + site.width)
    parts: list[tuple[int, int, set[AccessSite]]] = []
    for site, (begin, end) in sorted(extents.items(), key=lambda extent: extent[1]):
        begin -= (begin - array.base) % max(WIDTHS)
        if parts and begin < parts[-1][1]:
            before, last, sites = parts.pop()
            parts.append((before, max(last, end), {*sites, site}))
        else:
            parts.append((begin, end, {site}))
    if len(parts) == 1:
        return [(array, set(extents))]
    return [(_area(array, begin, end), sites) for begin, end, sites in parts]


def _area(array: SharedArray, begin: int, end: int) -> SharedArray:
    """A part of an array, named after its first byte: ``sm+8192``."""
    start = begin - array.base
    return SharedArray(f"{array.name}+{start}" if start else array.name, (end - begin,), 1, begin)


def name_of(array: SharedArray) -> str:
    """The name of the array that one is, or is a part of."""
    return array.name.partition("+")[0]
