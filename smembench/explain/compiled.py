"""What the compiler made of a kernel's accesses: neighbouring ones of a thread become one that is wider.

The machine code tells the widths of its loads and stores, a trace the addresses. If the code has loads of 128 bits that
the source does not have, those of an access site are merged whose consecutive accesses by every thread lie side by side
and begin at a multiple of 16 bytes. That is believed if the trace then has the widths of the code. Otherwise nothing is
merged, and ``Trace.unmatched`` says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from smembench.explain.requests import NOWHERE, Accesses, AccessSite, Merged
from smembench.explain.trace import Trace
from smembench.toolchains.memory_instructions import UNREAD, MemoryInstruction

_Widths = Mapping[AccessSite, int]
"""Bytes per lane of the accesses that the compiler merges, by site."""


def as_compiled(traces: Sequence[Trace], code: Iterable[MemoryInstruction]) -> list[Trace]:
    """Traces of one kernel, with the accesses that its machine code has."""
    instructions = list(code)
    widths: dict[AccessSite, int] = {}
    unmatched: list[tuple[str, str]] = []
    for space, kind in product(("shared", "global"), ("load", "store")):
        accesses = [
            each for trace in traces for each in trace.accesses if (each.site.space, each.site.kind) == (space, kind)
        ]
        compiled = {each.width for each in instructions if (each.space, each.kind, each.never) == (space, kind, False)}
        found = _widths(accesses, compiled)
        if found is None:
            unmatched.append((space, kind))
        else:
            widths.update(found)
    return [_merged(trace, widths, tuple(unmatched)) for trace in traces]


def _widths(accesses: Sequence[Accesses], compiled: set[int]) -> _Widths | None:
    """The widths of the sites that are merged, if any; None if the accesses do not have the widths of the code."""
    by_site: dict[AccessSite, list[Accesses]] = {}
    for each in accesses:
        by_site.setdefault(each.site, []).append(each)
    source = {site.width for site in by_site}
    # Narrower ones than the source's belong to paths that the trace did not take, such as edges.
    new = {width for width in compiled - source if width > min(source, default=width)}
    widths: dict[AccessSite, int] = {}
    if UNREAD in compiled:
        return widths
    for site, found in by_site.items():
        for width in sorted(new if site.width in compiled else compiled, reverse=True):
            if width > site.width and all(_side_by_side(each, width) for each in found):
                widths[site] = width
                break
    after = {widths.get(site, site.width) for site in by_site}
    return widths if new | (source & compiled) <= after <= compiled else None


def _side_by_side(accesses: Accesses, width: int) -> bool:
    """Whether the consecutive accesses of every thread, as many as make ``width`` bytes, can be one."""
    count = width // accesses.site.width
    if len(accesses.addresses) % count:
        return False
    groups = accesses.addresses.reshape(-1, count, *accesses.addresses.shape[1:])
    first = groups[:, :1]
    offsets = accesses.site.width * np.arange(count)[:, None, None]
    aligned = (first == NOWHERE) | (first % width == 0)
    return bool(aligned.all() and (groups == np.where(first == NOWHERE, NOWHERE, first + offsets)).all())


def _merged(trace: Trace, widths: _Widths, unmatched: tuple[tuple[str, str], ...]) -> Trace:
    accesses = []
    for each in trace.accesses:
        width = widths.get(each.site, each.site.width)
        every = width // each.site.width
        accesses.append(each._replace(site=replace(each.site, width=width), addresses=each.addresses[::every]))
    merged = tuple(Merged(site, width) for site, width in widths.items())
    return replace(trace, accesses=tuple(accesses), merged=merged, unmatched=unmatched)
