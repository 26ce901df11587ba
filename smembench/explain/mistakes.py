"""Mistakes that a trace shows, such as indices outside arrays, races, divergent barriers, reads of what nothing wrote.

The threads of a block are ordered by barriers alone, those of a warp by ``syncwarp`` as well. Two accesses to one word
of shared memory by different threads race if nothing orders them and one of them is a store. Atomics do not race with
each other. Nor, here, do stores of one line: threads that have no element of their own often store another's again, and
a trace does not know whether the values are equal. Tiles that wgmma reads are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from smembench.explain.requests import AccessSite, Integers
from smembench.model.hardware import WARP, WORD_BYTES

WARP_SYNCS = 2**20
"""The step of a barrier in the order of a thread's accesses: more than its ``syncwarp`` between two barriers."""
CLUSTER_SYNCS = WARP_SYNCS * 2**20
"""The step of a barrier of a cluster: more than a block's barriers between two of these."""
NEVER = CLUSTER_SYNCS * 2**22
"""The order of events that never happen: behind all others."""

_PLACES = 2**22
"""The hash size of units of memory after a barrier (modulo)."""

_LOAD, _STORE, _ATOMIC = range(3)
_KINDS = {"load": _LOAD, "store": _STORE, "atomic": _ATOMIC}
_VERBS = ("loads", "stores", "adds to")


@dataclass(frozen=True, slots=True, order=True)
class Mistake:
    """A mistake: the line of the source, its kind (outside, misaligned, race, barrier or unwritten), and a sentence."""

    line: int
    kind: str
    text: str


@dataclass(frozen=True, slots=True, order=True)
class Unfollowed:
    """An omission of a trace: the line of the source, what depends on data there, and whose data it is."""

    line: int
    what: str
    source: str
    remedy: str = ""

    @property
    def text(self) -> str:
        """A sentence, with the way out."""
        return f"{self.what} depends on {self.source}{self.remedy}"


class Made(NamedTuple):
    """The accesses at a site of shared memory by threads of a block.

    Attributes:
        addresses: a byte address per access and thread, negative for threads that do not make it.
        order: likewise ``WARP_SYNCS`` times the barriers that the thread has passed, and its ``syncwarp`` since the
            last.
        begun: whether these are the beginnings of copies, by which nothing has come yet.
    """

    site: AccessSite
    addresses: Integers
    order: Integers
    begun: bool = False


class Brought(NamedTuple):
    """Bytes of a shared array that a copy brings which a thread starts, at its place in the order of its accesses.

    ``kind`` is ``load`` of a store in bulk, which takes them from there.
    """

    line: int
    array: str
    begin: int
    bytes: int
    thread: int
    order: int
    kind: str = "store"


class _Touched(NamedTuple):
    """Columns of a table with a row per access, thread and unit of memory."""

    site: Integers
    line: Integers
    kind: Integers
    thread: Integers
    order: Integers
    unit: Integers

    def rows(self, chosen: NDArray[np.bool_] | Integers) -> _Touched:
        return _Touched(*(column[chosen] for column in self))


