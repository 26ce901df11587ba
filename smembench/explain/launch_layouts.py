"""Pads and swizzles of the shared arrays of any launch, from its trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from smembench.explain.areas import Area, areas_of_launch
from smembench.explain.costs import Costs
from smembench.explain.cure import itemsize_of, most_pad, rows_of, tiles_of
from smembench.explain.layouts import Layout, Tile
from smembench.explain.rearranged import Asked
from smembench.explain.trials import Tried, least, no_swizzle, pads, swizzles, tried, vector_of
from smembench.model.errors import UsageError


@dataclass(frozen=True, slots=True)
class BestLayouts:
    """The best layouts of a shared array.

    Attributes:
        tile: the rows that are padded or swizzled.
        plain: as it is.
        pad, swizzle: the best of each kind, None if it has no fewer wavefronts than ``plain``.
        reason: why one of them or both are missing, a sentence; empty if nothing is missing, or needed.
        brackets: whether the source writes ``tile[r][c]``.
    """

    tile: Tile
    plain: Tried
    pad: Tried | None = None
    swizzle: Tried | None = None
    reason: str = ""
    brackets: bool = False


@dataclass(frozen=True, slots=True)
class TriedPads:
    """The pads that were tried of the rows of a tile, from none to the first without conflicts, or to the largest."""

    tile: Tile
    tried: tuple[Tried, ...]

    @property
    def best(self) -> Tried | None:
        """The smallest without conflicts; None if there is none."""
        return self.tried[-1] if self.tried[-1].free else None


def pads_of(explained: Costs, row: int | None = None) -> list[TriedPads]:
    """The pads of each shared array that a launch loads or stores.

    ``row``: elements per row of arrays with one dimension, whose rows are otherwise tried, too.

    Raises:
        UsageError: for a kernel without a tile that can be padded, and rows that do not fit.
    """
    results = []
    for tiles, asked in _arrays(explained, row, "--best-pad"):
        plain = tried(tiles[0], asked, Layout())
        best = least(((tile, pads(tile, asked, most_pad(tile))) for tile in tiles), asked, plain)
        tile, counted = (best[1] if best else tiles[0]), [plain]
        for layout in pads(tile, asked, most_pad(tile)):
            if counted[-1].free:
                break
            counted.append(tried(tile, asked, layout))
        results.append(TriedPads(tile, tuple(counted)))
    return results


def layouts_of(explained: Costs, row: int | None = None) -> list[BestLayouts]:
    """The best pad and swizzle of each shared array that a launch loads or stores; ``row`` as in ``pads_of``.

    Raises:
        UsageError: as ``pads_of``.
    """
    brackets = not explained.trace.filename.endswith(".py")
    arrays = _arrays(explained, row, "--best-swizzle")
    return [best_layouts(tiles, asked, brackets=brackets) for tiles, asked in arrays]


def best_layouts(tiles: Sequence[Tile], asked: Asked, *, brackets: bool = False) -> BestLayouts:
    """The best layouts of an array for its loads and stores: of these rows those with the best swizzle, then pad."""
    plain = tried(tiles[0], asked, Layout())
    if plain.free:
        return BestLayouts(tiles[0], plain, brackets=brackets)
    each = []
    for tile in tiles:
        swizzle = least([(tile, swizzles(tile, asked))], asked, plain)
        pad = least([(tile, pads(tile, asked, most_pad(tile)))], asked, plain)
        each.append((swizzle and swizzle[0], pad and pad[0], tile))
    best, padded, tile = min(each, key=lambda of: [(layout or plain).wavefronts for layout in of[:2]])
    kinds = padded, best
    return BestLayouts(tile, plain, *kinds, _missing(tile, asked, *kinds), brackets=brackets)


def _missing(tile: Tile, asked: Asked, pad: Tried | None, swizzle: Tried | None) -> str:
    """A sentence on why a pad or a swizzle is missing; "" if none is."""
    if swizzle is None and (why := no_swizzle(tile, vector_of(tile, asked))):
        return why
    if pad and swizzle:
        return ""
    return f"No {'swizzle' if pad else 'pad' if swizzle else 'layout'} has fewer wavefronts."


def _arrays(explained: Costs, row: int | None, option: str) -> Iterator[tuple[list[Tile], Asked]]:
    """Each shared array with loads or stores, as the rows to try."""
    for mistake in explained.trace.mistakes:
        if mistake.kind == "outside":
            raise UsageError(f"{option}: line {mistake.line}: {mistake.text}")
    areas = list(areas_of_launch(explained))
    if not areas:
        raise UsageError(f"{option}: {explained.title.partition(' · ')[0]}: has no loads or stores of shared memory")
    for area in areas:
        yield _rows(area, row), area.asked


def _rows(area: Area, row: int | None) -> list[Tile]:
    array, asked, known = area
    tiles = list(tiles_of(array, asked, known))
    if row is None:
        return tiles
    if len(tiles[0].array.shape) > 1:
        raise UsageError(f"--row {row}: {array.name} has rows of its own, of {tiles[0].columns} elements; leave it out")
    itemsize = itemsize_of(array, asked, known)
    if row * itemsize > array.bytes:
        raise UsageError(f"--row {row}: {array.name} has {array.bytes // itemsize} elements; give fewer")
    tile = rows_of(array, itemsize, row)
    if row % (vector := vector_of(tile, asked)):
        raise UsageError(f"--row {row}: rows of {array.name} are whole vectors of {vector} elements")
    return [tile]
