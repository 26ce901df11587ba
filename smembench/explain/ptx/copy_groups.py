"""Asynchronous copies of threads, which come in groups that the threads commit and wait for (PTX ISA, "cp.async")."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from smembench.explain.mistakes import NEVER
from smembench.explain.ptx.program import Instruction
from smembench.explain.ptx.registers import Mask, Registers
from smembench.explain.ptx.values import Run
from smembench.explain.requests import Integers


class _Copy(NamedTuple):
    """The group of each thread's copy, and the place in the order where it has come; ``NEVER`` until then."""

    group: Integers
    come: Integers


class CopyGroups:
    """The copies of a block's threads for which not all of them have waited."""

    def __init__(self, registers: Registers) -> None:
        self._registers = registers
        self._committed = np.zeros(registers.threads, np.int64)
        self._copies: list[_Copy] = []

    def enter(self) -> None:
        """Begin a block."""
        self._committed = np.zeros(self._registers.threads, np.int64)
        self._copies.clear()

    def begin(self, mask: Mask | None) -> Integers:
        """A copy by the threads of a mask; where in their order it comes, filled in when they wait."""
        group = self._committed.copy()
        if mask is not None:
            group[~mask] = NEVER
        self._copies.append(_Copy(group, np.full(len(group), NEVER)))
        return self._copies[-1].come

    def ordering(self, given: Instruction, order: Callable[[], Integers]) -> Run:
        """A function that commits groups, or waits for all but the last few."""
        if "commit_group" in given.parts:
            return self._commit
        of_all = "wait_all" in given.parts or "mbarrier" in given.parts
        latest = None if of_all else self._registers.operand(given.operands[0], "u4")

        def wait(mask: Mask | None) -> None:
            last = np.full_like(self._committed, NEVER) if latest is None else self._committed - int(latest())
            for group, come in self._copies:
                waited = (group < last) & (come == NEVER)
                if mask is not None:
                    waited &= mask
                come[waited] = order()[waited]
            self._copies = [copy for copy in self._copies if ((copy.group < NEVER) & (copy.come == NEVER)).any()]

        return wait

    def _commit(self, mask: Mask | None) -> None:
        self._committed[slice(None) if mask is None else mask] += 1
