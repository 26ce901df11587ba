"""Cures of the bank conflicts of a launch: a pad or a swizzle of a shared array, by trial.

Every access of the array is moved and counted again. The rows of an array are its own, or those of its declaration in
CUDA C++; where neither has rows, some are tried: steps between lanes, and powers of two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from smembench.explain.areas import areas_of_launch, name_of
from smembench.explain.costs import Costs
from smembench.explain.declared import Declared
from smembench.explain.layouts import Layout, Tile
from smembench.explain.rearranged import Asked
from smembench.explain.requests import NOWHERE, AccessSite
from smembench.explain.trace import SharedArray
from smembench.explain.trials import Tried, extra, least, no_swizzle, pads, swizzles, tried, vector_of
from smembench.model.hardware import STATIC_SHARED_BYTES, WAVEFRONT_BYTES

_LEAST_GAIN = 1 / 3
"""The least share of the conflicts' wavefronts that a cure removes."""

_STEPS, _MOST_STEPS = (1, 2, 4, 8, 16), 6
"""Lanes between which steps in memory are looked at, and how many of the steps are tried as rows."""

_LEAST_ROW = 32
"""Bytes of the shortest row that is tried where no step between lanes has it."""


@dataclass(frozen=True, slots=True)
class Change:
    """An access's requests, and wavefronts per request: as it is, in the layout of the cure, and without conflicts."""

    site: AccessSite
    requests: float
    before: float
    after: float
    ideal: float


@dataclass(frozen=True, slots=True)
class Cure:
    """The layout that removes most conflicts of a shared array, all if possible.

    Attributes:
        tile: the array as the rows that are padded or swizzled.
        plain, best: as it is, and the layout with the fewest wavefronts; None if no layout has fewer.
        changes: of all its accesses by the best layout.
        declared: its declaration in CUDA C++, where it is known.
        typed: whether the size of its elements is that of the source.
        tried_swizzles: whether its rows can be swizzled.
        split: whether the tile's rows are parts of the array's.
        fixed: whether the TMA or tensor cores access it as tiles, too, so that nothing is tried.
    """

    tile: Tile
    plain: Tried
    best: Tried | None
    changes: tuple[Change, ...]
    declared: Declared | None
    typed: bool = False
    tried_swizzles: bool = False
    split: bool = False
    fixed: bool = False

    @property
    def cures(self) -> bool:
        """True if the best layout removes at least a third of the conflicts; less may be chance where data decide."""
        ideal = sum(change.ideal * change.requests for change in self.changes)
        gained = self.plain.wavefronts - (self.best or self.plain).wavefronts
        return self.best is not None and gained >= _LEAST_GAIN * (self.plain.wavefronts - ideal)

    @property
    def pad_bytes(self) -> int:
        """The pad at the end of a row; 0 for a swizzle."""
        return 0 if self.best is None else self.best.layout.pad * self.tile.array.itemsize

    @property
    def row_bytes(self) -> int:
        """Bytes of a row without the pad."""
        return self.tile.columns * self.tile.array.itemsize


def cures(explained: Costs) -> list[Cure]:
    """The cure of each shared array with bank conflicts, those with most wavefronts first; none without conflicts.

    Of memory whose parts no access has in common, such as the tiles in dynamic memory, it is one for each part. Left
    out is an array whose accesses are not all inside it.
    """
    fixed = {tile.array for tile in explained.trace.tiles}
    cured = []
    for array, asked, known in areas_of_launch(explained, conflicts=True):
        if asked.wavefronts().sum() == asked.ideal.sum():
            continue
        if name_of(array) in fixed:
            tile = next(tiles_of(array, asked, known))
            cured.append(Cure(tile, tried(tile, asked, Layout()), None, _changes(tile, asked, None), known, fixed=True))
        else:
            cured.append(cure_of(array, asked, known, room_of(explained)))
    return sorted(cured, key=lambda cure: -cure.plain.wavefronts)


def room_of(explained: Costs) -> int:
    """Bytes that shared memory may take more without fewer blocks resident, nor more than static memory can be."""
    rooms = [] if explained.occupancy is None else [explained.occupancy.room]
    if explained.shared_bytes <= STATIC_SHARED_BYTES:
        rooms.append(STATIC_SHARED_BYTES - explained.shared_bytes)
    return min(rooms, default=WAVEFRONT_BYTES)


def cure_of(array: SharedArray, asked: Asked, known: Declared | None, room: int) -> Cure:
    """The cure of an array by its accesses: a pad rather than a swizzle, if it takes no more than ``room`` bytes."""
    tiles = list(tiles_of(array, asked, known))
    plain = tried(tiles[0], asked, Layout())
    choice = _least(tiles, asked, plain, room)
    if choice is None or not choice[0].free:
        finer = _least([*_parts_of_rows(tiles[0], asked)], asked, plain, room)
        choice = min(filter(None, (choice, finer)), key=lambda pair: pair[0].wavefronts, default=None)
    best, tile = choice or (None, tiles[0])
    swizzled = any(not no_swizzle(candidate, vector_of(candidate, asked)) for candidate in tiles)
    typed = (known.itemsize if known else array.itemsize) == tile.array.itemsize > 1
    return Cure(tile, plain, best, _changes(tile, asked, best), known, typed, swizzled, tile not in tiles)


