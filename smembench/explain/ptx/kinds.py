"""Blocks to run of a grid, with their weights: one of each kind that differs in accesses or in alignment."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import count as counting
from itertools import pairwise, product
from math import prod
from random import Random
from typing import NamedTuple

Index = tuple[int, ...]
Key = Callable[[Index], Hashable]

FEW = 9
"""Blocks of a grid that are all traced."""
_MOST_PROBES = 40
"""Blocks along an axis, at most, that are traced to find where their work changes."""
_MOST_PERIOD = 128
"""Blocks after which alignment repeats, at most: each is a whole number of bytes further than the one before."""
_TOO_MANY = 8
"""Kinds per ``few`` blocks above which a sample is run instead: each kind would take minutes."""


def kinds_of_grid(grid: Index, structure: Key, alignment: Key, few: Callable[[], int]) -> tuple[dict[Index, int], bool]:
    """The blocks that represent a grid, with the number of blocks that each stands for; whether they are a sample.

    All of a ``few`` represent themselves. Along an axis, blocks with the same ``structure`` follow each other in runs,
    which bisection finds. In a run the ``alignment`` of addresses has a period, of which each block is run. A kernel's
    addresses are taken to be sums of what depends on each axis alone, as those of arrays by rows are. Where random
    blocks show that they are not, or where there are too many kinds, random blocks stand for their neighbours. ``few``
    is asked again after the first blocks have run, which may be longer than block 0.
    """
    if prod(grid) <= (most := few()):
        return dict.fromkeys(product(*map(range, grid)), 1), False
    axes = []
    for axis, count in enumerate(grid):

        def along(key: Key, axis: int = axis) -> Callable[[int], Hashable]:
            return lambda index: key(tuple(index if other == axis else 0 for other in range(len(grid))))

        axes.append(_along_axis(count, along(structure), along(alignment)))
    kinds: dict[Index, int] = {}
    for runs in product(*axes):
        for offsets in product(*(range(run.period) for run in runs)):
            index = tuple(run.begin + offset for run, offset in zip(runs, offsets, strict=True))
            kinds[index] = prod(
                -(-(run.end - run.begin - offset) // run.period) for run, offset in zip(runs, offsets, strict=True)
            )
    random = Random(0)
    if len(kinds) > _TOO_MANY * few():
        return _spread(grid, (), few(), random), True
    for _ in range(min(most, _MOST_PROBES) // 2):
        index = tuple(map(random.randrange, grid))
        one = tuple(_stands_for(at, runs) for at, runs in zip(index, axes, strict=True))
        if (structure(index), alignment(index)) != (structure(one), alignment(one)):
            return _spread(grid, kinds, few(), random), True
    return kinds, False


def _spread(grid: Index, kinds: Iterable[Index], few: int, random: Random) -> dict[Index, int]:
    """The blocks of ``kinds``, each for itself, and one of each of a ``few`` equal parts of the grid for the others."""
    numbers = sorted((z * grid[1] + y) * grid[0] + x for x, y, z in kinds)
    counts = Counter(numbers)
    parts = min(few, prod(grid))
    begins = [part * prod(grid) // parts for part in range(parts + 1)]
    for begin, end in pairwise(begins):
        others = end - begin - (bisect_left(numbers, end) - bisect_left(numbers, begin))
        if others:
            counts[random.choice(range(begin, end))] += others
    return {(at % grid[0], at // grid[0] % grid[1], at // grid[0] // grid[1]): count for at, count in counts.items()}


def kinds_in_a_row(count: int, few: int) -> dict[Index, int]:
    """A ``few`` of the blocks of a grid along x, evenly spaced, each with the number of those up to the next.

    For persistent grids whose blocks begin within a tile: none is like another, and all do as much.
    """
    few = min(count, few)
    begins = [number * count // few for number in range(few + 1)]
    return {(begin, 0, 0): end - begin for begin, end in pairwise(begins)}


class _Run(NamedTuple):
    """Blocks along an axis with one structure, whose alignment repeats after a ``period``."""

    begin: int
    end: int
    period: int


def _along_axis(count: int, structure: Callable[[int], Hashable], alignment: Callable[[int], Hashable]) -> list[_Run]:
    probes = counting()
    middle, last = (count - 1) // 2, count - 1
    begins = sorted({0, *_changes(0, middle, structure, probes), *_changes(middle, last, structure, probes)})
    return [run for begin, end in pairwise([*begins, count]) for run in _runs(begin, end, structure, alignment)]


def _runs(
    begin: int, end: int, structure: Callable[[int], Hashable], alignment: Callable[[int], Hashable]
) -> list[_Run]:
    """A run, in two if its first period has blocks unlike those a period later: these stand for themselves alone."""
    period = _period(begin, end, alignment)
    others = (at for at in range(begin, min(begin + period, end - period)) if structure(at) != structure(begin))
    behind = max((at + 1 for at in others if structure(at) != structure(at + period)), default=begin)
    first = [_Run(begin, behind, behind - begin)] if behind > begin else []
    return [*first, _Run(behind, end, _period(behind, end, alignment))]


def _stands_for(index: int, runs: Iterable[_Run]) -> int:
    """The block of a run that represents one along an axis."""
    (run,) = (run for run in runs if run.begin <= index < run.end)
    return run.begin + (index - run.begin) % run.period


def _period(begin: int, end: int, alignment: Callable[[int], Hashable]) -> int:
    """After how many blocks of a run the alignment repeats; all of them if it does not."""
    first = alignment(begin)
    for period in range(1, min(end - begin, _MOST_PERIOD + 1)):
        if alignment(begin + period) == first:
            return period
    return min(end - begin, _MOST_PERIOD)


def _changes(one: int, other: int, work: Callable[[int], Hashable], probes: Iterator[int]) -> Iterator[int]:
    """Blocks from which on the work is another than before, between two."""
    if work(one) == work(other):
        return
    if other - one == 1 or work(one) == work(other - 1):
        yield other
    elif work(one + 1) == work(other):
        yield one + 1
    elif next(probes) < _MOST_PROBES:
        between = (one + other) // 2
        yield from _changes(one, between, work, probes)
        yield from _changes(between, other, work, probes)


def kinds_of_tiles(
    tile_of: Callable[[int], tuple[int, int]], grid: tuple[int, int], cluster: int, parts: int
) -> dict[Index, int]:
    """The clusters that represent a grid along x, with a block for each tile of ``grid``, and the number of each kind.

    Kinds are the last two columns of tiles and all others, and so are rows, of which clusters may reach below the last;
    each of the ``parts`` of the grid, equally many rows, has its own. ``tile_of`` says which tile a block has.
    """
    first: dict[Hashable, Index] = {}
    counts: Counter[Index] = Counter()
    high = grid[1] // parts

    def kind(block: int) -> Hashable:
        column, row = tile_of(block)
        return max(column, grid[0] - 2), row // high, max(row % high, high - 1 - cluster)

    for number in range(prod(grid) // cluster):
        of_blocks = tuple(kind(block) for block in range(number * cluster, (number + 1) * cluster))
        counts[first.setdefault(of_blocks, (number, 0, 0))] += 1
    return dict(counts)
