"""Which blocks of a grid are traced, and how many blocks each of them stands for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cache
from itertools import count as counting
from itertools import pairwise, product
from math import prod

FEW = 9
"""Blocks of a grid that are all traced."""
_MOST_PROBES = 40
"""Blocks along an axis, at most, that are traced to find where their work changes."""


def kinds_of_blocks(
    grid: tuple[int, ...], like: tuple[int, ...], *, first_differ: bool = True
) -> dict[tuple[int, ...], int]:
    """The blocks of a small ``grid`` that represent those of a large grid ``like`` it, with the number of each kind.

    Along an axis the kinds are the first block, those inside, for which one in the middle stands, and the last; or, if
    ``first_differ`` is false, which saves half of a trace's time, those before the last, and the last.
    """
    axes = []
    for traced, count in zip(grid, like, strict=True):
        first = int(first_differ and count > 1)
        along = Counter({0: first})
        along[(traced - 1) // 2] += count - 1 - first
        along[traced - 1] += 1
        axes.append(+along)
    return {
        tuple(index for index, _ in kind): prod(count for _, count in kind)
        for kind in product(*(axis.items() for axis in axes))
    }


def kinds_by_work(grid: tuple[int, ...], work: Callable[[tuple[int, ...]], Hashable]) -> dict[tuple[int, ...], int]:
    """The blocks that represent a grid of which nothing else is known, with the number of each kind.

    Along an axis the kinds are the first block, the last, and each run of blocks between them that do the same
    ``work``, for which the one in its middle stands: in a grid larger than needed some do all, one a part, the others
    nothing. Where the work changes is found by bisection, which misses a change and its opposite close together.
    """
    if prod(grid) <= FEW:
        return dict.fromkeys(product(*map(range, grid)), 1)
    axes = []
    for axis, count in enumerate(grid):

        @cache
        def along(index: int, axis: int = axis) -> Hashable:
            return work(tuple(index if each == axis else 0 for each in range(len(grid))))

        axes.append(_runs(count, along))
    return {
        tuple(index for index, _ in kind): prod(count for _, count in kind)
        for kind in product(*(sorted(axis.items()) for axis in axes))
    }


def _runs(count: int, work: Callable[[int], Hashable]) -> Counter[int]:
    """The blocks that represent an axis, each with the number of those that it stands for."""
    probes = counting()
    middle, last = (count - 1) // 2, count - 1
    begins = sorted({0, *changes(0, middle, work, probes), *changes(middle, last, work, probes)})
    found: Counter[int] = Counter()
    for begin, end in pairwise([*begins, count]):
        ends = Counter([0] * (begin == 0) + [last] * (end == count > 1))
        found += ends
        found[(begin + end - (end == count)) // 2] += end - begin - ends.total()
    return +found


def changes(one: int, other: int, work: Callable[[int], Hashable], probes: Iterator[int]) -> Iterator[int]:
    """Blocks from which on the work is another than before, between two."""
    if work(one) == work(other):
        return
    if other - one == 1 or work(one) == work(other - 1):
        yield other
    elif work(one + 1) == work(other):
        yield one + 1
    elif next(probes) < _MOST_PROBES:
        between = (one + other) // 2
        yield from changes(one, between, work, probes)
        yield from changes(between, other, work, probes)


def kinds_of_tiles(
    tile_of: Callable[[int], tuple[int, int]], grid: tuple[int, int], cluster: int, parts: int = 1
) -> dict[tuple[int, ...], int]:
    """As ``kinds_of_blocks``, for blocks along x that each have the tile of ``grid`` that ``tile_of`` says.

    The ranks in a ``cluster`` are kinds of their own, and so are the ``parts`` of the grid, equally many rows of tiles
    each. Below the last tile with results of a part it may have some without.
    """
    found: dict[tuple[int, ...], tuple[int, ...]] = {}
    counts: Counter[tuple[int, ...]] = Counter()
    high = grid[1] // parts
    for block in range(prod(grid)):
        column, row = tile_of(block)
        kind = max(column, grid[0] - 2), row // high, max(row % high, high - 1 - cluster), block % cluster
        counts[found.setdefault(kind, (block, 0))] += 1
    return dict(counts)


def divided(
    grid: tuple[int, ...], like: tuple[int, ...], segments: Sequence[int], *, ragged: bool
) -> dict[int, dict[tuple[int, ...], int]]:
    """As ``kinds_of_blocks``, for tiles that are each divided into ``segments``, by their number.

    The blocks are those of a grid along x that has so many for each tile of ``grid``, and divide it evenly. Uneven
    segments have as many requests in all, but where one is shorter than what a block copies ahead.
    """
    found: dict[int, dict[tuple[int, ...], int]] = {}
    kinds = [
        [(traced - 1) // 2 if at < count - 1 else traced - 1 for at in range(count)] if ragged else [0] * count
        for traced, count in zip(grid, like, strict=True)
    ]
    for (y, x), count in zip(product(*reversed(kinds)), segments, strict=True):
        blocks = found.setdefault(count, {})
        for block in range(count * (y * grid[0] + x), count * (y * grid[0] + x + 1)):
            blocks[block, 0] = blocks.get((block, 0), 0) + 1
    return found
