"""Common parts of the stencil kernels: their grid, their shared tile, and the tap a lane begins with.

Every kernel keeps its block's share of the input, with ``RADIUS`` elements on either side, in a shared tile, so the
inner loop reads at most the coefficients from global memory. Every thread sums all taps. The kernels differ in where
the coefficients are and in the tap that a thread begins with:

- uniform: the lanes of a warp begin with the same tap, and read the same coefficient at each step;
- diverging: each lane begins one tap before its neighbour, so that a warp reads all ``TAPS`` coefficients at each
  step. The elements of the tile that they are multiplied with then lie in few places, and are broadcast.

A thread's first tap follows from its number over ``UNIFORM`` or ``DIVERGING``. The compiler knows it in neither case:
the coefficients stay loads, do not become immediates, and both take the same instructions.
"""

from __future__ import annotations

from smembench.kernels.common.grids import block_of, covering, threads_of
from smembench.kernels.constant.problem import RADIUS, TAPS
from smembench.model.case import Block, Case

COEFFICIENTS = "coefficients"
"""The input that is in constant memory, and the name of the variable that holds it there."""
UNIFORM, DIVERGING = 32, 1
"""Neighbouring lanes that begin with the same tap."""


def grid_of(case: Case) -> tuple[int, int]:
    """Blocks along x over n elements, one thread per element."""
    return covering(case.n, 1, Block(threads_of(case), 1))


def tile_elements(case: Case) -> int:
    """The block's elements and those on either side."""
    return threads_of(case) + 2 * RADIUS


def few_threads(case: Case) -> str | None:
    """Blocks with fewer threads than taps: a thread loads at most one element beyond its own, and one coefficient."""
    if threads_of(case) >= TAPS:
        return None
    return f"{case.kernel} needs a block of at least {TAPS} threads, not {block_of(case)}"
