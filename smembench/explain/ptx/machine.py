"""Run a PTX kernel on addresses: the threads of a block, or of a cluster's blocks, as NumPy arrays, group by group.

Threads at the smallest program counter run first, so that groups which parted meet again. Only what addresses,
branches and barriers depend on is computed; the rest, such as the sums of a product, is skipped. What is loaded from
arrays without data is unknown, and so is what is computed from it. An access, a branch or a barrier that depends on it
is noted and left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from smembench.explain.ptx.accesses import Accesses
from smembench.explain.ptx.flow import behind, pieces, successors
from smembench.explain.ptx.joins import Joins, computes
from smembench.explain.ptx.mbarriers import Mbarriers
from smembench.explain.ptx.memory import Memory
from smembench.explain.ptx.merged import Merging, skipped
from smembench.explain.ptx.needed import MEMORY, needed
from smembench.explain.ptx.program import Instruction, PtxKernel
from smembench.explain.ptx.records import Traced
from smembench.explain.ptx.registers import Launch, Mask, Registers
from smembench.explain.ptx.spins import spins
from smembench.explain.ptx.steady import Loop, NotSteadyError, loops
from smembench.explain.ptx.tile_accesses import TileAccesses
from smembench.explain.ptx.values import Run, of_values
from smembench.explain.ptx.waits import Running, Waits, join
from smembench.launches.ptx_entry import readable
from smembench.model.errors import UsageError

_IGNORED = (
    "membar", "fence", "prefetch", "prefetchu", "nanosleep", "discard", "applypriority", "pmevent", "griddepcontrol",
    "createpolicy", "setmaxnreg",
)  # fmt: skip
"""Instructions that neither access memory nor give values that are followed."""
_REFUSED = ("tex", "tld4", "suld", "sust", "sured", "tcgen05")
"""Instructions whose accesses are not traced."""
_CALLS = {"vprintf", "__assertfail", "cudaCGGetIntrinsicHandle"}
"""Functions that are called without an effect on memory that a trace follows."""
MOST_STEPS = 2_000_000
"""Instructions of a block that are run, at most."""


class _Step(NamedTuple):
    """An instruction with the function that runs it; a ``plain`` one has no guard, and nothing else to note."""

    instruction: Instruction
    run: Run
    plain: bool


class Machine:
    """Runs clusters of a launch, single blocks in most, one after the other, with the accesses of the machine code.

    Attributes:
        threads, block: of a cluster, and of one of its blocks.
        steps: instructions that the last cluster ran, each counted once for threads that run it together.
        has_flags: whether threads wait until others have stored in shared memory.

    Raises:
        UsageError: for an instruction that cannot be run, and a kernel that does too much.
    """

    def __init__(self, kernel: PtxKernel, launch: Launch, memory: Memory, merging: Merging) -> None:
        self.memory = memory
        self._kernel = kernel
        self._registers = Registers(kernel, launch, memory)
        self.threads, self.block = self._registers.threads, self._registers.block
        self._needed = needed(kernel, memory.pointers, data=memory.has_data, results=memory.has_results)
        self._most = launch.most_steps or MOST_STEPS
        self._spins = spins(kernel)
        waiting = {id(load) for loads in self._spins.values() for load in loads}
        self.has_flags = any(load.space == "shared" for loads in self._spins.values() for load in loads)
        self._accesses = Accesses(self._registers, self._needed, merging.widths, waiting)
        self._mbarriers = Mbarriers(self._registers, self._accesses)
        self._tiles = TileAccesses(self._registers, self._accesses, self._mbarriers)
        self._waits = Waits(self._registers, self._accesses, self._mbarriers)
        extents = pieces(kernel)
        after = successors(kernel, extents)
        code = [kernel.code[begin:end] for begin, end in extents]
        self._joins = Joins(code, after)
        barriers = (number for number, piece in enumerate(code) if piece[-1].root in ("bar", "barrier"))
        self._behind = {number + 1: behind(after, number) for number in barriers}
        self._accessing = [any(one.root in MEMORY and not one.by_name for one in piece) for piece in code]
        self._guarded = {id(kernel.code[number]): kernel.code[number] for number in sorted(merging.guarded)}
        self._sunk = merging.sunk
        self._blocks, self._block_at = self._compiled()
        self._skipped = skipped(kernel, merging.guarded)
        # Accesses merged across iterations need each, and blocks of a cluster wait for each other in each.
        steady = not merging.across and self._registers.blocks == 1
        self._loops = loops(self._registers, self._needed) if steady else {}
        self._repeated: set[Loop] = set()
        self._begins = [begin for begin, _ in extents]

    def run(self, index: tuple[int, int, int]) -> Traced:
        """Run a cluster, by its index among the clusters of the grid, and return what its threads did."""
        try:
            self._enter_and_run(index)
        except NotSteadyError:
            self._loops.clear()
            self._enter_and_run(index)
        for instruction in self._guarded.values():
            self._accesses.note_idle(instruction)
        self._accesses.traced.order = self._accesses.order
        return self._accesses.traced

    def _enter_and_run(self, index: tuple[int, int, int]) -> None:
        self._registers.enter(index)
        self._accesses.enter()
        self._mbarriers.enter()
        self._tiles.enter()
        self._waits.enter()
        self.memory.enter(self.threads, self._registers.blocks)
        self._repeated.clear()
        for loop in self._loops.values():
            loop.enter()
        with np.errstate(all="ignore"):
            self._run()

    def _compiled(self) -> tuple[list[tuple[list[_Step], Instruction | None]], dict[int, int]]:
        """Straight pieces of code, each with the instruction that ends it, and their numbers by first instruction."""
        extents, blocks = pieces(self._kernel), []
        for begin, end in extents:
            code = self._kernel.code[begin:end]
            last = code[-1] if code[-1].ends else None
            made = ((op, self._instruction(op)) for op in (code[:-1] if last is not None else code))
            blocks.append(([_Step(op, run, self._is_plain(op)) for op, run in made if run is not None], last))
        at = {begin: number for number, (begin, _) in enumerate(extents)}
        return blocks, at | {len(self._kernel.code): len(extents)}

    def _is_plain(self, given: Instruction) -> bool:
        return not given.guard and id(given) not in self._guarded and id(given) not in self._sunk

    def _instruction(self, given: Instruction) -> Run | None:
        """A function that runs an instruction for the threads of a mask; None if nothing depends on it."""
        root = given.root
        if root == "call" and _CALLS.intersection(given.operands):
            return None
        if root in _REFUSED:
            raise self._registers.refused(given.called_from.line, given.opcode)
        if root == "mbarrier":
            return self._mbarriers.changing(given)
        if given.opcode.startswith("cp.async.mbarrier"):
            return _both(self._accesses.of_memory(given), self._mbarriers.changing(given))
        if root == "wgmma" or "bulk" in given.parts:
            return self._tiles.of_tiles(given)
        if root in ("st", "red") and "async" in given.parts:
            return _both(self._accesses.of_memory(given), self._mbarriers.completing(given))
        if root in MEMORY and not given.by_name:
            return self._accesses.of_memory(given)
        if root in _IGNORED or not self._needed.wants(given):
            if root == "call" or (root not in _IGNORED and not given.targets):
                what = given.opcode if root != "call" else f"the call {' '.join(given.operands)}"
                raise self._registers.refused(given.called_from.line, what)
            return None
        return of_values(given, self._registers)

    def _run(self) -> None:
        everyone = np.ones(self.threads, np.bool_)
        running: Running = {0: everyone}
        self.steps = 0
        while running or self._waits:
            if not running:
                self._waits.release(running)
                continue
            number = min(running)
            mask = running.pop(number)
            if number >= len(self._blocks):
                continue
            inside, last = self._blocks[number]
            self.steps += len(inside) + 1
            if self.steps > self._most:
                line = (last or inside[-1][0]).called_from.line
                what = f"a block runs more than {self._most} instructions; end the loop or give less work"
                raise UsageError(f"{readable(self._kernel.name)}, line {line}: {what}")
            if self._waits and self._accessing[number]:
                self._waits.passing(number, mask, self._behind)
            for loop in [loop for loop in self._repeated if self._begins[number] not in loop.extent]:
                loop.leave()
                self._repeated.remove(loop)
            self._straight(inside, mask)
            self._go_on(number, last, mask, running)

    def _straight(self, inside: Sequence[_Step], mask: Mask) -> None:
        """Run straight code for the threads of a mask."""
        whole = None if mask.all() else mask
        for instruction, run, plain in inside:
            if plain:
                run(whole)
                continue
            guarded = self._taken(instruction, whole)
            if id(instruction) in self._guarded:
                if instruction.guard:
                    self._accesses.note_branch(instruction, mask)
                self._accesses.note_made(instruction, mask if guarded is None else guarded)
            if guarded is None or guarded.any():
                run(guarded)
            for load in self._sunk.get(id(instruction), ()):
                self._accesses.keep(load, guarded)

    def _taken(self, given: Instruction, mask: Mask | None) -> Mask | None:
        """The threads of a mask whose predicate is true; None for all."""
        if not given.guard:
            return mask
        taken, _ = self._registers.predicate(given.guard, negated=given.negated)
        unknown = self._unknown(given, mask)
        if unknown is not None and computes(given):
            self._registers.forget(given.targets, unknown)
        elif unknown is not None:
            self._accesses.note_unknown(given, "a branch")
        if mask is not None:
            taken = taken & mask
        return None if taken.all() else taken

    def _unknown(self, given: Instruction, mask: Mask | None) -> Mask | None:
        """The threads of a mask for which the guard of an instruction is not known; None for none."""
        unknown = self._registers.unknown_in([given.guard])
        if unknown is None:
            return None
        inside = unknown if mask is None else unknown & mask
        return inside if inside.any() else None

    def _go_on(self, number: int, last: Instruction | None, mask: Mask, running: Running) -> None:
        """Send the threads of a mask to their next piece of code."""
        if last is None:
            join(running, number + 1, mask)
            return
        taken = self._parted(number, last, mask, running) if last.guard else mask
        if not taken.any():
            return
        if id(last) in self._spins:
            self._waits.to_spin(self._target(last), number + 1, taken)
        elif last.root == "bra":
            if id(last) in self._loops and not running and not self._waits:
                self._come_round(self._loops[id(last)], taken)
            join(running, self._target(last), taken)
        elif last.root in ("bar", "barrier"):
            self._waits.at_barrier(number + 1, last, taken, running)
        elif last.root == "mbarrier":
            self._waits.for_phase(number + 1, last, taken, running)
        elif last.root == "brx":
            self._by_index(last, taken, running)

    def _come_round(self, loop: Loop, taken: Mask) -> None:
        self._repeated.add(loop)
        passed = loop.come_round(taken, self._accesses.progress, self._accesses.traced.records)
        if passed is not None:
            self._accesses.progress = passed

    def _parted(self, number: int, last: Instruction, mask: Mask, running: Running) -> Mask:
        """The threads for which the guard of a piece's end is true; the others go on behind it.

        Those for which it is not known meet the others where both ways compute no more than values.
        """
        unknown = self._unknown(last, mask)
        if unknown is not None and id(last) not in self._spins and (meeting := self._joins.behind(number)):
            self._registers.forget(meeting.registers, unknown)
            join(running, meeting.piece, unknown)
            mask = mask & ~unknown
        taken = mask & self._chosen(number, last, mask)
        for instruction in self._skipped.get(id(last), ()):
            self._accesses.note_branch(instruction, mask)
        if (rest := mask & ~taken).any():
            join(running, number + 1, rest)
            if id(last) in self._spins:
                self._waits.seen(self._target(last))
        return taken

    def _chosen(self, number: int, last: Instruction, mask: Mask) -> Mask:
        """The threads for which the guard of a piece's end is true; a branch past what depends on data is taken."""
        chosen, _ = self._registers.predicate(last.guard, negated=last.negated)
        unknown = self._unknown(last, mask)
        if unknown is None or id(last) in self._spins:
            return chosen
        self._accesses.note_unknown(last, "a branch")
        return chosen | unknown if last.root == "bra" and self._target(last) > number else chosen

    def _by_index(self, last: Instruction, taken: Mask, running: Running) -> None:
        """``brx.idx``: to labels of a table; past all of them where the index depends on data."""
        table = self._kernel.tables.get(last.operands[1])
        if table is None:
            raise self._registers.refused(last.called_from.line, last.opcode)
        targets = [self._block_at[self._kernel.labels[label]] for label in table]
        index = np.broadcast_to(self._registers.operand(last.operands[0], "u4")(), self.threads)
        unknown = self._registers.unknown_in(last.sources)
        if unknown is not None and (taken & unknown).any():
            self._accesses.note_unknown(last, "a branch")
            join(running, max(targets), taken & unknown)
            taken = taken & ~unknown
        for number, target in enumerate(targets):
            if (chosen := taken & (index == number)).any():
                join(running, target, chosen)

    def _target(self, branch: Instruction) -> int:
        return self._block_at[self._kernel.labels[branch.operands[-1]]]


def _both(one: Run | None, other: Run) -> Run:
    def run(mask: Mask | None) -> None:
        if one is not None:
            one(mask)
        other(mask)

    return run
