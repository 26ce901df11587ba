"""What the compiler made of a kernel's accesses: neighbouring ones of a thread become one that is wider.

The machine code tells the widths of its loads and stores, a trace the addresses. If the code has loads of 128 bits that
the source does not have, those of an access site are merged whose consecutive accesses by every thread lie side by side
and begin at a multiple of 16 bytes. In code without a loop it may be some of a site's accesses, as many as there are
such loads: in ``sumInterleaved`` those of the first step. That is believed if the trace then has the widths of the
code. Otherwise nothing is merged, and ``Trace.unmatched`` says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from smembench.explain.requests import NOWHERE, Accesses, AccessSite, Merged
from smembench.explain.trace import Trace
from smembench.toolchains.memory_instructions import UNREAD, MemoryInstruction

_Widths = Mapping[AccessSite, int]
"""Bytes per lane of the accesses that the compiler merges, by site."""


def as_compiled(traces: Sequence[Trace], code: Iterable[MemoryInstruction]) -> list[Trace]:
    """Traces of one kernel, with the accesses that its machine code has; of a mapping the values are their numbers."""
    instructions = Counter(code)
    widths: dict[AccessSite, int] = {}
    unmatched: list[tuple[str, str]] = []
    for space, kind in product(("shared", "global"), ("load", "store")):
        accesses = [
            each for trace in traces for each in trace.accesses if (each.site.space, each.site.kind) == (space, kind)
        ]
        compiled = {each for each in instructions if (each.space, each.kind, each.never) == (space, kind, False)}
        once = Counter[int]()
        for each in compiled:
            once[each.width] += instructions[each]
        for each in compiled:
            if not each.once:
                del once[each.width]
        found = _widths(accesses, {each.width for each in compiled}, once)
        if found is None:
            unmatched.append((space, kind))
        else:
            widths.update(found)
    return [_merged(trace, widths, tuple(unmatched)) for trace in traces]


def _widths(accesses: Sequence[Accesses], compiled: set[int], once: Mapping[int, int]) -> _Widths | None:
    """The widths of the sites that are merged, if any; None if the accesses do not have the widths of the code.

    ``once`` has the number of instructions by width, where every warp issues each of them once.
    """
    by_site: dict[AccessSite, list[Accesses]] = {}
    for each in accesses:
        by_site.setdefault(each.site, []).append(each)
    source = {site.width for site in by_site}
    # Narrower ones than the source's belong to paths that the trace did not take, such as edges.
    new = {width for width in compiled - source if width > min(source, default=width)}
    widths: dict[AccessSite, int] = {}
    after: set[int] = set()
    if UNREAD in compiled:
        return widths
    for site, found in by_site.items():
        for width in sorted(new if site.width in compiled else compiled, reverse=True):
            beside = [_side_by_side(each, width) for each in found] if width > site.width else []
            whole = all(each.all() for each in beside)
            if beside and (whole or all(np.count_nonzero(each) == once.get(width) for each in beside)):
                widths[site] = width
                after |= {width} if whole else {width, site.width}
                break
        else:
            after.add(site.width)
    return widths if new | (source & compiled) <= after <= compiled else None


def _side_by_side(accesses: Accesses, width: int) -> NDArray[np.bool_]:
    """Whether consecutive accesses of every thread, as many as make ``width`` bytes, can be one; group by group."""
    count = width // accesses.site.width
    if len(accesses.addresses) % count:
        return np.array([False])
    groups = accesses.addresses.reshape(-1, count, *accesses.addresses.shape[1:])
    first = groups[:, :1]
    offsets = accesses.site.width * np.arange(count)[:, None, None]
    aligned = (first == NOWHERE) | (first % width == 0)
    beside = groups == np.where(first == NOWHERE, NOWHERE, first + offsets)
    found: NDArray[np.bool_] = (aligned & beside).all(axis=(1, 2, 3))
    return found


def _merged(trace: Trace, widths: _Widths, unmatched: tuple[tuple[str, str], ...]) -> Trace:
    accesses = [each for found in trace.accesses for each in _parts(found, widths.get(found.site, found.site.width))]
    merged = tuple(Merged(site, width) for site, width in widths.items())
    return replace(trace, accesses=tuple(accesses), merged=merged, unmatched=unmatched)


def _parts(accesses: Accesses, width: int) -> Iterator[Accesses]:
    """The accesses that are merged, if any, and the others."""
    every = width // accesses.site.width
    beside = np.repeat(_side_by_side(accesses, width), every)
    if every > 1:
        wide = replace(accesses.site, width=width)
        yield accesses._replace(site=wide, addresses=accesses.addresses[beside][::every])
    if every == 1 or not beside.all():
        yield accesses._replace(addresses=accesses.addresses if every == 1 else accesses.addresses[~beside])
