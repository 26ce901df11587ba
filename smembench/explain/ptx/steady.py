"""Loops in a steady state: each iteration repeats the one before at a constant distance in bytes.

After a few iterations that a group of threads takes, the last ones are compared. If registers have grown by the same
amounts, and accesses are the same but for whole sectors of global memory, further iterations cost the same, as long as
no comparison in the loop changes its result and nothing is computed that bends, such as a remainder. They are counted
and passed by, up to the last few, which are run. Should these differ after all, the block is run again in full.

Stores that move on in shared memory are run, too: which elements nothing has stored depends on each of them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from smembench.explain.ptx.needed import MEMORY, Needed
from smembench.explain.ptx.program import Instruction
from smembench.explain.ptx.records import Progress, Record
from smembench.explain.ptx.registers import Mask, Registers, seen_as
from smembench.explain.requests import NOWHERE
from smembench.launches.ptx_entry import TYPES
from smembench.model.hardware import LINE_BYTES, SECTOR_BYTES

_PERIODS = (1, 2, 3, 4, 5, 6, 8)
"""Iterations after which a loop may repeat itself: more than one where it has several buffers, or few bytes each."""
_KEPT, _TRIES = 2 * max(_PERIODS) + 1, 40
_LEAST, _RUN, _MOST = 4, 2, 2**31
"""Periods that are worth passing by, those at the end that are run, and more than any loop has."""
_ALWAYS_RUN = ("atom", "red", "mbarrier", "wgmma", "wmma", "call", "brx", "ret", "exit")
_LINEAR = ("add", "sub", "mov", "cvt", "cvta", "neg", "shl", "selp", "setp")
"""Instructions whose results grow by the same amounts if their operands do, and predicates stay as they are."""
_EXTREMES = ("min", "max")
"""Likewise, as long as it is the same operand that they choose."""
_COMPARISONS: Mapping[str, Callable[..., Any]] = {
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "lo": operator.lt, "ls": operator.le, "hi": operator.gt, "hs": operator.ge,
}  # fmt: skip


class NotSteadyError(Exception):
    """Iterations were passed by that differ from those at the end."""


class _State(NamedTuple):
    registers: dict[str, Any]
    progress: Progress


def loops(registers: Registers, needed: Needed) -> dict[int, Loop]:
    """The loops of a kernel by the ``id`` of the branch that repeats each."""
    code, labels = registers.kernel.code, registers.kernel.labels
    begins = {number: labels[op.operands[-1]] for number, op in enumerate(code) if op.root == "bra" and op.guard}
    ends = {number: begin for number, begin in begins.items() if begin <= number}
    return {id(code[end]): Loop(registers, needed, range(begin, end + 1)) for end, begin in ends.items()}


class Loop:
    """A loop of a kernel by the numbers of its instructions, the branch that repeats it the last."""

    def __init__(self, registers: Registers, needed: Needed, extent: range) -> None:
        body = registers.kernel.code[extent.start : extent.stop]
        self.extent, self._registers, self._branch = extent, registers, body[-1]
        self._written = {name for op in body for name in op.targets}
        self._condition = next((op for op in reversed(body) if self._branch.guard in op.targets), None)
        always = any(op.root in _ALWAYS_RUN or "bulk" in op.parts for op in body)
        # What loads bring may change from one iteration to another, and so may what is stored, unless nobody knows it.
        followed = [op for op in body if op.root in MEMORY and not op.by_name and needed.follows(op)]
        self._stored = [name for op in followed if op.root == "st" for name in op.sources]
        self._loaded = [name for op in followed if needed.wants(op) for name in op.targets]
        self._possible = self._is_comparison() and not always
        compared = [op for op in body if op.root in ("setp", *_EXTREMES) and op.types]
        self._comparisons = [op for op in compared if np.dtype(TYPES[op.types[0]]).kind in "iu"]
        self._cut = [op for op in body if _lowest_bits(op)]
        self._widened = [op for op in body if op.types and (op.root in ("shr", "cvt") or "wide" in op.parts)]
        self._computing = [op for op in body if op.targets and not op.ends and op.root not in _LINEAR]
        self.enter()

    def enter(self) -> None:
        """Begin a block."""
        self._states: list[_State] = []
        self._mask: Mask | None = None
        self._tries = 0
        self._expected: list[Record] = []
        self._period = 0

    def leave(self) -> None:
        """Threads run what is behind the loop, or before it: what they do until they are back is no iteration.

        Raises:
            NotSteadyError: if no iteration has shown that those passed by were as expected.
        """
        if self._period:
            raise NotSteadyError
        self._states = []

    def come_round(self, mask: Mask, progress: Progress, records: list[Record]) -> Progress | None:
        """The threads of a mask are about to repeat the loop; what has happened if iterations are passed by.

        Raises:
            NotSteadyError: if an earlier answer was wrong.
        """
        if not self._possible or self._tries > _TRIES:
            return None
        if self._mask is None or (self._mask != mask).any():
            if self._period:
                raise NotSteadyError
            self._states, self._mask = [], mask.copy()
        self._states = [*self._states[1 - _KEPT :], self._state(progress)]
        self._tries += 1
        self._check(records)
        for period in _PERIODS:
            if len(self._states) > 2 * period and (passed := self._passed(period, mask, records)) is not None:
                return passed
        return None

    def _state(self, progress: Progress) -> _State:
        values, mask = self._registers.values, self._mask
        known = (
            name for name in self._written if name in values and (mask is None or not self._is_unknown(name, mask))
        )
        return _State({name: values[name] for name in known}, progress)

    def _passed(self, period: int, mask: Mask, records: list[Record]) -> Progress | None:
        first, one, two = (self._states[-1 - back * period] for back in (2, 1, 0))
        grown = _growth(first.registers, one.registers, two.registers)
        if not all(self._is_unknown(name, mask) for name in (*self._stored, *self._loaded)):
            return None
        if grown is None:
            return None
        growing = {name for name, growth in grown.items() if growth is not None}
        if any(self._bends(op, grown) for op in self._computing if not growing.isdisjoint(op.sources)):
            return None
        constant = [self._constant(op, grown, mask) for op in self._comparisons]
        whole = (self._whole(op, grown, mask) for op in self._cut)
        times = min([*constant, *whole, *(self._unwrapped(op, grown, mask) for op in self._widened)]) - _RUN
        if not _LEAST <= times < _MOST - _RUN:  # a loop that would not end is run until it is refused
            return None
        before = records[first.progress.records : one.progress.records]
        last = records[one.progress.records : two.progress.records]
        if len(before) != len(last) or not all(map(_costs_as, last, before)):
            return None
        for number in range(one.progress.records, two.progress.records):
            records[number] = records[number]._replace(times=records[number].times * (times + 1))
        for name, growth in grown.items():
            value = two.registers[name]
            self._registers.values[name] = value if growth is None else value + growth * growth.dtype.type(times)
        self._expected = [_moved_on(one, other, times + 1) for one, other in zip(last, before, strict=True)]
        progress = two.progress.after(one.progress, times)
        self._states, self._tries, self._period = [self._state(progress)], 0, period
        return progress

    def _is_unknown(self, name: str, mask: Mask) -> bool:
        """True if a register is unknown in all threads of a mask."""
        unknown = self._registers.unknown_in([name])
        return unknown is self._registers.everyone or (unknown is not None and bool(unknown[mask].all()))

    def _check(self, records: Sequence[Record]) -> None:
        """Check that the first period behind passed iterations is the expected one."""
        if self._period and len(self._states) > self._period:
            begin, end = (self._states[-1 - back].progress.records for back in (self._period, 0))
            made = records[begin:end]
            self._period = 0
            if len(made) != len(self._expected) or not all(map(_is_same, made, self._expected)):
                raise NotSteadyError

    def _bends(self, given: Instruction, grown: Mapping[str, Any]) -> bool:
        """True if a result may change its growth though its operands keep theirs."""
        growths = [growth for name in given.sources if (growth := grown.get(name)) is not None]
        if not growths or given.root in MEMORY or given in self._comparisons:
            return False
        if given.root in ("mul", "mad") and "hi" not in given.parts:
            return len(growths) > 1  # a product of what grows with what grows
        if given.root == "shr" and given.operands[2].isdecimal():
            return any(np.any(growth & growth.dtype.type((1 << int(given.operands[2])) - 1)) for growth in growths)
        return not _lowest_bits(given)

    def _is_comparison(self) -> bool:
        given = self._condition
        if given is None or given.root != "setp" or given.guard or len(given.operands) != 3 or len(given.types) != 1:
            return False
        return np.dtype(TYPES[given.types[0]]).kind in "iu" and given.parts[1] in (*_COMPARISONS, "ne")

    def _whole(self, given: Instruction, grown: Mapping[str, Any], mask: Mask) -> int:
        """The number of periods in which the bits above the lowest ones, which an instruction takes, stay the same."""
        growth, above = grown.get(given.operands[1]), _lowest_bits(given)
        last = self._registers.values.get(given.targets[0])
        if growth is None or last is None or not (growth % growth.dtype.type(above)).any():
            return _MOST
        value = last.astype(object)  # of the last iteration
        by = growth.view(f"i{growth.dtype.itemsize}").astype(object)
        periods = np.where(by > 0, (above - 1 - value) // np.maximum(by, 1), value // np.maximum(-by, 1))
        return int(np.broadcast_to(np.where(by == 0, _MOST, periods), mask.shape)[mask].min())

    def _unwrapped(self, given: Instruction, grown: Mapping[str, Any], mask: Mask) -> int:
        """The number of periods in which no operand wraps around that an instruction takes to more or to fewer bits."""
        kind = np.dtype(TYPES[given.types[-1]])
        least = _MOST
        for text in given.sources if kind.kind in "iu" else ():
            growth = grown.get(text)
            if growth is not None and growth.dtype.itemsize >= kind.itemsize:
                values, by = self._registers.operand(text, kind.str)(), seen_as(growth, np.dtype(f"i{kind.itemsize}"))
                sides = (np.broadcast_to(side, mask.shape)[mask].tolist() for side in (values, by))
                least = min([least, *(_inside(kind.str, *side) for side in set(zip(*sides, strict=True)))])
        return least

    def _constant(self, given: Instruction, grown: Mapping[str, Any], mask: Mask) -> int:
        """The number of periods in which a comparison keeps its result in all threads of a mask."""
        kind, sides = TYPES[given.types[0]], given.operands[1:3]
        if all(grown.get(text) is None for text in sides):
            return _MOST

        def of_threads(value: Any) -> Any:
            return np.broadcast_to(value, mask.shape)[mask]

        one, two = (of_threads(self._registers.operand(text, kind)()) for text in sides)
        by_one, by_two = (
            np.zeros_like(one, np.int64) if growth is None else of_threads(growth.view(f"i{growth.dtype.itemsize}"))
            for growth in map(grown.get, sides)
        )
        ordered = given.root in _EXTREMES or given.parts[1] in _COMPARISONS  # else for being equal
        compare: Callable[..., Any] = _COMPARISONS.get(given.parts[1], operator.lt)
        before = self._registers.values.get(given.targets[0])  # None if no iteration has come to it
        if given.root == "setp" and len(given.operands) == 3 and ordered and before is not None:
            last = np.broadcast_to(before, mask.shape)[mask]
            if (last != compare(one, two)).any():  # the next iteration is another, as its operands have grown since
                return 0
        alike = set(zip(*(side.tolist() for side in (one, two, by_one, by_two)), strict=True))  # integers of any size
        aheads = {(left - right, by_left - by_right) for left, right, by_left, by_right in alike}
        equal = None if not ordered else compare in (operator.lt, operator.ge)
        growing = {pair for left, right, by_left, by_right in alike for pair in ((left, by_left), (right, by_right))}
        return min([_MOST, *(_periods(*ahead, equal) for ahead in aheads), *(_inside(kind, *side) for side in growing)])


def _periods(ahead: int, by: int, equal: bool | None) -> int:
    """The number of periods in which one side of a comparison stays ahead of the other, or behind it.

    Args:
        ahead: the difference.
        by: its growth per period.
        equal: whether equal sides count as one being above; None if they must not become equal.
    """
    if equal is None and ahead == 0:
        return 0
    at = ahead - (ahead > 0 if equal is None else not equal)  # 0 is the lowest above
    periods = _MOST
    if at < 0 < by:
        periods = (-at - 1) // by
    elif by < 0 <= at:
        periods = at // -by
    return min(periods, _MOST)


def _inside(kind: str, value: int, by: int) -> int:
    """The number of periods in which an integer of a type does not wrap around."""
    limits = np.iinfo(kind)
    if by == 0:
        return _MOST
    return (int(limits.max) - value) // by if by > 0 else (value - int(limits.min)) // -by


def _lowest_bits(given: Instruction) -> int:
    """The mask plus one of an instruction that takes the lowest bits; 0 for another."""
    if given.root != "and" or not given.operands[2].isdecimal():
        return 0
    above = int(given.operands[2]) + 1
    return 0 if above & above - 1 else above


def _growth(first: Mapping[str, Any], one: Mapping[str, Any], two: Mapping[str, Any]) -> dict[str, Any] | None:
    """The growth of each register in the last period, None if constant; None if the period before differs."""
    growths: dict[str, Any] = {}
    if first.keys() != one.keys() or one.keys() != two.keys():
        return None
    for name, value in two.items():
        if value.dtype != one[name].dtype or value.dtype != first[name].dtype:
            return None
        if np.array_equal(value, one[name]) and np.array_equal(value, first[name]):
            growths[name] = None
        elif value.dtype.kind not in "iu":
            return None
        else:
            growth = value - one[name]
            if not (growth == one[name] - first[name]).all():
                return None
            growths[name] = growth
    return growths


def _is_alike(one: Record, other: Record) -> bool:
    return one.instruction is other.instruction and (one.width, one.space) == (other.width, other.space)


def _is_same(one: Record, other: Record) -> bool:
    return _is_alike(one, other) and bool((one.addresses == other.addresses).all())


def _moved_on(last: Record, before: Record, periods: int) -> Record:
    """An access a number of periods later."""
    active = last.addresses != NOWHERE
    moved = last.addresses + periods * (last.addresses - before.addresses)
    return last._replace(addresses=np.where(active, moved, NOWHERE))


def _costs_as(last: Record, before: Record) -> bool:
    """True if an access costs the same as that of the period before."""
    if not _is_alike(last, before) or last.times != before.times:
        return False
    active = last.addresses != NOWHERE
    if (active != (before.addresses != NOWHERE)).any():
        return False
    moved = (last.addresses - before.addresses)[active]
    period = SECTOR_BYTES if last.space == "global" and not last.way else LINE_BYTES
    if (last.space, last.kind) == ("shared", "store"):
        return not moved.any()
    return not len(moved) or (bool((moved == moved[0]).all()) and moved[0] % period == 0)
