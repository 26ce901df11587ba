"""Instructions that access memory, as functions of the threads that run them; each execution is recorded."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from smembench.explain.mistakes import Unfollowed
from smembench.explain.ptx.copy_groups import CopyGroups
from smembench.explain.ptx.fragments import fragment
from smembench.explain.ptx.needed import Needed
from smembench.explain.ptx.program import Instruction, elements
from smembench.explain.ptx.records import Progress, Record, Traced
from smembench.explain.ptx.registers import Mask, Registers
from smembench.explain.ptx.values import Run
from smembench.explain.requests import NOWHERE, WAITING, Integers
from smembench.launches.ptx_entry import TYPES
from smembench.model.hardware import WARP

MBARRIER_BYTES = 8
_KINDS = {
    **dict.fromkeys(("ld", "ldu"), ("load", "")),
    "st": ("store", ""),
    **dict.fromkeys(("atom", "red"), ("atomic", "")),
    "cp": ("store", "asynchronous"),
    "ldmatrix": ("load", "matrix"),
    "stmatrix": ("store", "matrix"),
}
"""The kind and the way of an access site, by instruction."""


class _Made(NamedTuple):
    """An instruction's access: the space, and the kind, bytes per lane and way of an access site."""

    space: str
    kind: str
    width: int
    way: str = ""


