"""The pad and the swizzle of a shared array that have the fewest bank conflicts, and why there may be none.

They are found from the addresses of one trace, without pad: each layout moves them, and rearranged.py counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from smembench.explain.analysis import MAX_PAD
from smembench.explain.banks import ideal_wavefronts, wavefronts
from smembench.explain.launch import launch
from smembench.explain.layouts import Layout, Tile
from smembench.explain.rearranged import Asked, Figures, asked_of
from smembench.explain.recorder import SharedArray
from smembench.explain.requests import Request
from smembench.kernels import registry
from smembench.model.case import Case
from smembench.model.errors import UsageError

_FEW = 256
"""The parts of requests, those with most conflicts, by which layouts are ruled out before all are counted."""


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
        """Whether no access has a conflict."""
        return {self.loads, self.stores} <= {1.0, None}


@dataclass(frozen=True, slots=True)
class BestLayouts:
    """The best layouts of a shared array.

    Attributes:
        tile: a single row if the length of its rows is not known, or not needed.
        plain: as it is, without pad.
        pad, swizzle: the best of each kind, None if it has no fewer wavefronts than ``plain``.
        reason: why one of them or both are missing, a sentence; empty if nothing is missing, or needed.
    """

    tile: Tile
    plain: Tried
    pad: Tried | None = None
    swizzle: Tried | None = None
    reason: str = ""


def best_layouts(case: Case, row: int | None = None) -> list[BestLayouts]:
    """The best layouts of each shared array that the kernel loads or stores.

    Args:
        case: its own pad is left out.
        row: elements per row of arrays with one dimension; None if they are not known.

    Raises:
        UsageError: for a kernel without shared memory, one that cannot be traced or has an index outside an array, and
            rows that do not fit.
    """
    kernel = registry.kernel_of(case)
    traced, requests = launch(kernel, replace(case, pad=0) if kernel.pad else case, apart=True)
    for mistake in traced.mistakes:
        if mistake.kind == "outside":
            raise UsageError(f"--best-swizzle: {case.kernel}, line {mistake.line}: {mistake.text}")
    found = []
    for array in traced.shared:
        own = [request for request in requests if request.site.array == array.name and request.site.kind != "atomic"]
        if own:
            found.append(best_layout(array, own, row))
    if not found:
        raise UsageError(f"--best-swizzle: {case.kernel} has no shared memory")
    if row is not None and all(len(best.tile.array.shape) > 1 for best in found):
        raise UsageError(f"--row {row}: the shared arrays of {case.kernel} have rows of their own; leave it out")
    return found


def best_layout(array: SharedArray, requests: Sequence[Request], row: int | None = None) -> BestLayouts:
    """The best layouts of an array for its loads and stores; ``row`` as in ``best_layouts``.

    Raises:
        UsageError: if the rows do not fit.
    """
    flat, asked = len(array.shape) == 1, asked_of(requests)
    tile = Tile(array, array.shape[-1])
    plain = tried(tile, asked, Layout())
    if plain.free:
        return BestLayouts(tile, plain)
    if flat and row is not None:
        if array.shape[0] % row:
            raise UsageError(f"--row {row}: {array.name} has {array.shape[0]} elements, which are not whole rows")
        tile = Tile(array, row)
    elif flat:
        return BestLayouts(tile, plain, reason=f"{array.name} has one dimension: --row says how long its rows are.")
    if tile.columns % (vector := vector_of(tile, asked)):
        reason = f"A row of {array.name} has {tile.columns} elements, which are not whole vectors of {vector}."
        return BestLayouts(tile, plain, reason=reason)
    pad, swizzle, why = best_pad(tile, asked, plain), best_swizzle(tile, asked, plain), no_swizzle(tile, vector)
    return BestLayouts(tile, plain, pad, swizzle, why or _reason(tile, requests, pad, swizzle))


def vector_of(tile: Tile, asked: Asked) -> int:
    """Elements of the widest access, which a layout has to leave together."""
    return max(1, max(site.width for site in asked.sites) // tile.array.itemsize)


def best_pad(tile: Tile, asked: Asked, plain: Tried, most: int = MAX_PAD) -> Tried | None:
    """The smallest pad, of up to ``most`` elements, with the fewest wavefronts; None if none has fewer than plain."""
    alike = asked.modulo(tile.columns * tile.array.itemsize, tile.array.base)
    vector = vector_of(tile, asked)  # pads of whole ones leave vectors aligned
    return _least(tile, alike, plain, (Layout(pad=pad) for pad in range(vector, most + 1, vector)))


def best_swizzle(tile: Tile, asked: Asked, plain: Tried) -> Tried | None:
    """The simplest swizzle with the fewest wavefronts; None if none has fewer than plain."""
    vector = vector_of(tile, asked)
    return None if no_swizzle(tile, vector) else _least(tile, asked, plain, _swizzles(tile, vector))


def cost(tile: Tile, requests: Iterable[Request], layout: Layout) -> Tried:
    """What the requests cost if the tile's elements lie as a layout has them."""
    return tried(tile, asked_of(requests), layout)


