"""Accesses as ptxas merges them: neighbouring ones of a thread become one that is wider.

PTX and machine code are compared line by line. Loads, or stores, of a line that lie side by side at one register's
address are merged if the line then has its accesses of each width in the proportions of the machine code, which may
have all of them several times, in an unrolled loop. If that leads nowhere and the machine code has wider ones beside
none or those of the line, ptxas has unrolled a loop and merged accesses of several iterations: then those of a thread
between two barriers are merged wherever they lie side by side.

Of a request's atomics on one integer ptxas makes one: a vote elects the lane that makes it for all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from smembench.explain.ptx.program import ADDRESS, Instruction, PtxKernel
from smembench.explain.ptx.records import Record
from smembench.explain.ptx.sunk import sunk
from smembench.explain.requests import NOWHERE
from smembench.model.groups import grouped
from smembench.toolchains.source_lines import Lined

_KINDS = {"ld": "load", "st": "store"}
_WIDER = (16, 8)
"""Bytes per lane of what is made of several accesses, the widest first."""

_COMBINED = {"add", "min", "max", "and", "or", "xor"}
_INTEGERS = {"s32", "u32", "b32", "s64", "u64", "b64"}
"""Operations, and their types, that ptxas carries out between the lanes of a warp first."""

_Of = tuple[int, str, str]
"""A line, a space and a kind."""


class Merging(NamedTuple):
    """The merging of a kernel: ``widths`` are bytes per lane by instruction, 0 if it is counted with another.

    ``unmatched`` are the (space, kind) of lines whose widths are not those of the machine code in any way, ``across``
    the bytes per lane of accesses that are merged across iterations, by line, space and kind. ``guarded`` are the
    accesses to shared memory that the machine code has under a predicate, by number of instruction, ``sunk`` the result
    of the function of this name. ``united`` are the atomics, by ``id``, that one lane makes for all on an element.
    """

    widths: Mapping[int, int]
    unmatched: tuple[tuple[str, str], ...] = ()
    across: Mapping[_Of, int] = {}
    guarded: frozenset[int] = frozenset()
    sunk: Mapping[int, Sequence[Instruction]] = {}
    united: frozenset[int] = frozenset()


def merging(kernel: PtxKernel, lined: Sequence[Lined]) -> Merging:
    """The instructions of a kernel that its machine code has as fewer and wider ones."""
    code = kernel.code
    asked = {number: _of(op) for number, op in enumerate(code) if op.root in _KINDS and not _is_remote(op)}
    numbers = grouped((n for n, of in asked.items() if of[1] in ("shared", "global")), lambda n: asked[n])
    compiled: dict[_Of, Counter[int]] = {}
    for sass in lined:
        if not sass.access.never:
            compiled.setdefault((sass.line, sass.access.space, sass.access.kind), Counter())[sass.access.width] += 1
    widths: dict[int, int] = {}
    across: dict[_Of, int] = {}
    unmatched = set()
    for of, members in numbers.items():
        counts = compiled.get(of, Counter())
        wider = _merged(code, members, counts)
        if wider is not None:
            widths.update(wider)
        elif (wide := _across({code[number].bytes for number in members}, counts)) is not None:
            across[of] = wide
        else:
            unmatched.add((of[1], of[2]))
    # An instruction for several lines has one of them here, and maybe another in machine code: widths alone tell.
    written = _widths((asked[number], code[number].bytes) for number in asked)
    made = _widths((of, width) for of, counts in compiled.items() for width in counts)
    others = [key for key in unmatched if not made.get(key, set()) <= written[key]]
    guarded, united = frozenset(_guarded(code, lined)), frozenset(_united(code, lined))
    return Merging(widths, tuple(sorted(others)), across, guarded, sunk(kernel, lined), united)


def _guarded(code: Sequence[Instruction], lined: Sequence[Lined]) -> Iterator[int]:
    """Copies, and the accesses to shared memory that are under a predicate in most of their places in machine code.

    A line's instructions of a kind have their order, also where a loop is unrolled.
    """
    shared = (sass for sass in lined if sass.access.space == "shared" and not sass.access.never)
    compiled = grouped(shared, lambda sass: (sass.line, sass.access.kind))
    kinds = {**_KINDS, "cp": "store", "ldmatrix": "load", "stmatrix": "store"}
    asked = {
        n: kinds[op.root]
        for n, op in enumerate(code)
        if op.root in kinds and op.addresses and (op.root == "cp" or not _is_remote(op))
    }
    of_lines = grouped(
        (n for n in asked if code[n].space in ("shared", "generic")), lambda n: (code[n].place.line, asked[n])
    )
    for of, members in of_lines.items():
        for number, mine in _guards(members, compiled.get(of, ())):
            if code[number].root == "cp" or 2 * sum(mine) > len(mine):
                yield number


def _united(code: Sequence[Instruction], lined: Sequence[Lined]) -> Iterator[int]:
    """The atomics on integers that a lane makes which a vote elects: under a predicate in all of their places."""
    if not any(sass.access.space == "vote" for sass in lined):
        return
    compiled = grouped((sass for sass in lined if sass.access.kind == "atomic"), lambda sass: sass.line)
    asked = (n for n, op in enumerate(code) if op.root in ("atom", "red") and op.space in ("global", "generic"))
    for line, members in grouped(asked, lambda n: code[n].place.line).items():
        for number, mine in _guards(members, compiled.get(line, ())):
            parts = code[number].parts
            if mine and all(mine) and _COMBINED.intersection(parts) and parts[-1] in _INTEGERS:
                yield id(code[number])


def _guards(members: Sequence[int], compiled: Sequence[Lined]) -> Iterator[tuple[int, list[bool]]]:
    """Whether the machine code has each of a line's instructions of a kind under a predicate, in each of its places."""
    guards = [sass.access.guarded for sass in compiled]
    for place, number in enumerate(members):
        yield number, guards[place :: len(members)] if len(guards) % len(members) == 0 else guards[place : place + 1]


