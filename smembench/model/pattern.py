"""Smaller cases that access memory as a case does, for a trace."""

from __future__ import annotations

from dataclasses import replace
from math import lcm

from smembench.model.case import Block, Case


def pattern_period(case: Case, results: tuple[int, int] = (1, 1)) -> int:
    """Elements along a side after which accesses repeat: a multiple of twice the block's sides and of 32.

    It is also a multiple of what a block computes if each thread computes ``results`` elements (x, y).
    """
    block = case.block or Block(1, 1)
    return lcm(2 * block.x, 2 * block.y, results[0] * block.x, results[1] * block.y, 32)


def shrunk(side: int, period: int) -> int:
    """A shorter side with the same remainder, so that rows begin at the same offsets in sectors and banks."""
    return side if side <= 4 * period else 3 * period + side % period


class Pattern:
    """The blocks and loops of a problem's cases that access memory in different ways."""

    def smaller(self, case: Case, results: tuple[int, int] = (1, 1)) -> Case:
        """A smaller case whose blocks access memory in the same ways, with ``results`` elements (x, y) per thread."""
        period = pattern_period(case, results)
        return replace(case, m=shrunk(case.m, period), n=shrunk(case.n, period))

    def longer(self, case: Case, smaller: Case) -> tuple[Case, int]:
        """The ``smaller`` case with one more period of its loop, and how many more periods the case has.

        Without a loop, or if the smaller case already has all periods: the smaller case itself and 0.
        """
        return smaller, 0
