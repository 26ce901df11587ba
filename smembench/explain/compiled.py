"""Accesses as the compiler merges them: neighbouring ones of a thread become one that is wider.

The machine code has the widths of its loads and stores, a trace the addresses. If the code has loads of 128 bits that
the source does not have, those of an access site are merged whose consecutive accesses by every thread lie side by side
and begin at a multiple of 16 bytes. That is believed if the trace then has the widths of the code. Otherwise only some
accesses of a site may lie side by side, as in one step of an unrolled loop; merging those is believed if the trace then
has as many accesses of each width as the code. Otherwise nothing is merged, and ``Trace.unmatched`` says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from smembench.explain.requests import NOWHERE, Accesses, AccessSite, Merged
from smembench.explain.trace import Trace
from smembench.model.groups import grouped
from smembench.toolchains.memory_instructions import UNREAD, MemoryInstruction

_Widths = Mapping[AccessSite, int]
"""Bytes per lane of the accesses that the compiler merges, by site."""


@dataclass(frozen=True, slots=True)
class _Merging:
    """The merging at a site: bytes per merged access, and the first access of each; None for all."""

    width: int
    begins: tuple[int, ...] | None = None


def as_compiled(traces: Sequence[Trace], code: Mapping[MemoryInstruction, int]) -> list[Trace]:
    """Traces of one kernel, with the accesses that its machine code has; ``code`` counts its instructions."""
    merging: dict[AccessSite, _Merging] = {}
    unmatched: list[tuple[str, str]] = []
    for space, kind in product(("shared", "global"), ("load", "store")):
        accesses = [
            made for trace in traces for made in trace.accesses if (made.site.space, made.site.kind) == (space, kind)
        ]
        compiled: Counter[int] = Counter()
        for op, count in code.items():
            if (op.space, op.kind, op.never) == (space, kind, False):
                compiled[op.width] += count
        widths = _widths(accesses, {*compiled})
        if widths is not None:
            merging.update({site: _Merging(width) for site, width in widths.items()})
        elif some := _some(accesses, compiled):
            merging.update(some)
        else:
            unmatched.append((space, kind))
    return [_merged(trace, merging, tuple(unmatched)) for trace in traces]


def _widths(accesses: Sequence[Accesses], compiled: set[int]) -> _Widths | None:
    """The widths of the sites that are merged, if any; None if the accesses do not have the widths of the code."""
    by_site = grouped(accesses, lambda made: made.site)
    source = {site.width for site in by_site}
    # Narrower ones than the source's belong to paths that the trace did not take, such as edges.
    new = {width for width in compiled - source if width > min(source, default=width)}
    widths: dict[AccessSite, int] = {}
    if UNREAD in compiled:
        return widths
    for site, members in by_site.items():
        for width in sorted(new if site.width in compiled else compiled, reverse=True):
            if width > site.width and all(_side_by_side(made, width) for made in members):
                widths[site] = width
                break
    after = {widths.get(site, site.width) for site in by_site}
    return widths if new | (source & compiled) <= after <= compiled else None


def _side_by_side(accesses: Accesses, width: int) -> bool:
    """True if the consecutive accesses of every thread that make ``width`` bytes can be one."""
    count = width // accesses.site.width
    if len(accesses.addresses) % count:
        return False
    groups = accesses.addresses.reshape(-1, count, *accesses.addresses.shape[1:])
    first = groups[:, :1]
    offsets = accesses.site.width * np.arange(count)[:, None, None]
    aligned = (first == NOWHERE) | (first % width == 0)
    return bool(aligned.all() and (groups == np.where(first == NOWHERE, NOWHERE, first + offsets)).all())


def _some(accesses: Sequence[Accesses], compiled: Counter[int]) -> dict[AccessSite, _Merging]:
    """Accesses of sites that are merged in part, if the code then has as many of each width; else none.

    Only of sites that every thread passes equally often in all traces, and of one new width.
    """
    by_site = grouped(accesses, lambda made: made.site)
    new = {*compiled} - {site.width for site in by_site}
    if len(new) != 1 or any(len({len(made.addresses) for made in members}) != 1 for members in by_site.values()):
        return {}
    (width,) = new
    after: Counter[int] = Counter()
    merging = {}
    for site, members in by_site.items():
        times, begins = len(members[0].addresses), _begins(members, width) if width > site.width else ()
        after += Counter({site.width: times - len(begins) * (width // site.width), width: len(begins)})
        if begins:
            merging[site] = _Merging(width, begins)
    return merging if after == compiled else {}


def _begins(members: Sequence[Accesses], width: int) -> tuple[int, ...]:
    """The first access of each group at a site that lies side by side in all traces, in order."""
    count, begins, at = width // members[0].site.width, [], 0
    while at + count <= len(members[0].addresses):
        parts = [made._replace(addresses=made.addresses[at : at + count]) for made in members]
        together = all(_side_by_side(part, width) for part in parts)
        if together and any((part.addresses != NOWHERE).any() for part in parts):
            begins.append(at)
        at += count if begins[-1:] == [at] else 1
    return tuple(begins)


def _merged(trace: Trace, merging: Mapping[AccessSite, _Merging], unmatched: tuple[tuple[str, str], ...]) -> Trace:
    accesses: list[Accesses] = []
    for made in trace.accesses:
        how = merging.get(made.site, _Merging(made.site.width))
        wider, every = replace(made.site, width=how.width), how.width // made.site.width
        if how.begins is None:
            accesses.append(made._replace(site=wider, addresses=made.addresses[::every]))
            continue
        inside = {begin + offset for begin in how.begins for offset in range(every)}
        others = [at for at in range(len(made.addresses)) if at not in inside]
        accesses.append(made._replace(site=wider, addresses=made.addresses[[*how.begins]]))
        accesses.append(made._replace(addresses=made.addresses[others]))
    merged = tuple(Merged(site, how.width) for site, how in merging.items())
    return replace(trace, accesses=tuple(accesses), merged=merged, unmatched=unmatched)
