"""Layouts of a shared array to try, and the one with the fewest wavefronts.

Of many requests a sample ranks the layouts; what the first in rank cost is counted from all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from smembench.explain.layouts import Layout, Tile
from smembench.explain.rearranged import Asked, Figures
from smembench.model.hardware import WAVEFRONT_BYTES

_SAMPLE, _MANY, _COUNTED = 96, 2048, 3
"""Parts of requests in a sample; more parts than are compared with each other; layouts that all requests count."""

_LITTLE = 1 / 20
"""The share of an array's bytes that it may take more."""


@dataclass(frozen=True, slots=True)
class Tried:
    """A layout and what it costs: wavefronts over those without conflicts, of all loads and of all stores.

    A degree is None if there are no such accesses.
    """

    layout: Layout
    loads: float | None
    stores: float | None
    wavefronts: int

    @property
    def free(self) -> bool:
        """True if no access has a conflict."""
        return {self.loads, self.stores} <= {1.0, None}


def tried(tile: Tile, asked: Asked, layout: Layout) -> Tried:
    """The cost of requests with the tile's elements in a layout."""
    needed = asked.wavefronts(lambda addresses: tile.moved(addresses, layout))
    loads, stores = (_degree(asked, needed, kind) for kind in ("load", "store"))
    return Tried(layout, loads, stores, round(needed.sum()))


def _degree(asked: Asked, needed: Figures, kind: str) -> float | None:
    ours = np.array([site.kind == kind for site in asked.sites], np.bool_)
    return float(needed[ours].sum() / asked.ideal[ours].sum()) if ours.any() else None


def vector_of(tile: Tile, asked: Asked) -> int:
    """Elements of the widest access, which a layout has to leave together."""
    return max(1, max(site.width for site in asked.sites) // tile.array.itemsize)


def pads(tile: Tile, asked: Asked, most: int) -> list[Layout]:
    """Pads of up to ``most`` elements, of whole vectors."""
    vector = vector_of(tile, asked)
    return [Layout(pad=pad) for pad in range(vector, most + 1, vector)]


def swizzles(tile: Tile, asked: Asked) -> list[Layout]:
    """Swizzles that stay in a row and leave vectors whole, the simplest expressions first."""
    vector = vector_of(tile, asked)
    return [] if no_swizzle(tile, vector) else list(_swizzles(tile, vector))


def _swizzles(tile: Tile, vector: int) -> Iterator[Layout]:
    bits, heights = tile.columns.bit_length() - 1, (tile.rows - 1).bit_length()
    banks = max(WAVEFRONT_BYTES // tile.array.itemsize, 1).bit_length() - 1  # bits that decide an element's bank
    for across in range(vector.bit_length() - 1, min(bits, banks)):
        for down in range(heights):
            most = min(bits - across, heights - down)
            for taken in (most, *range(min(most - 1, banks - across), 0, -1)):
                yield Layout(down=down, rows=2**taken, across=across)


def no_swizzle(tile: Tile, vector: int) -> str:
    """A sentence on why no swizzle is tried; "" if some are."""
    name, columns = tile.array.name, tile.columns
    if columns & (columns - 1):
        return f"No swizzle is tried: a row of {name} has {columns} elements, no power of two, and XOR would leave it."
    if columns <= vector:
        return f"No swizzle is tried: a row of {name} is a single vector."
    return ""


def least(choices: Iterable[tuple[Tile, Sequence[Layout]]], asked: Asked, plain: Tried) -> tuple[Tried, Tile] | None:
    """The layout with the fewest wavefronts: of equal ones that with the fewest bytes, or the first that has few more.

    None if no layout has fewer than ``plain``.
    """
    ranked = []
    for tile, layouts in choices:
        ranked += [(score, _price(tile, layout), tile, layout) for score, layout in _scores(tile, layouts, asked)]
    ranked.sort(key=lambda choice: choice[:2])
    counted = [
        (tried(tile, asked, layout), tile) for score, _, tile, layout in ranked[:_COUNTED] if score < plain.wavefronts
    ]
    few = [choice for choice in counted if choice[0].wavefronts < plain.wavefronts]
    return min(few, key=lambda choice: (choice[0].wavefronts, _price(choice[1], choice[0].layout)), default=None)


def extra(tile: Tile, layout: Layout) -> int:
    """Bytes that a layout takes more than the tile."""
    return tile.bytes(layout) - tile.array.bytes


def _price(tile: Tile, layout: Layout) -> int:
    """The bytes that a layout takes more, 0 if they are no matter."""
    more = extra(tile, layout)
    return more if more > _LITTLE * tile.array.bytes else 0


def _scores(tile: Tile, layouts: Sequence[Layout], asked: Asked) -> Iterator[tuple[int, Layout]]:
    """The wavefronts of layouts by a sample, up to the first without conflicts."""
    if asked.parts <= _MANY and all(layout.pad for layout in layouts):
        asked = asked.modulo(tile.columns * tile.array.itemsize, tile.array.base)
    sample, ideal = asked.sample(_SAMPLE), round(asked.ideal.sum())
    for layout in layouts:
        score = round(sample.wavefronts(lambda addresses, new=layout: tile.moved(addresses, new)).sum())  # type: ignore[misc]
        yield score, layout
        if score <= ideal:
            return