def tried(tile: Tile, asked: Asked, layout: Layout) -> Tried:
    """The same of requests that are to be counted again."""
    needed = asked.wavefronts(lambda addresses: tile.moved(addresses, layout))
    loads, stores = (_degree(asked, needed, kind) for kind in ("load", "store"))
    return Tried(layout, loads, stores, round(needed.sum()))


def _degree(asked: Asked, needed: Figures, kind: str) -> float | None:
    ours = np.array([site.kind == kind for site in asked.sites], np.bool_)
    return float(needed[ours].sum() / asked.ideal[ours].sum()) if ours.any() else None


def _swizzles(tile: Tile, vector: int) -> Iterator[Layout]:
    """Those that stay in a row and leave vectors whole, the simplest expressions first."""
    bits, heights = tile.columns.bit_length() - 1, (tile.rows - 1).bit_length()
    for across in range(vector.bit_length() - 1, bits):
        for down in range(heights):
            for taken in range(min(bits - across, heights - down), 0, -1):
                yield Layout(down=down, rows=2**taken, across=across)


def no_swizzle(tile: Tile, vector: int) -> str:
    """Why no swizzle is tried, a sentence; empty if some are."""
    name, columns = tile.array.name, tile.columns
    if columns & (columns - 1):
        return f"No swizzle is tried: a row of {name} has {columns} elements, no power of two, and XOR would leave it."
    if columns <= vector:
        return f"No swizzle is tried: a row of {name} is a single vector."
    return ""


def _reason(tile: Tile, requests: Iterable[Request], pad: Tried | None, swizzle: Tried | None) -> str:
    """Why a pad or a swizzle is missing, a sentence."""
    if pad and swizzle:
        return ""
    which = "swizzle" if pad else "pad" if swizzle else "layout"
    said = f"No {which} has fewer wavefronts"
    if not swizzle and all(_in_one_row(tile, request) for request in requests if _extra(request)):
        return f"{said}: elements of one row conflict, which a pad and an XOR by the row move together."
    return f"{said}; tried were pads up to {MAX_PAD} and every XOR with bits of the row."


def _extra(request: Request) -> int:
    """Wavefronts of conflicts."""
    access = request.addresses, request.site.width, request.site.kind
    return wavefronts(*access) - ideal_wavefronts(*access)


def _in_one_row(tile: Tile, request: Request) -> bool:
    """Whether the lanes of one row alone have as many conflicts as the request."""

    def row_of(address: int) -> int:
        return (address - tile.array.base) // (tile.columns * tile.array.itemsize)

    rows = {row_of(address) for address in request.addresses if address is not None}
    alone = (
        replace(request, addresses=tuple(a if a is not None and row_of(a) == row else None for a in request.addresses))
        for row in rows
    )
    return max(map(_extra, alone)) >= _extra(request)


def _least(tile: Tile, asked: Asked, plain: Tried, layouts: Iterable[Layout]) -> Tried | None:
    """The first with the fewest wavefronts; None if none has fewer than ``plain``."""
    few, others = asked.worst(_FEW)
    best = plain
    for layout in layouts:
        at_least = few.wavefronts(lambda addresses, new=layout: tile.moved(addresses, new)).sum() + others  # type: ignore[misc]
        if round(at_least) < best.wavefronts and (found := tried(tile, asked, layout)).wavefronts < best.wavefronts:
            best = found
        if best.free:
            break
    return None if best is plain else best
