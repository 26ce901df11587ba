"""Which blocks of a grid are run, and how many each stands for: those that differ in accesses or in alignment."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from itertools import count as counting
from itertools import product
from math import prod

from smembench.explain.blocks import changes

Index = tuple[int, ...]
Key = Callable[[Index], Hashable]

_MOST_PERIOD = 128
"""Blocks after which alignment repeats, at most: each is a whole number of bytes further than the one before."""


def kinds_of_grid(grid: Index, structure: Key, alignment: Key, few: int) -> dict[Index, int]:
    """The blocks that represent a grid, with the number of blocks that each stands for.

    All of a ``few`` represent themselves. Along an axis, blocks with the same ``structure`` follow each other in runs,
    which bisection finds. In a run the ``alignment`` of addresses has a period, of which each block is run. A kernel's
    addresses are taken to be sums of what depends on each axis alone, as those of arrays by rows are.
    """
    if prod(grid) <= few:
        return dict.fromkeys(product(*map(range, grid)), 1)
    axes = []
    for axis, count in enumerate(grid):

        def along(key: Key, axis: int = axis) -> Callable[[int], Hashable]:
            return lambda index: key(tuple(index if each == axis else 0 for each in range(len(grid))))

        axes.append(_along_axis(count, along(structure), along(alignment)))
    return {
        tuple(index for index, _ in kind): prod(count for _, count in kind)
        for kind in product(*(sorted(axis.items()) for axis in axes))
    }


def _along_axis(
    count: int, structure: Callable[[int], Hashable], alignment: Callable[[int], Hashable]
) -> dict[int, int]:
    probes = counting()
    middle, last = (count - 1) // 2, count - 1
    begins = sorted({0, *changes(0, middle, structure, probes), *changes(middle, last, structure, probes)})
    found: dict[int, int] = {}
    for begin, end in zip(begins, [*begins[1:], count], strict=True):
        period = _period(begin, end, alignment)
        for offset in range(period):
            found[begin + offset] = -(-(end - begin - offset) // period)
    return found


def _period(begin: int, end: int, alignment: Callable[[int], Hashable]) -> int:
    """After how many blocks of a run the alignment repeats; all of them if it does not."""
    first = alignment(begin)
    for period in range(1, min(end - begin, _MOST_PERIOD + 1)):
        if alignment(begin + period) == first:
            return period
    return min(end - begin, _MOST_PERIOD)
