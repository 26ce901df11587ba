"""Loads that ptxas moved into a branch, because only stores and atomics under a predicate use their values.

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
    """The loads that run for the lanes of an instruction, the last user of their values, by its ``id``."""
    compiled = grouped(lined, lambda sass: (sass.line, sass.access.space, sass.access.kind, sass.access.width))
    regions = {of: {sass.region for sass in every if not sass.access.never} for of, every in compiled.items()}
    pieces = _pieces(kernel)
    readers: dict[str, set[int]] = {}
    for at, piece in enumerate(pieces):
        for name in (name for op in piece for name in _read(kernel, op)):
            readers.setdefault(name, set()).add(at)
    by_use: dict[int, list[Instruction]] = {}
    for at, piece in enumerate(pieces):
        beside = {region for op in piece if not op.guard for region in regions.get(_of(op), ())}
        for number, load in enumerate(piece):
            own = regions.get(_of(load), set())
            if load.root == "ld" and not load.guard and own and all(_inside(region, beside) for region in own):
                values = {*load.targets}
                uses = _uses(kernel, piece[number + 1 :], values)
                if any(readers.get(name, {at}) != {at} for name in values):
                    continue
                if len({(use.guard, use.negated) for use in uses}) == 1:
                    by_use.setdefault(id(uses[-1]), []).append(load)
    return by_use


def _pieces(kernel: PtxKernel) -> list[list[Instruction]]:
    """Code without branches; barriers part no threads."""
    targets: set[int] = {*kernel.labels.values()}
    pieces: list[list[Instruction]] = [[]]
    for number, op in enumerate(kernel.code):
        if number in targets:
            pieces.append([])
        pieces[-1].append(op)
        if op.ends and op.root not in _BARRIERS:
            pieces.append([])
    return pieces


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
    uses: list[Instruction] = []
    for op in code:
        used = values & _read(kernel, op)
        if not used:
            values -= {*op.targets}
        elif op.root in _USES and op.guard and used <= {*op.sources} and op.guard not in values:
            uses.append(op)
        elif computes(op) and not op.guard and not op.ends:
            values |= {*op.targets}
        else:
            return []
    return uses