class Accesses:
    """Makes functions of instructions that access memory.

    Attributes:
        traced: the block's records so far.
        order: ``WARP_SYNCS`` times the barriers that each thread has passed, and its ``syncwarp`` since the last; a new
            array after each, because records refer to it.
    """

    def __init__(
        self, registers: Registers, needed: Needed, widths: Mapping[int, int], waiting: Collection[int]
    ) -> None:
        self.traced = Traced()
        self.order = np.zeros(registers.threads, np.int64)
        self._registers, self._needed, self._waiting = registers, needed, waiting
        self._come: dict[int, Integers] = {}
        self._unknown: set[str] = set()
        self._groups = CopyGroups(registers)
        self._widths = {id(registers.kernel.code[number]): width for number, width in widths.items()}

    def enter(self) -> None:
        """Begin a block."""
        self.traced = Traced()
        self.order = np.zeros(self._registers.threads, np.int64)
        self._come.clear()
        self._unknown.clear()
        self._groups.enter()

    @property
    def progress(self) -> Progress:
        """The progress of the block."""
        return Progress(len(self.traced.records), self.traced.barriers, self.order, dict(self._come))

    @progress.setter
    def progress(self, to: Progress) -> None:
        self.traced.barriers, self.order, self._come = to.barriers, to.order, dict(to.come)

    def of_memory(self, given: Instruction) -> Run | None:
        """A function that makes an instruction's accesses; None if it makes none.

        Raises:
            UsageError: for an instruction that is not traced.
        """
        if given.root == "cp":
            return self._asynchronous_copy(given)
        if given.root in ("ldmatrix", "stmatrix"):
            return self._matrices(given)
        if given.root == "wmma":
            return self._fragment(given)
        return self._plain_access(given)

    def note_unknown(self, given: Instruction, what: str) -> None:
        """Note that ``what`` depends on data that was not given, of the arrays that such values were loaded from."""
        named = sorted(self._unknown)
        source = f"data of {' and '.join(named)}" if len(named) < 3 else "data that was not given"
        source = source if named else "a value that only a run of the kernel has"
        remedy = "; give its data as a .npy file" if len(named) == 1 else ""
        self.traced.unfollowed.add(Unfollowed(given.called_from.line, what, source, remedy))

    def give_unknown(self, given: Instruction, mask: Mask | None) -> None:
        """Write what is not known to an instruction's targets, if anything depends on them."""
        for name in given.targets if self._needed.wants(given) else ():
            self._registers.write(name, self._registers.nothing(name), mask, self._registers.everyone)

    def note_branch(self, given: Instruction, mask: Mask) -> None:
        """Note that threads come to a place where an access of theirs may be skipped, or made by some lanes."""
        self._come[id(given)] = self._come.get(id(given), 0) + _warps(mask)

    def note_made(self, given: Instruction, mask: Mask) -> None:
        """Note that threads make such an access."""
        self._come[id(given)] = self._come.get(id(given), 0) - _warps(mask)

    def note_idle(self, given: Instruction) -> None:
        """Record the warps that came to an access, none of whose lanes made it."""
        kind, way = _KINDS[given.root]
        idle = np.repeat(self._come.get(id(given), np.zeros(1, np.int64)), WARP)[: self._registers.threads]
        for time in range(idle.max(initial=0)):
            addresses = np.where(idle > time, 0, NOWHERE)
            self.traced.records.append(Record(given, "branch", kind, 1, way, addresses, self.order))

    def note_bulk(self, given: Instruction, mask: Mask, begin: int, count: int) -> None:
        """Record a copy of ``count`` bytes from a block's shared memory if it goes to another block's."""
        if self._registers.memory.located("shared", np.full(len(mask), begin), mask)[0] == "distributed":
            self._note(given, _Made("shared", "store", count, "bulk"), np.full(len(mask), begin), mask)

    def of_mbarrier(self, given: Instruction) -> Integers:
        """The address of a barrier in shared memory, by thread."""
        address, _ = self._registers.address(given.addresses[-1])
        away = self._registers.memory.window("shared") if given.space == "generic" else 0
        at: Integers = self._registers.spread(address()) - away
        return at

    def note_mbarrier(self, given: Instruction, mask: Mask | None, kind: str) -> None:
        """Record that threads set up a barrier in shared memory, or use one, for races alone."""
        at = self.of_mbarrier(given)
        row = at.copy() if mask is None else np.where(mask, at, NOWHERE)
        self.traced.records.append(Record(given, "mbarrier", kind, MBARRIER_BYTES, "", row, self.order))

    def keep(self, load: Instruction, mask: Mask | None) -> None:
        """Keep of the last access by a load the lanes of a mask alone."""
        last = next((record for record in reversed(self.traced.records) if record.instruction is load), None)
        if last is not None and mask is not None:
            last.addresses[~mask] = NOWHERE

    def _plain_access(self, given: Instruction) -> Run:
        kind, _ = _KINDS[given.root]
        types = given.types
        if not types:
            raise self._registers.refused(given.called_from.line, given.opcode)
        element = np.dtype(TYPES[types[-1]])
        count = given.elements
        way = WAITING if id(given) in self._waiting and kind == "load" else ""
        way = "asynchronous" if "async" in given.parts else way
        made = _Made(given.space, kind, self._widths.get(id(given), given.bytes), way)
        (address, in_address), *_ = [self._registers.address(text) for text in given.addresses]
        wanted = self._needed.wants(given)
        stores = kind != "load" and self._needed.follows(given)
        values = self._stored(given, element) if stores else []
        targets = elements(given.operands[0]) if given.root in ("ld", "ldu", "atom") else [""] * count

        def access(mask: Mask | None) -> None:
            mask = self.followed(given, mask, in_address)
            addresses = self._registers.spread(address())
            operands = [value() for value in values]
            unknown = self._registers.unknown_in(given.sources) if stores else None
            for part in self._registers.memory.apart(made.space, addresses, mask):
                access_space(part, addresses, operands, unknown)

        def access_space(mask: Mask | None, addresses: Integers, operands: Sequence[Any], unknown: Mask | None) -> None:
            space, inside = self._note(given, made, addresses, mask)
            for number, target in enumerate(targets):
                at = inside + number * element.itemsize
                if stores and kind == "atomic":
                    combined = operands[number : number + 1] if len(targets) > 1 else operands
                    value, missing = self._registers.memory.update(given.parts, space, at, combined, (mask, unknown))
                elif wanted:
                    value, missing = self._loaded(space, at, element, mask)
                if wanted and target != "_":
                    self._registers.write(target, value, mask, missing)
                if stores and kind == "store":
                    self._registers.memory.store(space, at, operands[number], (mask, unknown))

        return access

    def _loaded(self, space: str, at: Integers, element: np.dtype[Any], mask: Mask | None) -> tuple[Any, Any]:
        """The loaded values, and where they are unknown; the names of arrays without data are kept."""
        value, missing = self._registers.memory.load(space, at, element, mask)
        if missing is not None:
            self._unknown |= self._registers.memory.without_data(space, at, mask)
        return value, missing

    def _stored(self, given: Instruction, element: np.dtype[Any]) -> list[Callable[[], Any]]:
        """The values that an instruction stores, or those that an atomic one combines with what is there."""
        others = [text for text in given.operands if not text.startswith("[")]
        texts = others if given.root in ("st", "red") else others[1:]
        if given.root == "st" or (texts and texts[0].startswith("{")):
            texts = elements(texts[0])
        number = element.str[1:] if element.kind != "V" else "u8"
        return [self._registers.operand(text, number) for text in texts]

    def followed(self, given: Instruction, mask: Mask | None, names: Sequence[str]) -> Mask | None:
        """The threads of a mask, None for all, that know the addresses in these registers; the others are noted."""
        unknown = self._registers.unknown_in(names)
        if unknown is None:
            return mask
        inside = np.ones(self._registers.threads, np.bool_) if mask is None else mask
        if (inside & unknown).any():
            self.note_unknown(given, "an address")
        return inside & ~unknown

    def _note(self, given: Instruction, made: _Made, addresses: Integers, mask: Mask | None) -> tuple[str, Integers]:
        """Record an access; the space, and the addresses in it."""
        space, inside = self._registers.memory.located(made.space, addresses, mask)
        if made.width and space in ("shared", "distributed", "global", "const"):
            row = inside.copy() if mask is None else np.where(mask, inside, NOWHERE)
            self.traced.records.append(Record(given, space, made.kind, made.width, made.way, row, self.order))
        return space, inside

    def _asynchronous_copy(self, given: Instruction) -> Run | None:
        if "async" not in given.parts:
            return None
        if not given.addresses or "mbarrier" in given.parts:
            return self._groups.ordering(given, lambda: self.order)
        (to, in_to), (of, in_of) = [self._registers.address(text) for text in given.addresses[:2]]
        others = [text for text in given.operands if not text.startswith("[")]
        width = int(others[0], 0)
        limited = len(others) > 1 and "cache_hint" not in given.opcode
        size = self._registers.operand(others[1], "u4") if limited else None

        def copy(mask: Mask | None) -> None:
            mask = self.followed(given, mask, [*in_to, *in_of])
            source, target = (np.broadcast_to(address(), self._registers.threads) for address in (of, to))
            read = mask
            if size is not None:
                some = np.broadcast_to(size() > 0, self._registers.threads)
                read = some if mask is None else some & mask
            if read is None or read.any():
                self._note(given, _Made("global", "load", width, "asynchronous"), source, read)
            if mask is None or mask.any():
                made = _Made("shared", "store", width, "asynchronous")
                space, inside = self._note(given, made, target, mask)
                self._registers.memory.forget(space, inside, width, mask)
                if self.traced.records and self.traced.records[-1].instruction is given:
                    self.traced.records[-1] = self.traced.records[-1]._replace(come=self._groups.begin(mask))

        return copy

    def _matrices(self, given: Instruction) -> Run:
        """``ldmatrix`` and ``stmatrix``: each matrix has eight rows, by the addresses of eight lanes."""
        address, in_address = self._registers.address(given.addresses[0])
        count = next((int(part[1]) for part in given.parts if re.fullmatch(r"x[124]", part)), 1)
        lanes = np.arange(self._registers.threads) % WARP < 8 * count
        made = _Made("shared", "load" if given.root == "ldmatrix" else "store", 16, "matrix")

        def matrices(mask: Mask | None) -> None:
            mask = self.followed(given, mask, in_address)
            rows = lanes if mask is None else lanes & mask
            self._note(given, made, self._registers.spread(address()), rows)
            self.give_unknown(given, mask)

        return matrices

    def _fragment(self, given: Instruction) -> Run | None:
        """``wmma.load`` and ``wmma.store``, by the address that the lanes of a warp have in common."""
        if given.parts[1] == "mma":
            return None
        accessed = fragment(given)
        if accessed is None:
            raise self._registers.refused(given.called_from.line, given.opcode)
        address, in_address = self._registers.address(given.addresses[0])
        others = given.operands[given.operands.index(given.addresses[0]) + 1 :]
        pitch = next((text for text in others if not text.startswith("{")), str(accessed.pitch))
        pitch_of = self._registers.operand(pitch, "u4")
        warps = -(-self._registers.threads // WARP)
        kind = "load" if given.parts[1] == "load" else "store"

        def access(mask: Mask | None) -> None:
            mask = self.followed(given, mask, in_address)
            first = np.asarray(self._registers.spread(address()))
            bytes_between = np.asarray(pitch_of()).astype(np.int64) * accessed.itemsize
            for piece in accessed.pieces:
                lines, places = (np.tile(values, warps)[: len(first)] for values in (piece.lines, piece.places))
                who = lines != NOWHERE if mask is None else mask & (lines != NOWHERE)
                made = _Made(given.space, kind, piece.width, piece.way)
                self._note(given, made, first + lines * bytes_between + places, who)
            self.give_unknown(given, mask)

        return access


def _warps(mask: Mask) -> Integers:
    """An array by warp: 1 if any of its threads is in a mask, else 0."""
    return np.logical_or.reduceat(mask, np.arange(0, len(mask), WARP)).astype(np.int64)
