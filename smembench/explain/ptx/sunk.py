"""Loads that ptxas moved into a branch, since only what is stored or added under a predicate uses their values.

In PTX the load stands beside accesses of all threads, in the machine code in a region (``memory_instructions.regions``)
inside of theirs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from smembench.explain.ptx.joins import computes
from smembench.explain.ptx.program import Instruction, PtxKernel
from smembench.model.groups import grouped
from smembench.toolchains.memory_instructions import Region
from smembench.toolchains.source_lines import Lined

_KINDS = {"ld": "load", "st": "store"}
_USES = ("st", "red", "atom")
_BARRIERS = ("bar", "barrier")

_Of = tuple[int, str, str, int]
"""A line, a space, a kind and bytes per lane."""


def sunk(kernel: PtxKernel, lined: Sequence[Lined]) -> Mapping[int, Sequence[Instruction]]:
    """By the ``id`` of the last instruction that uses their values: the loads that run for its lanes."""
    compiled = grouped(lined, lambda each: (each.line, each.access.space, each.access.kind, each.access.width))
    regions = {of: {each.region for each in every if not each.access.never} for of, every in compiled.items()}
    pieces = _pieces(kernel)
    readers: dict[str, set[int]] = {}
    for at, piece in enumerate(pieces):
        for name in (name for each in piece for name in _read(kernel, each)):
            readers.setdefault(name, set()).add(at)
    found: dict[int, list[Instruction]] = {}
    for at, piece in enumerate(pieces):
        beside = {region for each in piece if not each.guard for region in regions.get(_of(each), ())}
        for number, load in enumerate(piece):
            own = regions.get(_of(load), set())
            if load.root == "ld" and not load.guard and own and all(_inside(region, beside) for region in own):
                values = {*load.targets}
                uses = _uses(kernel, piece[number + 1 :], values)
                if any(readers.get(name, {at}) != {at} for name in values):
                    continue
                if len({(each.guard, each.negated) for each in uses}) == 1:
                    found.setdefault(id(uses[-1]), []).append(load)
    return found


def _pieces(kernel: PtxKernel) -> list[list[Instruction]]:
    """Code without branches; barriers part no threads."""
    targets: set[int] = {*kernel.labels.values()}
    found: list[list[Instruction]] = [[]]
    for number, each in enumerate(kernel.code):
        if number in targets:
            found.append([])
        found[-1].append(each)
        if each.ends and each.root not in _BARRIERS:
            found.append([])
    return found


def _of(given: Instruction) -> _Of:
    bytes_per_lane = given.bytes if given.root in _KINDS and given.types else 0
    return given.place.line, given.space, _KINDS.get(given.root, ""), bytes_per_lane


def _inside(region: Region, beside: set[Region]) -> bool:
    return any(region > other for other in beside)


def _read(kernel: PtxKernel, given: Instruction) -> set[str]:
    """The registers that an instruction reads."""
    return {given.guard, *given.sources, *(name for text in given.addresses for name in kernel.registers_in(text))}


def _uses(kernel: PtxKernel, code: Sequence[Instruction], values: set[str]) -> list[Instruction]:
    """The guarded stores and atomics that alone use values; none otherwise. Adds to them what is computed from them."""
    found: list[Instruction] = []
    for each in code:
        used = values & _read(kernel, each)
        if not used:
            values -= {*each.targets}
        elif each.root in _USES and each.guard and used <= {*each.sources} and each.guard not in values:
            found.append(each)
        elif computes(each) and not each.guard and not each.ends:
            values |= {*each.targets}
        else:
            return []
    return found