def _least(tiles: Sequence[Tile], asked: Asked, plain: Tried, room: int) -> tuple[Tried, Tile] | None:
    """The layout with the fewest wavefronts and its rows: of equal ones a pad, if it takes no more than ``room``."""
    pad = least(((tile, pads(tile, asked, most_pad(tile))) for tile in tiles), asked, plain)
    fits = pad is not None and extra(pad[1], pad[0].layout) <= room
    if pad is not None and pad[0].free and fits:
        return pad
    swizzle = least(((tile, swizzles(tile, asked)) for tile in _to_swizzle(tiles)), asked, plain)
    ordered = (pad, swizzle) if fits else (swizzle, pad)
    return min(filter(None, ordered), key=lambda pair: pair[0].wavefronts, default=None)


def _to_swizzle(tiles: Sequence[Tile]) -> list[Tile]:
    """The first tile, and that with a row of one word per bank: XOR with bits of longer rows is one of these."""
    return [
        tile
        for number, tile in enumerate(tiles)
        if not number or tile.columns == WAVEFRONT_BYTES // tile.array.itemsize
    ]


def most_pad(tile: Tile) -> int:
    """Elements of the largest pad to try: a row's length matters to banks modulo a wavefront."""
    return WAVEFRONT_BYTES // tile.array.itemsize - 1


def tiles_of(array: SharedArray, asked: Asked, known: Declared | None) -> Iterator[Tile]:
    """The array as rows, in each way to try; a single row where there is none."""
    if len(array.shape) > 1:
        yield Tile(array, array.shape[-1])
        return
    itemsize = itemsize_of(array, asked, known)
    if known is not None and len(known.sides) > 1 and known.itemsize == itemsize:
        yield Tile(SharedArray(array.name, known.sides, itemsize, array.base), known.sides[-1])
        return
    elements = array.bytes // itemsize
    columns = list(dict.fromkeys(_rows(asked, itemsize, elements)))
    for count in columns:
        yield rows_of(array, itemsize, count)
    if not columns:
        yield rows_of(array, itemsize, elements)


def rows_of(array: SharedArray, itemsize: int, columns: int) -> Tile:
    """An array as rows of ``columns`` elements, the last of which may end behind it."""
    rows = -(-array.bytes // (itemsize * columns))
    return Tile(SharedArray(array.name, (rows * columns,), itemsize, array.base), columns)


def _parts_of_rows(tile: Tile, asked: Asked) -> Iterator[Tile]:
    """The rows of an array that has some, in parts: an array with one dimension more."""
    array = tile.array
    if len(array.shape) == 1:
        return
    for columns in dict.fromkeys(_rows(asked, array.itemsize, tile.columns)):
        if tile.columns % columns == 0:
            shape = (*array.shape[:-1], tile.columns // columns, columns)
            yield Tile(SharedArray(array.name, shape, array.itemsize, array.base), columns)


def itemsize_of(array: SharedArray, asked: Asked, known: Declared | None) -> int:
    """Bytes of an element: those declared, or of the narrowest access if that has fewer or if they are not known."""
    if array.itemsize > 1:
        return array.itemsize
    narrow = min(site.width for site in asked.sites)
    itemsize = narrow if known is None else min(known.itemsize, narrow)
    aligned = all(((rows[rows != NOWHERE] - array.base) % itemsize == 0).all() for _, rows in asked.rows())
    return itemsize if aligned else 1


def _rows(asked: Asked, itemsize: int, elements: int) -> Iterator[int]:
    """Elements per row to try: of whole vectors, and at least two rows."""
    steps: Counter[int] = Counter()
    for _, rows in asked.sample(128).rows():
        for apart in _STEPS:
            one, other = rows[:, apart:], rows[:, :-apart]
            distances = np.abs(one - other)[(one != NOWHERE) & (other != NOWHERE)]
            steps.update(distances.tolist())
    vector = max(site.width for site in asked.sites)
    tried_steps = [step for step, _ in steps.most_common() if step > vector][:_MOST_STEPS]
    powers = [2**bits for bits in range(_LEAST_ROW.bit_length() - 1, (elements * itemsize).bit_length())]
    for size in (*tried_steps, *powers):
        if size % max(vector, itemsize) == 0 and vector < size < elements * itemsize:
            yield size // itemsize


def _changes(tile: Tile, asked: Asked, best: Tried | None) -> tuple[Change, ...]:
    before = asked.wavefronts()
    after = before if best is None else asked.wavefronts(lambda addresses: tile.moved(addresses, best.layout))
    figures = (asked.requests, *(wavefronts / asked.requests for wavefronts in (before, after, asked.ideal)))
    return tuple(Change(site, *map(float, of)) for site, *of in zip(asked.sites, *figures, strict=True))
