"""Threads that wait: at barriers of their block, and for phases of barriers in shared memory, while others go on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from smembench.explain.mistakes import CLUSTER_SYNCS, WARP_SYNCS, Mistake
from smembench.explain.ptx.accesses import Accesses
from smembench.explain.ptx.mbarriers import Mbarriers
from smembench.explain.ptx.program import Instruction
from smembench.explain.ptx.registers import Mask, Registers
from smembench.model.hardware import WARP

Running = dict[int, Mask]
"""The threads that can go on, by the piece of code where."""

_CLUSTER = -1
"""The rank that stands for the barrier of the cluster."""
_LOOKS = 2
"""The number of further looks while no other thread of the block can go on."""


class _Name(NamedTuple):
    """A barrier: the rank of its block, and its number there; of the cluster's, how often threads have arrived."""

    block: int
    number: int


class _Barrier(NamedTuple):
    """A barrier: the piece of code behind it, its name, and the threads for which it waits, 0 for all."""

    behind: int
    name: _Name
    threads: int


class Waits:
    """The threads of a cluster that wait, and at what."""

    def __init__(self, registers: Registers, accesses: Accesses, mbarriers: Mbarriers) -> None:
        self._registers, self._accesses, self._mbarriers = registers, accesses, mbarriers
        self._at: dict[_Barrier, tuple[Instruction, Mask]] = {}
        self._phases: dict[int, tuple[Instruction, Mask]] = {}
        self._spinning: dict[tuple[int, int], Mask] = {}
        self._looked: Counter[int] = Counter()
        self._arrived = np.zeros(registers.threads, np.int64)  # how often at the barrier of the cluster
        self._behind: dict[_Name, int] = {}
        self._passed: dict[_Name, Mask] = {}

    def __bool__(self) -> bool:
        return bool(self._at or self._phases or self._spinning)

    def enter(self) -> None:
        """Begin a cluster."""
        self._at.clear()
        self._phases.clear()
        self._spinning.clear()
        self._looked.clear()
        self._arrived[:] = 0
        self._behind.clear()
        self._passed.clear()

    def passing(self, number: int, mask: Mask, behind: Mapping[int, frozenset[int]]) -> None:
        """Threads access memory in a piece of code: some may have left out a barrier that others wait at.

        ``behind`` are the pieces to which threads come from a barrier, by the piece that begins behind it.
        """
        for barrier in self._at:
            if not barrier.threads and barrier.name.block != _CLUSTER and number in behind[barrier.behind]:
                past = self._passed.get(barrier.name, np.zeros_like(mask))
                self._passed[barrier.name] = past | mask & self._of(barrier.name)

    def to_spin(self, begin: int, behind: int, mask: Mask) -> None:
        """Threads would repeat a loop that waits for a store: it begins at piece ``begin``, ``behind`` is after it."""
        self._spinning[begin, behind] = self._spinning.get((begin, behind), np.zeros_like(mask)) | mask

    def seen(self, begin: int) -> None:
        """Threads have seen what a loop waits for that begins at a piece of code."""
        self._looked[begin] = 0

    def at_barrier(self, number: int, given: Instruction, mask: Mask, running: Running) -> None:
        """Threads come to a barrier of their block, or of their warps, behind which piece ``number`` begins."""
        if "warp" in given.parts:
            self._accesses.order = np.where(mask, self._accesses.order + 1, self._accesses.order)
            join(running, number, mask)
            return
        if "cluster" in given.parts or ("grid" in given.parts and self._registers.blocks > 1):
            self._at_cluster(number, given, mask, running)
            return
        operands = given.operands[1:] if "red" in given.parts else given.operands
        numbers = (text for text in operands if self._registers.kernel.type_of(text.lstrip("!")) != "pred")
        values = [self._registers.operand(text, "u4")() for text in numbers]
        which, count = (*values, np.uint32(0), np.uint32(0))[:2]
        if "arrive" in given.parts:
            join(running, number, mask)
        if self._registers.blocks == 1 and not np.shape(which) and not np.shape(count):  # one barrier for all
            self._join(_Barrier(number, _Name(0, int(which)), int(count)), given, mask)
            return
        which, count = (np.broadcast_to(value, mask.shape) for value in (which, count))
        ranks = self._registers.memory.windows.ranks
        for one, threads, rank in {*zip(*(column[mask].tolist() for column in (which, count, ranks)), strict=True)}:
            who = mask & (which == one) & (count == threads) & (ranks == rank)
            self._join(_Barrier(number, _Name(rank, one), threads), given, who)

    def _at_cluster(self, number: int, given: Instruction, mask: Mask, running: Running) -> None:
        """Threads arrive at the barrier of the cluster, or wait until all others have arrived as often, or do both."""
        if "wait" not in given.parts:
            self._arrived[mask] += 1
        if "arrive" in given.parts:
            join(running, number, mask)
            return
        for times in np.unique(self._arrived[mask]).tolist():
            self._join(_Barrier(number, _Name(_CLUSTER, times), 0), given, mask & (self._arrived == times))

    def for_phase(self, number: int, given: Instruction, mask: Mask, running: Running) -> None:
        """Threads wait for a phase to end, behind which piece ``number`` begins."""
        if mask.any():
            self._accesses.note_mbarrier(given, mask, "atomic")
        before = self._phases.pop(number, None)
        everyone = mask if before is None else mask | before[1]
        done = self._mbarriers.done(given, everyone)
        if done.any():
            self._accesses.order = self._mbarriers.behind(given, done, self._accesses.order)
            self._registers.write(given.operands[0].split("|")[0], np.bool_(True), done)
            join(running, number, done)
        if (rest := everyone & ~done).any():
            self._phases[number] = given, rest

    def release(self, running: Running) -> None:
        """Let those go on for whom all has come; if none can, with a mistake."""
        for number, (given, mask) in [*self._phases.items()]:
            self.for_phase(number, given, np.zeros_like(mask), running)
        if running:
            return
        names = sorted({barrier.name for barrier in self._at})
        complete = [name for name in names if self._is_complete(name)]
        if self._spinning and not complete:
            self._spin(running)
            return
        for name in complete or names:
            self._release(name, running)
        if names:
            return
        for given, mask in self._phases.values():
            text = f"{mask.sum()} threads wait without end for {self._mbarriers.lacking(given, mask)}"
            self._accesses.traced.mistakes.add(Mistake(given.called_from.line, "barrier", text))
        self._phases.clear()

    def _spin(self, running: Running) -> None:
        """Look again after others have run; go on behind the loop where that was in vain: another block stores then."""
        for (begin, behind), mask in self._spinning.items():
            in_vain = self._looked[begin] == _LOOKS
            self._looked[begin] = 0 if in_vain else self._looked[begin] + 1
            join(running, behind if in_vain else begin, mask)
        self._spinning.clear()

    def _join(self, barrier: _Barrier, given: Instruction, mask: Mask) -> None:
        _, before = self._at.get(barrier, (given, np.zeros_like(mask)))
        self._at[barrier] = given, before | mask

    def _of(self, name: _Name) -> Mask:
        """The threads that a barrier is for."""
        ranks = self._registers.memory.windows.ranks
        return np.ones(len(ranks), np.bool_) if name.block == _CLUSTER else ranks == name.block

    def _come(self, name: _Name) -> Mask:
        """The threads that have come to a barrier."""
        waiting = [mask for barrier, (_, mask) in self._at.items() if barrier.name == name]
        arrived: Mask = np.logical_or.reduce(waiting)
        return arrived | (self._arrived >= name.number) if name.block == _CLUSTER else arrived

    def _is_complete(self, name: _Name) -> bool:
        """True if as many have come to a barrier as it waits for, or all that have not returned."""
        come = self._come(name)
        if count := max(barrier.threads for barrier in self._at if barrier.name == name):
            return bool(come.sum() >= min(count, self._registers.block))
        waiting = [*(mask for _, mask in (*self._at.values(), *self._phases.values())), *self._spinning.values()]
        return not (np.logical_or.reduce(waiting) & self._of(name) & ~come).any()

    def _release(self, name: _Name, running: Running) -> None:
        """Let those go on that wait at a barrier; with a mistake, if not all have come."""
        groups = {barrier: waiting for barrier, waiting in self._at.items() if barrier.name == name}
        arrived = np.logical_or.reduce([mask for _, mask in groups.values()])
        self._check(name, groups)
        self._order(name, arrived)
        for barrier, (given, mask) in groups.items():
            if "arrive" not in given.parts:
                self._reduced(given, arrived)
                join(running, barrier.behind, mask)
            del self._at[barrier]
        self._accesses.traced.barriers += self._registers.blocks if name.block == _CLUSTER else 1

    def _check(self, name: _Name, groups: Mapping[_Barrier, tuple[Instruction, Mask]]) -> None:
        """Note a mistake if threads come to a barrier in several lines, wait elsewhere, or have gone on without it."""
        others = [mask for barrier, (_, mask) in self._at.items() if barrier.name != name]
        others += [mask for _, mask in self._phases.values()]
        everyone, of_cluster = self._of(name), name.block == _CLUSTER
        past = self._passed.pop(name, np.zeros_like(everyone))
        missing = np.logical_or.reduce([past, *others]) & everyone & ~self._come(name)
        lines = {given.called_from.line for given, _ in groups.values()}
        count = max(barrier.threads for barrier in groups)
        # In a cluster, and where a barrier waits for a number of threads, each role may come in a line of its own.
        if count:
            come, block = self._come(name), self._registers.block
            warps = np.unique(np.flatnonzero(come) % block // WARP)
            if len(warps) * WARP < min(count, block):
                given, _ = next(iter(groups.values()))
                text = f"{come.sum()} threads reach this barrier, which waits for {count}"
                self._accesses.traced.mistakes.add(Mistake(given.called_from.line, "barrier", text))
        elif (len(lines) > 1 and not of_cluster) or missing.any():
            given, smallest = min(groups.values(), key=lambda group: int(group[1].sum()))
            what = "cluster" if of_cluster else "block"
            text = (
                f"{smallest.sum()} of the {what}'s {everyone.sum()} threads reach this barrier; all must that have "
                "not returned"
            )
            self._accesses.traced.mistakes.add(Mistake(given.called_from.line, "barrier", text))

    def _order(self, name: _Name, arrived: Mask) -> None:
        """Order the accesses of threads behind a barrier after all accesses before it."""
        order = self._accesses.order
        if name.block == _CLUSTER:
            behind = self._behind.setdefault(name, (int(order.max()) // CLUSTER_SYNCS + 1) * CLUSTER_SYNCS)
        else:
            behind = (int(order[arrived].max()) // WARP_SYNCS + 1) * WARP_SYNCS
        self._accesses.order = np.where(arrived, np.maximum(behind, order), order)

    def _reduced(self, given: Instruction, arrived: Mask) -> None:
        """The result of ``barrier.red``: over all threads that have arrived."""
        if "red" not in given.parts:
            return
        source = given.operands[-1]
        value = np.broadcast_to(self._registers.operand(source, "?")(), len(arrived))
        result: Any = np.uint32((value & arrived).sum())
        if "and" in given.parts:
            result = np.bool_(value[arrived].all())
        elif "or" in given.parts:
            result = np.bool_(value[arrived].any())
        unknown = self._registers.unknown_in([source.lstrip("!")])  # one thread's leaves the result unknown to all
        missing = None if unknown is None or not unknown[arrived].any() else np.bool_(True)
        self._registers.write(given.operands[0], result, arrived, missing)


def join(running: Running, at: int, mask: Mask) -> None:
    """Threads can go on at a piece of code."""
    running[at] = running[at] | mask if at in running else mask
