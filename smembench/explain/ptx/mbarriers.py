"""Barriers in shared memory (PTX ISA, "mbarrier"): a phase ends when all arrivals and all announced bytes have come."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from smembench.explain.mistakes import CLUSTER_SYNCS, WARP_SYNCS
from smembench.explain.ptx.accesses import Accesses
from smembench.explain.ptx.program import Instruction
from smembench.explain.ptx.registers import Mask, Registers
from smembench.explain.requests import NOWHERE, Integers


@dataclass(slots=True)
class _State:
    """Arrivals per phase, arrivals and bytes that the phase lacks, and the number of phases that have ended.

    ``shared`` is whether threads of another block take part.
    """

    arrivals: int
    missing: int
    missing_bytes: int = 0
    phase: int = 0
    shared: bool = False

    def change(self, arrivals: int, announced: int) -> None:
        self.missing -= arrivals
        self.missing_bytes += announced
        if self.missing <= 0 and self.missing_bytes == 0:
            self.missing += self.arrivals
            self.phase += 1


class Mbarriers:
    """The barriers of a cluster's blocks by their places in the memory of the cluster."""

    def __init__(self, registers: Registers, accesses: Accesses) -> None:
        self._registers, self._accesses = registers, accesses
        self._states: dict[int, _State] = {}
        self._ended: dict[tuple[int, int], int] = {}

    def enter(self) -> None:
        """Begin a block."""
        self._states.clear()
        self._ended.clear()

    def changing(self, given: Instruction) -> Callable[[Mask | None], None]:
        """A function that sets up a barrier, or arrives or announces bytes at one.

        Raises:
            UsageError: for an instruction that is not traced.
        """
        copies = given.root == "cp"
        kind = "arrive" if copies or "arrive" in given.parts else given.parts[1]
        if kind not in ("init", "arrive", "expect_tx", "complete_tx", "inval"):
            raise self._registers.refused(given.called_from.line, given.opcode)
        place = next(number for number, text in enumerate(given.operands) if text.startswith("["))
        rest = given.operands[place + 1 :]
        number = self._registers.operand(rest[0] if rest else "1", "u4")
        state = given.operands[0] if place and given.targets else ""
        announces, counts = "expect_tx" in given.parts, not copies or "noinc" in given.parts

        def change(mask: Mask | None) -> None:
            values = np.broadcast_to(number(), self._registers.threads).astype(np.int64)
            self._accesses.note_mbarrier(given, mask, "store" if kind == "init" else "atomic")
            for address, who in self.addressed(given, mask):
                total, threads = int(values[who].sum()), int(who.sum())
                if kind == "init":
                    self._states[address] = _State(total // threads, total // threads)
                    continue
                barrier = self._state(address, who)
                if state:
                    self._registers.write(state, np.uint64(barrier.phase), who)
                if kind == "arrive" and counts:
                    barrier.change(threads if announces else total, total if announces else 0)
                elif kind in ("expect_tx", "complete_tx"):
                    barrier.change(0, total if kind == "expect_tx" else -total)

        return change

    def completing(self, given: Instruction) -> Callable[[Mask | None], None]:
        """A function that counts the bytes of a store or an atomic at the barrier of its last operand."""

        def complete(mask: Mask | None) -> None:
            for address, who in self.addressed(given, mask):
                self.come(address, given.bytes * int(who.sum()), who)

        return complete

    def come(self, address: int, count: int, who: Mask) -> None:
        """Bytes of a copy, or of a store, by these threads have come."""
        self._state(address, who).change(0, -count)

    def _state(self, address: int, who: Mask) -> _State:
        """The state of a barrier in which these threads take part."""
        state = self._states.setdefault(address, _State(1, 1))
        windows = self._registers.memory.windows
        state.shared = state.shared or bool((windows.ranks[who] != address // windows.pitch).any())
        return state

    def done(self, given: Instruction, mask: Mask) -> Mask:
        """The threads of a mask whose wait is over."""
        asked = self._registers.operand(given.operands[2], "u4" if "parity" in given.parts else "u8")()
        asked, done = np.broadcast_to(asked, self._registers.threads), mask.copy()
        for address, who in self.addressed(given, mask):
            phase = self._states.setdefault(address, _State(1, 1)).phase
            done &= ~who | ((asked & 1 != phase & 1) if "parity" in given.parts else asked != phase)
        return done

    def behind(self, given: Instruction, done: Mask, order: Integers) -> Integers:
        """The order of accesses of each thread, behind all that were made so far for those whose wait is over.

        So far by its own block, unless threads of another one take part in the barrier.
        """
        later, windows = order.copy(), self._registers.memory.windows
        for address, who in self.addressed(given, done):
            state = self._states[address]
            step = CLUSTER_SYNCS if state.shared else WARP_SYNCS
            before = order if state.shared else order[windows.ranks == address // windows.pitch]
            first = self._ended.setdefault((address, state.phase), int(before.max(initial=0) // step + 1) * step)
            later[who] = np.maximum(first, order[who])
        return later

    def lacking(self, given: Instruction, mask: Mask) -> str:
        """The arrivals and bytes missing at the barrier for which the threads of a mask wait, as text."""
        for address, _ in self.addressed(given, mask):
            state, pitch = self._states[address], self._registers.memory.windows.pitch
            return (
                f"the barrier at byte {address % pitch} of shared memory, whose phase lacks {state.missing} of "
                f"{state.arrivals} arrivals and {state.missing_bytes} bytes"
            )
        return "a barrier"

    def addressed(self, given: Instruction, mask: Mask | None) -> Iterator[tuple[int, Mask]]:
        """The barriers of an instruction, and the threads of a mask that name each."""
        text = given.addresses[-1]
        who = np.ones(self._registers.threads, np.bool_) if mask is None else mask
        _, names = self._registers.address(text)
        unknown = self._registers.unknown_in(names)
        if unknown is not None:
            who = who & ~unknown
        if not who.any():
            return
        places = self._registers.memory.windows.in_cluster(self._accesses.of_mbarrier(given))
        for place in np.unique(places[who & (places != NOWHERE)]):
            yield int(place), who & (places == place)