def skipped(kernel: PtxKernel, guarded: Collection[int]) -> dict[int, list[Instruction]]:
    """The ``guarded`` accesses that a branch and no branch behind it may skip, by the branch's ``id``."""
    forward = {
        number: target
        for number, op in enumerate(kernel.code)
        if op.root == "bra" and (target := kernel.labels[op.operands[-1]]) > number
    }
    branches = [number for number in forward if kernel.code[number].guard]
    jumps = [number for number in forward if not kernel.code[number].guard]

    def skips(branch: int, number: int) -> bool:
        """True if threads that take a branch, or do not, pass an access by."""
        if number < forward[branch]:
            return True
        sides = (forward[branch], forward.get(branch + 1, 0))  # if the access lies on one of two sides
        return any(jump < side <= number < forward[jump] for jump in jumps if branch < jump for side in sides)

    by_branch: dict[int, list[Instruction]] = {}
    for number in sorted(guarded):
        around = [branch for branch in branches if branch < number and skips(branch, number)]
        if around:
            by_branch.setdefault(id(kernel.code[around[-1]]), []).append(kernel.code[number])
    return by_branch


def widened(records: Sequence[Record], across: Mapping[_Of, int]) -> list[Record]:
    """A block's accesses; those that lie side by side between two barriers are merged as a ``Merging`` says."""
    accesses: list[Record] = []
    waiting: dict[Hashable, list[Record]] = {}
    for record in records:
        if (record.instruction.place.line, record.space, record.kind) in across and not record.way:
            active = record.addresses != NOWHERE
            key = (record.instruction.place.line, record.kind, active.tobytes(), record.order[active].tobytes())
            waiting.setdefault(key, []).append(record)
        else:
            accesses.append(record)
    for group in waiting.values():
        first = group[0]
        accesses.extend(_joined(group, across[first.instruction.place.line, first.space, first.kind]))
    return accesses


