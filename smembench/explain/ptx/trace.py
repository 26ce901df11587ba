"""Traces of PTX kernels: blocks of each kind are run, and their accesses become those of a trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from smembench.explain.mistakes import Made, Mistake, Unfollowed, in_shared_memory
from smembench.explain.ptx.content import GlobalArray
from smembench.explain.ptx.kinds import FEW, kinds_in_a_row, kinds_of_grid
from smembench.explain.ptx.lifetimes import out_of_life
from smembench.explain.ptx.machine import Machine
from smembench.explain.ptx.memory import Memory
from smembench.explain.ptx.merged import Merging, merging, widened
from smembench.explain.ptx.misplaced import boxes_outside, misaligned, outside
from smembench.explain.ptx.program import PtxKernel
from smembench.explain.ptx.races import races
from smembench.explain.ptx.records import Record, Traced
from smembench.explain.ptx.registers import Launch
from smembench.explain.requests import NOWHERE, UNSERVED, Accesses, AccessSite, Integers, Merged
from smembench.explain.tiles import TileAccess
from smembench.explain.trace import Sample, SharedArray, Trace
from smembench.launches.ptx_entry import readable
from smembench.model.groups import grouped
from smembench.model.hardware import LINE_BYTES, SECTOR_BYTES, WARP
from smembench.toolchains.source_lines import Lined

MOST_WORK, MOST_WORK_OF_TILES = 100_000, 400_000
"""Instructions of all blocks up to which each is run: a second on a processor of 2020, four where blocks copy tiles."""
_SPACES = {"const": "constant"}


class Chosen(NamedTuple):
    """The clusters to run, and whether to look for their mistakes.

    ``few`` is the number up to which each is run; None for as many as take seconds. With ``kinds`` they are these, with
    the number of clusters that each stands for. Those of a ``persistent`` grid are a few that are evenly spaced.
    """

    few: int | None = None
    kinds: Mapping[tuple[int, ...], int] | None = None
    mistakes: bool = True
    persistent: bool = False


BY_WORK = Chosen()


@dataclass(slots=True)
class _Block:
    """The trace of a cluster, and two keys: its accesses, and the alignment of their addresses in sectors and banks.

    ``made`` are its accesses to shared memory, ``of_global`` those to global memory, and ``merged`` those of which
    ptxas made wider ones.
    """

    accesses: list[Accesses]
    structure: Hashable
    alignment: Hashable
    traced: Traced
    made: list[Made]
    of_global: list[Made]
    merged: set[Merged]


def trace(
    kernel: PtxKernel,
    launch: Launch,
    arrays: Sequence[GlobalArray],
    filename: str,
    lined: Sequence[Lined] | None = None,
    chosen: Chosen = BY_WORK,
) -> Trace:
    """Trace a kernel on one cluster of each kind: a block, unless the launch has clusters of several.

    Args:
        kernel: the kernel.
        launch: grid, block and parameters.
        arrays: the arrays that its parameters point to, ``SPACING`` bytes apart.
        filename: the source file of the lines.
        lined: the loads and stores of the machine code, whose widths the accesses get; None if they are not known.
        chosen: which blocks are run.

    Raises:
        UsageError: for what cannot be traced.
    """
    memory = Memory(kernel, arrays, launch.dynamic_bytes, launch.parameters)
    compiled = Merging({}) if lined is None else merging(kernel, lined)
    machine = Machine(kernel, launch, memory, compiled)
    blocks: dict[tuple[int, ...], _Block] = {}
    steps: list[int] = []

    def block(index: tuple[int, ...]) -> _Block:
        if index not in blocks:
            x, y, z = index
            blocks[index] = _of_block(machine.run((x, y, z)), machine, compiled)
            steps.append(machine.steps)
        return blocks[index]

    tiles_too = block((0, 0, 0)).traced.tiles  # such kernels often number their tiles in an order of their own
    most = MOST_WORK_OF_TILES if tiles_too or chosen.persistent else MOST_WORK

    def few() -> int:
        if memory.has_results:
            return clusters
        return max(FEW, most * len(steps) // sum(steps)) if chosen.few is None else chosen.few

    clusters = prod(launch.clusters)
    kinds, is_sample = chosen.kinds, False
    if kinds is None and chosen.persistent:
        kinds, is_sample = kinds_in_a_row(clusters, few()), few() < clusters
    if not kinds:
        kinds, is_sample = kinds_of_grid(
            launch.clusters, lambda index: block(index).structure, lambda index: block(index).alignment, few
        )
    traced = [block(index) for index in kinds]
    accesses = [
        part._replace(weight=weight * part.weight)
        for one, weight in zip(traced, kinds.values(), strict=True)
        for part in one.accesses
    ]
    tiles: Counter[TileAccess] = Counter()
    for one, weight in zip(traced, kinds.values(), strict=True):
        tiles.update({access: weight * count for access, count in one.traced.tiles.items()})
    mistakes: set[Mistake] = set()
    if chosen.mistakes:
        looked_at = traced[:: max(len(traced) // FEW, 1)] if chosen.persistent else traced
        of_global = {f"block {index}": one.of_global for index, one in zip(kinds, traced, strict=True)}
        raced = races(
            kernel, of_global, in_clusters=machine.block < machine.threads, of_python=filename.endswith(".py")
        )
        mistakes.update(boxes_outside(tiles), raced, *(_mistakes(one, machine) for one in looked_at))
    unfollowed: set[Unfollowed] = set().union(*(one.traced.unfollowed for one in traced))
    if unfollowed:  # behind a branch that was not followed threads may store what others load, and reach a barrier
        mistakes = {mistake for mistake in mistakes if mistake.kind in ("outside", "misaligned", "race")}
    first = {(mistake.line, mistake.kind): mistake for mistake in sorted(mistakes, reverse=True)}
    return Trace(
        tuple(accesses),
        tuple(_shared_arrays(memory)),
        filename,
        tuple(kinds),
        tuple(sorted(first.values())),
        tuple(sorted(unfollowed)),
        unmatched=compiled.unmatched,
        tiles=tiles,
        sampled=Sample(len(kinds) * prod(launch.cluster), prod(launch.grid)) if is_sample else None,
        merged=tuple(
            sorted(set().union(*(one.merged for one in traced)), key=lambda merged: (merged.site.line, merged.width))
        ),
    )


def _of_block(traced: Traced, machine: Machine, compiled: Merging) -> _Block:
    sites = grouped(widened(traced.records, compiled.across), lambda record: (_site(record, machine), record.times))
    threads, padded = machine.threads, -(-machine.threads // WARP) * WARP
    accesses: list[Accesses] = []
    made: list[Made] = []
    of_global: list[Made] = []
    structure: list[Hashable] = []
    alignment: list[Hashable] = []
    merged = set(_merged(sites))
    for (site, times), records in sites.items():
        rows = _possible(site, records, machine, traced)
        structure.append((site, times, len(rows), int(np.count_nonzero(rows != NOWHERE))))
        period = SECTOR_BYTES if site.space == "global" and not site.way else LINE_BYTES
        if site.space in ("shared", "mbarrier") or _is_remote(site):
            inside = machine.memory.places(rows, site.width)
            begun = Made(site, inside, _by_record([record.order for record in records]), records[0].come is not None)
            made.append(begun)
            if begun.begun:
                come = _by_record([record.order if record.come is None else record.come for record in records])
                made.append(Made(site, inside, come))
        if site.space == "global" and not site.way:
            of_global.append(Made(site, rows, _by_record([record.order for record in records])))
        whole = rows
        if padded > threads:
            whole = np.full((len(rows), padded), NOWHERE)
            whole[:, :threads] = rows
        warps = whole.reshape(len(rows), -1, WARP)
        alignment.append(_relative(warps, period).tobytes())
        if site.space == "global" and site.kind == "atomic":
            unites = np.array([id(record.instruction) in compiled.united for record in records])
            warps, united = _united(warps, unites)
            merged.update([Merged(site, site.width)] if united else [])
        accesses.append(Accesses(site, warps, times))
    kinds: Counter[TileAccess] = Counter()
    for access, count in traced.tiles.items():
        kinds[access.alike] += count
    structure.append((frozenset(kinds.items()), frozenset(traced.elements.items())))
    alignment.append(frozenset(traced.tiles.items()))
    barriers = Accesses(
        AccessSite(0, "barrier", "barrier", "", 1),
        np.zeros((traced.barriers, -(-machine.block // WARP), WARP), np.int64),
        1,
    )
    return _Block(
        [*accesses, barriers] if traced.barriers else accesses,
        frozenset(structure),
        hash(tuple(alignment)),
        traced,
        made,
        of_global,
        merged,
    )


def _possible(site: AccessSite, records: Sequence[Record], machine: Machine, traced: Traced) -> Integers:
    """The addresses of a site by record and thread, without those that no GPU accesses, which are noted."""
    rows, memory = _by_record([record.addresses for record in records]), machine.memory
    if (below := rows < NOWHERE).any():  # before the begin of shared memory, where no bank is
        if mistake := outside(memory, site.line, site.space, site.kind, rows[np.argmax(below.any(1))], site.width):
            traced.mistakes.add(mistake)
        rows = np.where(below, NOWHERE, rows)
    if site.space == "global":
        name, lost = memory.by_unknown_pointer(records[0].instruction, rows)
        if lost.any():
            source, remedy = f"a pointer in the structure {name}", "; give the array as a parameter of its own"
            traced.unfollowed.add(Unfollowed(site.line, "an address", source, remedy))
            rows = np.where(lost, NOWHERE, rows)
    if site.space not in UNSERVED and site.way != "bulk":
        odd = (rows & (site.width - 1) != 0) & (rows != NOWHERE)
        if odd.any():
            traced.mistakes.add(misaligned(memory, site, np.where(odd, rows, NOWHERE)[np.argmax(odd.any(1))]))
            rows = np.where(odd, NOWHERE, rows)
    return rows


def _by_record(arrays: Sequence[Integers]) -> Integers:
    """Arrays by thread as the rows of one."""
    return arrays[0][None] if len(arrays) == 1 else np.stack(arrays)


def _relative(warps: Integers, period: int) -> Integers:
    """Addresses by access, warp and lane from the last multiple of a period before each warp's lowest one."""
    active = warps != NOWHERE
    lowest = np.where(active, warps, np.iinfo(warps.dtype).max).min(axis=2, keepdims=True)
    return np.where(active, warps - lowest // period * period, NOWHERE)


def _united(warps: Integers, unites: NDArray[np.bool_]) -> tuple[Integers, bool]:
    """Atomics by access, warp and lane with one lane of those on one address, where that is so; whether any was."""
    active = warps != NOWHERE
    highest = warps.max(axis=2, keepdims=True)
    same = ((warps == highest) | ~active).all(axis=2) & (active.sum(axis=2) > 1) & unites[:, None]
    others = same[..., None] & (np.arange(WARP) != active.argmax(axis=2)[..., None])
    return np.where(others, NOWHERE, warps), bool(same.any())


def _merged(sites: Mapping[tuple[AccessSite, int], Sequence[Record]]) -> Iterator[Merged]:
    for (site, _), (record, *_) in sites.items():
        if record.instruction.root in ("ld", "st") and site.width > record.instruction.bytes:
            yield Merged(replace(site, width=record.instruction.bytes), site.width)


def _is_remote(site: AccessSite) -> bool:
    """True if threads access another block's shared memory; copies in bulk are noted as they bring bytes."""
    return site.space == "distributed" and site.way != "bulk"


def _mistakes(block: _Block, machine: Machine) -> set[Mistake]:
    """The mistakes of a block's threads."""
    of_block = machine.block if machine.block < machine.threads else 0
    of_shared = in_shared_memory(block.made, block.traced.brought, of_block)
    mistakes = {*block.traced.mistakes, *(one for one in of_shared if one.kind != "race" or not machine.has_flags)}
    if of_block:
        mistakes.update(out_of_life(block.traced, of_block, lambda record: _site(record, machine).array))
    for accesses in block.accesses:
        site, active = accesses.site, accesses.addresses[accesses.addresses != NOWHERE]
        if site.space in UNSERVED or not len(active):
            continue
        if not machine.memory.holds(site.space, int(active.min()), int(active.max()) + site.width):
            for row in accesses.addresses.reshape(len(accesses.addresses), -1):
                if mistake := outside(machine.memory, site.line, site.space, site.kind, row, site.width):
                    mistakes.add(mistake)
    return mistakes


def _site(record: Record, machine: Machine) -> AccessSite:
    given = record.instruction
    first = int(record.addresses.max(initial=0))
    if record.space == "branch":
        name = ""
    elif record.space in ("shared", "distributed", "mbarrier"):
        name = readable(machine.memory.shared_name(first, given))
    else:
        array = machine.memory.array_at(first)
        name = array.name if array is not None else record.space
    space = _SPACES.get(record.space, record.space)
    place = given.place.line if space in ("shared", "distributed", "branch") else 0
    return AccessSite(given.called_from.line, space, record.kind, name, record.width, record.way, place)


def _shared_arrays(memory: Memory) -> list[SharedArray]:
    """The variables in shared memory, dynamic ones to its end."""
    arrays = []
    for variable in memory.kernel.variables.values():
        if variable.space == "shared":
            size = variable.bytes or memory.shared_bytes - variable.begin
            itemsize, sides = memory.kernel.shapes.get(variable.name, (1, (size,)))
            shape = sides if variable.bytes else (size // itemsize,)
            arrays.append(SharedArray(readable(variable.name), shape, itemsize, variable.begin))
    return arrays