def in_shared_memory(made: Sequence[Made], brought: Sequence[Brought] = (), block: int = 0) -> list[Mistake]:
    """The races and the reads of what nothing wrote, of one block: one mistake per pair of lines.

    With the threads of a ``block`` they are those of a cluster of such blocks.
    """
    if not made:
        return []
    size = min(WORD_BYTES, *(accesses.site.width for accesses in made))  # bytes of a unit of memory
    tables = [_touched(number, accesses, size) for number, accesses in enumerate(made)]
    sites = [accesses.site for accesses in made]
    for copy in brought:
        tables.append(_filled(len(sites), copy, size))
        sites.append(AccessSite(copy.line, "shared", copy.kind, copy.array, size))
    touched = _at_several_sites(tables, CLUSTER_SYNCS if block else WARP_SYNCS)
    warp = touched.thread // WARP
    of_blocks = ((touched.order // CLUSTER_SYNCS, touched.unit), touched.thread // block) if block else None
    # Blocks are ordered by what waits for several of them, warps by barriers, the threads of a warp by every
    # synchronisation.
    contended = chain(
        () if of_blocks is None else _contended(touched, *of_blocks),
        _contended(touched, (touched.order // WARP_SYNCS, touched.unit), warp),
        _contended(touched, (touched.order, touched.unit, warp), touched.thread),
    )
    mistakes: dict[object, Mistake] = {}
    named: set[frozenset[int]] = set()
    for chosen, member in contended:
        touching = frozenset(touched.site[chosen].tolist())
        if touching in named:
            continue
        if all(pair in mistakes for pair in _pairs_of_lines([sites[number] for number in touching])):
            named.add(touching)
            continue
        rows = touched.rows(chosen)
        writer, other = _pair(rows, member[chosen])
        one, two = (sites[rows.site[row]] for row in (writer, other))
        here, there = (rows.thread[row] for row in (writer, other))
        barrier = "barrier of the cluster" if block and here // block != there // block else "barrier"
        text = (
            f"{thread(here, block)} {_VERBS[rows.kind[writer]]} an element of {one.array}, which "
            f"{thread(there, block)} {_VERBS[rows.kind[other]]} in line {two.line}, with no {barrier} between them"
        )
        mistakes.setdefault((one.line, two.line), Mistake(one.line, "race", text))
    come = [table for number, table in enumerate(tables) if not (number < len(made) and made[number].begun)]
    begun = {accesses.site.array: accesses.site.line for accesses in made if accesses.begun}
    for number, who in _unwritten(tables[: len(made)], come):
        site = sites[number]
        text = f"{thread(who, block)} loads an element of {site.array} that no thread has stored before"
        if site.array in begun:
            text += f", or that a copy in line {begun[site.array]} brings, for which nothing waits"
        mistakes.setdefault(site.line, Mistake(site.line, "unwritten", text))
    return sorted(mistakes.values())


def in_global_memory(blocks: Sequence[Sequence[Made]], names: Sequence[str], *, within: bool) -> list[Mistake]:
    """The races of blocks whose threads nothing but barriers orders, and nothing those of different blocks.

    Args:
        blocks: of each, the accesses to arrays that it stores to.
        names: of each, as in ``block (1, 0, 0)``.
        within: whether to check the threads of one block as well.
    """
    made = [accesses for of_block in blocks for accesses in of_block]
    if not made:
        return []
    size = min(WORD_BYTES, *(accesses.site.width for accesses in made))
    tables = [_touched(number, accesses, size) for number, accesses in enumerate(made)]
    owner = np.repeat(np.arange(len(blocks)), [len(of_block) for of_block in blocks])
    touched = _Touched(*(np.concatenate(column) for column in zip(*tables, strict=True)))
    block = owner[touched.site]
    of_blocks = ((touched.unit,), block, True)
    of_warps = ((block, touched.order // WARP_SYNCS, touched.unit), touched.thread // WARP, False)
    mistakes: dict[object, Mistake] = {}
    for keys, member, between in (of_blocks, of_warps) if within else (of_blocks,):
        for chosen, _ in _contended(touched, keys, member):
            rows = touched.rows(chosen)
            one, two = _pair(rows, member[chosen])
            first, second = (made[rows.site[row]].site for row in (one, two))
            if (first.line, second.line) in mistakes:
                continue
            who, other = thread(rows.thread[one]), thread(rows.thread[two])
            if between:
                who, other = (f"{name} of {names[block[chosen][row]]}" for name, row in ((who, one), (other, two)))
            lack = "nothing that orders blocks" if between else "no barrier between them"
            text = (
                f"{who} {_VERBS[rows.kind[one]]} an element of {first.array}, which {other} {_VERBS[rows.kind[two]]} "
                f"in line {second.line}, with {lack}"
            )
            mistakes[first.line, second.line] = Mistake(first.line, "race", text)
    return sorted(mistakes.values())


def thread(number: np.integer[Any], block: int = 0) -> str:
    """A thread of a block, and its lane; with the threads of a ``block`` one of a cluster of such blocks."""
    if block:
        return f"{thread(number % block)} of block {number // block}"
    return f"thread {number} (lane {number % WARP} of warp {number // WARP})"


def _pairs_of_lines(sites: Sequence[AccessSite]) -> Iterator[tuple[int, int]]:
    """The lines of a writer and another access that may race at these sites."""
    for one, two in product(sites, sites):
        if one.kind != "load" and (one.kind != two.kind or (one.kind == "store" and one.line != two.line)):
            yield one.line, two.line


def _pair(rows: _Touched, member: Integers) -> tuple[int, int]:
    """A row that writes, and one of another member that it races with."""
    for writer in np.flatnonzero(rows.kind != _LOAD):
        raced = rows.kind != rows.kind[writer]
        if rows.kind[writer] == _STORE:
            raced |= rows.line != rows.line[writer]
        raced &= member != member[writer]
        if raced.any():
            break
    return int(writer), int(np.argmax(raced))


def _touched(number: int, made: Made, size: int) -> _Touched:
    """The units of memory, ``size`` bytes each, that the threads touch at a site."""
    active = made.addresses >= 0
    units = made.addresses[active][:, None] // size + np.arange(max(made.site.width // size, 1))
    thread, order = (np.repeat(column, units.shape[1]) for column in (np.nonzero(active)[1], made.order[active]))
    of_all = (number, made.site.line, _KINDS[made.site.kind])
    at, line, kind = (np.broadcast_to(np.array(value, thread.dtype), thread.shape) for value in of_all)
    return _Touched(at, line, kind, thread, order, units.ravel())


def _filled(number: int, brought: Brought, size: int) -> _Touched:
    """The units of memory that a copy fills, or a store takes."""
    units = np.arange(brought.begin // size, -(-(brought.begin + brought.bytes) // size))
    of_all = (number, brought.line, _KINDS[brought.kind], brought.thread, brought.order)
    at, line, kind, thread, order = (np.full_like(units, value) for value in of_all)
    return _Touched(at, line, kind, thread, order, units)


def _at_several_sites(tables: Sequence[_Touched], syncs: int) -> _Touched:
    """The rows whose unit several sites touch between two barriers: in most kernels few, and no others can race.

    ``syncs`` is what such a barrier counts.
    """
    units = 1 + max(int(table.unit.max(initial=0)) for table in tables)
    places = [(table.order // syncs * units + table.unit) % _PLACES for table in tables]
    size = 1 + max(int(place.max(initial=0)) for place in places)
    last = np.full(size, -1, np.int32)
    for number, place in enumerate(places):
        last[place] = number
    several = np.zeros(size, np.bool_)
    for number, place in enumerate(places):
        several[place[last[place] != number]] = True
    chosen = [table.rows(several[place]) for table, place in zip(tables, places, strict=True)]
    return _Touched(*(np.concatenate(column) for column in zip(*chosen, strict=True)))


def _contended(touched: _Touched, keys: tuple[Integers, ...], member: Integers) -> Iterator[tuple[Integers, Integers]]:
    """Numbers of rows with equal ``keys`` that several members have, one of which writes what another accesses.

    With them comes the member of every row.
    """
    if not len(member):
        return
    by = np.lexsort(keys)
    ordered = np.stack(keys)[:, by]
    first = np.flatnonzero(np.append(True, (ordered[:, 1:] != ordered[:, :-1]).any(0)))

    def differ(column: Integers) -> NDArray[np.bool_]:
        values = column[by]
        return np.not_equal(np.minimum.reduceat(values, first), np.maximum.reduceat(values, first))

    kinds = np.bitwise_or.reduceat(1 << touched.kind[by], first)
    mixed = differ(touched.kind) | ((kinds == 1 << _STORE) & differ(touched.line))
    raced = differ(member) & mixed
    for start, end in zip(first[raced], np.append(first[1:], len(by))[raced], strict=True):
        yield by[start:end], member


def _unwritten(tables: Sequence[_Touched], come: Sequence[_Touched]) -> Iterator[tuple[int, np.int64]]:
    """Sites, and a thread each, that load a unit before the synchronisation after which it is first stored.

    ``come`` are those of the tables whose stores are complete.
    """
    first = np.full(1 + max(int(table.unit.max(initial=0)) for table in (*tables, *come)), np.iinfo(np.int64).max)
    for table in come:
        written = table.kind == _STORE
        np.minimum.at(first, table.unit[written], table.order[written])
    for number, table in enumerate(tables):
        early = (table.kind != _STORE) & (table.order < first[table.unit])
        if early.any():
            yield number, table.thread[np.argmax(early)]
