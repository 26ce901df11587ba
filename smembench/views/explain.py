"""``smembench explain``: accesses as tables, the tile as a picture, and what it means in a sentence."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from rich.console import Console
from rich.text import Text

from smembench.explain.analysis import Explanation
from smembench.explain.costs import Access, ConstantAccess, Costs, DistributedAccess, GlobalAccess, SharedAccess
from smembench.model.groups import grouped
from smembench.model.install import CUDA
from smembench.views.columns import compact, number, scaled
from smembench.views.console import plain
from smembench.views.explain_banks import picture
from smembench.views.explain_cure import at_lines, cure_sections
from smembench.views.explain_tiles import tiles
from smembench.views.sections import Section, table
from smembench.views.table import draw

_SITE: dict[str, Callable[[Access], str]] = {
    "line": lambda access: str(access.site.line),
    "access": lambda access: access.site.kind,
    "array": lambda access: access.site.array,
}

_LONGEST = 400
"""Characters that are shown of a line of the source."""


def print_explanation(
    console: Console, explained: Costs, sections: Sequence[Section], cures: Sequence[str] = (), following: str = ""
) -> None:
    """Mistakes if there are any, what was not followed, the tables of ``sections``, a picture of the tile, cures.

    ``following`` is the command that shows a reader the way on.
    """
    for remark, style in _remarks(explained):
        console.print(Text(remark, style), soft_wrap=True)
    draw(console, sections)
    for place, line in enumerate(picture(explained)):
        if not place:
            console.print()
        line.plain = plain(console, line.plain)
        console.print(line, soft_wrap=True)
    for remedy in cures:
        console.print(Text(plain(console, remedy), "bold green"))
    if following:
        console.print(Text(plain(console, f"next: {following}")), soft_wrap=True)


def tables(explained: Costs, sections: Sequence[Section], cures: Sequence[str] = ()) -> list[Section]:
    """The output of ``print_explanation`` without the picture."""
    remarks = [line for line, _ in _remarks(explained)]
    before = [Section("Mistakes, and what was not followed", [], [], notes=remarks)] if remarks else []
    return [*before, *sections, *cure_sections(cures)]


def _remarks(explained: Costs) -> list[tuple[str, str]]:
    """Mistakes and what was not followed, each with its style."""
    file, trace = Path(explained.trace.filename).name, explained.trace
    wrong = [(f"mistake in {file}, line {one.line}: {one.text}", "bold red") for one in trace.mistakes]
    left = [(f"not followed in {file}, line {one.line}: {one.text}", "bold yellow") for one in trace.unfollowed]
    return [*wrong, *left]


def explanation(explained: Costs) -> list[Section]:
    """A section for the source of the accesses, and one for each memory that the kernel uses, global memory last.

    What the tables mean is below the last one.

    ``of all`` is the share of an access in a launch's wavefronts in shared memory, or in its sectors.
    """
    shared = f", {explained.shared_bytes} bytes of shared memory" if explained.shared_bytes else ""
    accesses = (*explained.shared, *explained.constant, *explained.memory, *explained.distributed)
    sources = [(access.site.line, access.source) for access in accesses]
    sources += [(tile.access.line, tile.source) for tile in explained.tiles]
    sections = [
        table(
            f"{explained.title} · {explained.threads} threads{shared}",
            dict.fromkeys(sorted(sources, key=lambda place: place[0])),
            {"line": lambda place: str(place[0]), "source": lambda place: _cut(place[1])},
            words=("line", "source"),
        )
    ]
    if explained.shared:
        wavefronts = sum(access.of_all for access in explained.shared)
        of_shared: dict[str, Callable[[SharedAccess], str]] = {
            "wavefronts\nper request": lambda access: number(access.wavefronts),
            "conflict": conflict,
            "of all": lambda access: _percent(access.of_all / wavefronts),
        }
        heading = "Shared memory, wavefronts of up to one word per bank"
        sections.append(table(heading, explained.shared, {**_SITE, **of_shared}, words=(*_SITE, "conflict")))
    if explained.distributed:
        of_others: dict[str, Callable[[DistributedAccess], str]] = {
            "requests": lambda access: str(access.requests),
            "bytes\nper request": lambda access: number(access.bytes / access.requests),
            "bytes": lambda access: scaled(access.bytes, "B"),
        }
        heading = "Shared memory of other blocks of the cluster"
        sections.append(table(heading, explained.distributed, {**_SITE, **of_others}, words=_SITE))
    if explained.tiles:
        flops = explained.work.flops if isinstance(explained, Explanation) else 0
        sections.append(tiles(explained.tiles, flops))
    if explained.constant:
        of_constant: dict[str, Callable[[ConstantAccess], str]] = {
            "addresses\nper request": lambda access: number(access.addresses)
        }
        heading = "Constant memory, one address at a time"
        sections.append(table(heading, explained.constant, {**_SITE, **of_constant}, words=_SITE))
    if explained.memory:
        sectors = sum(access.of_all for access in explained.memory)
        of_global: dict[str, Callable[[GlobalAccess], str]] = {
            "sectors\nper request": lambda access: number(access.sectors),
            "ideal": lambda access: number(access.ideal),
            "efficiency": lambda access: _percent(access.efficiency),
            "of all": lambda access: _percent(access.of_all / sectors),
        }
        heading = "Global memory, sectors of 32 bytes"
        sections.append(table(heading, explained.memory, {**_SITE, **of_global}, words=_SITE))
    *before, last = sections
    return [*before, replace(last, sentence=" ".join(filter(None, (last.sentence, *sentences(explained)))))]


def _cut(source: str) -> str:
    return source if len(source) <= _LONGEST else f"{source[:_LONGEST]} …"


def conflict(access: SharedAccess) -> str:
    """``none``, ``broadcast`` or ``32-way``."""
    if access.broadcast:
        return "broadcast"
    return "none" if access.degree == 1 else f"{number(access.degree).rstrip('0').rstrip('.')}-way"


def sentences(explained: Costs) -> list[str]:
    """The meaning of the tables in sentences, shared memory first."""
    texts = [*_sampled(explained), *_shared(explained), *_compiled(explained)]
    sites = {accesses.site for accesses in explained.trace.accesses}
    if explained.tiles and not any(site.space in ("shared", "distributed") for site in sites):
        texts.append("No thread accesses shared memory: the TMA writes its tiles, and the tensor cores read them.")
    if atomics := explained.shared_atomics:
        texts.append(f"Atomics on {' and '.join(atomics)} are not counted: no rule tells their wavefronts.")
    if isinstance(explained, Explanation):
        texts += [
            f"The kernel's {space} {kind}s are not in these figures: data decide whether a thread makes them, and are "
            "0 in a trace, or all blocks of a launch share them out."
            for space, kind in explained.untraced
        ]
        if explained.waits:
            texts.append("Blocks wait for each other: timing decides how often they load meanwhile, here once.")
    for addresses, requests in grouped(explained.constant, lambda request: compact(request.addresses)).items():
        split = f"split into {addresses}" if requests[0].addresses > 1 else "a broadcast"
        lines = [request.site.line for request in requests]
        where = f" in {at_lines(lines)}" if all(lines) else ""  # PTX need not say
        texts.append(f"Each request to constant memory{where} is {split}.")
    texts += _coalescing(explained.memory, partial=bool(explained.trace.unfollowed))
    texts += _traffic(explained)
    if (resident := explained.occupancy) is not None:
        blocks = f"{resident.blocks} block{'s' if resident.blocks > 1 else ''}"
        texts.append(
            f"Occupancy {100 * resident.fraction:.0f} %: {blocks} or {resident.warps} of {resident.max_warps} warps "
            f"per multiprocessor, limited by {resident.limiter}{_registers(explained)}."
        )
    if explained.code is not None and (loop := explained.code.loop) is not None:
        waiting = loop.cycles - loop.instructions
        texts.append(
            f"The main loop has {loop.instructions} instructions, {loop.multiply_adds} of them multiply-adds. A warp "
            f"issues them in {loop.cycles} cycles, {waiting} of which are register bank conflicts: at most "
            f"{100 * loop.bound:.0f} % of the arithmetic peak."
        )
    return texts


def _sampled(explained: Costs) -> list[str]:
    """The size of the sample, where the figures are estimates."""
    sample = explained.trace.sampled
    if sample is None:
        return []
    return [f"The figures are estimates from {sample.run:,} of {sample.of:,} blocks, which access memory differently."]


def _shared(explained: Costs) -> list[str]:
    """A sentence on bank conflicts, if shared memory is used."""
    if not explained.shared:
        return []
    sides = {kind: explained.degree(kind) for kind in ("load", "store")}
    bad = [
        f"{kind}s take {number(degree)} times the wavefronts they need"
        for kind, degree in sides.items()
        if degree and degree > 1
    ]
    free = "Shared loads and stores are" if explained.shared_atomics else "Shared memory is"
    free = "The shared accesses that were followed are" if explained.trace.unfollowed else free
    return [f"In shared memory {' and '.join(bad)}." if bad else f"{free} free of bank conflicts."]


def _compiled(explained: Costs) -> list[str]:
    """Differences between the accesses of machine code and source; without machine code, the compiler of the PTX."""
    texts = [f"The PTX is that of {explained.compiler}, not of NVIDIA's compilers."] if explained.compiler else []
    for merged in explained.trace.merged:
        site, count = merged.site, merged.width // merged.site.width
        several = f"{count} {site.kind}s of {8 * site.width} bits are one of {8 * merged.width}"
        made = "atomics of a request on one element are one" if site.kind == "atomic" else several
        texts.append(f"Merged by the compiler: {made} ({site.array}, line {site.line}).")
    for space, kind in explained.trace.unmatched:
        texts.append(
            f"The machine code has {kind}s of other widths in {space} memory than the source; they are counted as in "
            "the source."
        )
    for name, idle in explained.idle.items():
        whole = idle + sum(access.requests for access in explained.shared if access.site.name == name)
        of = name if " " in name else f"shared {name}"
        texts.append(
            f"{_percent(idle / whole)} of the requests of {of}s are by warps without an active lane, which take no "
            "wavefront: a predicate guards them, not a branch."
        )
    return texts


def _coalescing(accesses: Sequence[GlobalAccess], *, partial: bool) -> list[str]:
    """A sentence for the loads or the stores of an array that move more bytes than they request; L2 does atomics.

    ``partial``: whether others were not followed.
    """
    texts = []
    moved = [access for access in accesses if access.site.kind != "atomic"]
    for (kind, array), of_array in grouped(moved, lambda access: (access.site.kind, access.site.array)).items():
        share = _percent(fmean([access.efficiency for access in of_array], [access.of_all for access in of_array]))
        if share != _percent(1):
            texts.append(f"{kind.capitalize()}s of {array} use {share} of the bytes that they move.")
    followed = " that was followed" if partial else ""
    every = "access" if len(moved) == len(accesses) else "load and store"
    return texts or [f"Every global {every}{followed} is fully coalesced."][: len(moved)]


def _traffic(explained: Costs) -> list[str]:
    """Sentences for arrays whose elements threads read several times or update."""
    texts = []
    if counts := [f"{load.array} {_times(load.per_element)}" for load in explained.loads if load.per_element >= 2]:
        moved = scaled(explained.load_bytes, "B")
        texts.append(f"Threads read {' and '.join(counts)}; all loads together move {moved} in sectors.")
    for one in (one for one in explained.traffic if one.kind == "atomic"):
        made = f"{one.accesses} atomic{'s' if one.accesses > 1 else ''}"
        same = f"; up to {one.together} lanes of a request update the same element" if one.together > 1 else ""
        texts.append(f"Threads update {one.array} with {made}{same}.")
    return texts


def _percent(share: float) -> str:
    if 0 < share < 0.001:
        return "< 0.1 %"
    return f"{100 * share:.0f} %" if share >= 0.01 else f"{100 * share:.1f} %"


def _times(count: float) -> str:
    return f"{round(count)} times" if math.isclose(count, round(count)) else f"{number(count)} times"


def _registers(explained: Costs) -> str:
    """The registers that the occupancy counts, and spills."""
    if explained.code is None:
        reason = f": no CUDA compiler found: {CUDA}" if isinstance(explained, Explanation) else ""
        return f"; registers unknown{reason}"
    local = explained.code.spilled_bytes
    of_memory = f" and {local} bytes of local memory" if local else ""
    return f", at {explained.code.registers} registers per thread{of_memory}"