def _joined(records: Sequence[Record], wide: int) -> Iterator[Record]:
    """Accesses of the same threads, of which those that fill aligned ``wide`` bytes are one."""
    thread = int(np.argmax(records[0].addresses != NOWHERE))
    times: Counter[int] = Counter()
    keyed = []
    for record in records:
        address = int(record.addresses[thread])
        keyed.append((times[address], address, record))
        times[address] += 1
    ordered = [record for *_, record in sorted(keyed, key=lambda item: item[:2])]
    count, at = wide // records[0].width, 0
    while at < len(ordered):
        rows = np.stack([record.addresses for record in ordered[at : at + count]])
        rows = rows[:, rows[0] != NOWHERE]
        steps = records[0].width * np.arange(count)[:, None]
        if len(rows) == count and not (rows[0] % wide).any() and (rows == rows[0] + steps).all():
            yield ordered[at]._replace(width=wide)
            at += count
        else:
            yield ordered[at]
            at += 1


def _across(plain: set[int], compiled: Counter[int]) -> int | None:
    """The wider one of a line's widths in machine code, which has no others but those of the line."""
    wide = set(compiled) - plain
    return next(iter(wide)) if len(plain) == len(wide) == 1 and max(wide) in _WIDER and max(wide) > max(plain) else None


def _is_remote(given: Instruction) -> bool:
    """True if it may reach another block's shared memory, for which machine code has generic addresses."""
    return "shared::cluster" in given.parts


def _widths(accesses: Iterable[tuple[_Of, int]]) -> dict[tuple[str, str], set[int]]:
    """The widths of accesses by their space and kind."""
    widths: dict[tuple[str, str], set[int]] = {}
    for (_, space, kind), width in accesses:
        widths.setdefault((space, kind), set()).add(width)
    return widths


def _of(given: Instruction) -> _Of:
    return given.place.line, given.space, _KINDS[given.root]


def _merged(code: Sequence[Instruction], members: Sequence[int], compiled: Counter[int]) -> dict[int, int] | None:
    """The merged of a line; none if it is as in the machine code, None if no way leads there."""
    plain = Counter(code[number].bytes for number in members)
    if _proportional(plain, compiled):
        return {}
    for wide in _WIDER:
        groups = list(_side_by_side(code, members, wide))
        counts = Counter(plain)
        for group in groups:
            counts[code[group[0]].bytes] -= len(group)
            counts[wide] += 1
        if groups and _proportional(+counts, compiled):
            return {number: wide if number == group[0] else 0 for group in groups for number in group}
    return None


def _proportional(one: Counter[int], other: Counter[int]) -> bool:
    if set(one) != set(other):
        return False
    times = {other[width] / count for width, count in one.items()}
    return len(times) == 1


def _side_by_side(code: Sequence[Instruction], members: Sequence[int], wide: int) -> Iterator[list[int]]:
    """Instructions that follow each other in memory and fill ``wide`` bytes, the lowest first."""
    piece, pieces = 0, {}
    for number, op in enumerate(code):
        pieces[number] = piece
        piece += op.ends
    keys: dict[tuple[int, str, str, bool, int], list[tuple[int, int]]] = {}
    for number in members:
        op = code[number]
        match = ADDRESS.fullmatch(op.addresses[0])
        if match is not None and op.bytes < wide:
            key = (pieces[number], match[1], op.guard, op.negated, op.bytes)
            keys.setdefault(key, []).append((int(match[3] or "0", 0) * (-1 if match[2] == "-" else 1), number))
    for (*_, size), offsets in keys.items():
        by_offset = sorted(offsets)
        count = wide // size
        begin = 0
        while begin + count <= len(by_offset):
            group = by_offset[begin : begin + count]
            first = group[0][0]
            if all(offset == first + place * size for place, (offset, _) in enumerate(group)):
                yield [number for _, number in group]
                begin += count
            else:
                begin += 1
