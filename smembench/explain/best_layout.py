"""The pad and the swizzle of a shared array that have the fewest bank conflicts, and why there may be none.

They are found from the addresses of one trace, without pad: each layout moves them, and trials.py counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from smembench.explain.analysis import MAX_PAD, explain
from smembench.explain.banks import ideal_wavefronts, wavefronts
from smembench.explain.layouts import Layout, Tile
from smembench.explain.rearranged import asked_of
from smembench.explain.requests import Request, distinct
from smembench.explain.trace import SharedArray, Trace
from smembench.explain.trials import Tried, least, no_swizzle, pads, swizzles, tried, vector_of
from smembench.kernels import registry
from smembench.model.case import Case
from smembench.model.errors import UsageError


@dataclass(frozen=True, slots=True)
class BestLayouts:
    """The best layouts of a shared array.

    Attributes:
        tile: a single row if the length of its rows is not known, or not needed.
        plain: as it is, without pad.
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
    traced = explain(replace(case, pad=0) if kernel.pad else case).trace
    requests = requests_apart(traced)
    for mistake in traced.mistakes:
        if mistake.kind == "outside":
            raise UsageError(f"--best-swizzle: {case.kernel}, line {mistake.line}: {mistake.text}")
    layouts = []
    for array in traced.shared:
        own = [request for request in requests if request.site.array == array.name and request.site.kind != "atomic"]
        if own:
            layouts.append(best_layout(array, own, row))
    if not layouts:
        raise UsageError(f"--best-swizzle: {case.kernel} has no shared memory")
    if row is not None and all(len(best.tile.array.shape) > 1 for best in layouts):
        raise UsageError(f"--row {row}: the shared arrays of {case.kernel} have rows of their own; leave it out")
    return layouts


def requests_apart(traced: Trace) -> list[Request]:
    """The requests to shared memory, one for all of an access site with the same addresses."""
    return distinct((accesses for accesses in traced.accesses if accesses.site.space == "shared"), shifted=False)


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
    kinds = pads(tile, asked, MAX_PAD), swizzles(tile, asked)
    pad, swizzle = (best[0] if (best := least([(tile, layouts)], asked, plain)) else None for layouts in kinds)
    why = no_swizzle(tile, vector)
    return BestLayouts(tile, plain, pad, swizzle, why or _reason(tile, requests, pad, swizzle))


def _reason(tile: Tile, requests: Iterable[Request], pad: Tried | None, swizzle: Tried | None) -> str:
    """A sentence on why a pad or a swizzle is missing; "" if none is."""
    if pad and swizzle:
        return ""
    which = "swizzle" if pad else "pad" if swizzle else "layout"
    text = f"No {which} has fewer wavefronts"
    if not swizzle and all(_in_one_row(tile, request) for request in requests if _extra(request)):
        return f"{text}: elements of one row conflict, which a pad and an XOR by the row move together."
    return f"{text}; tried were pads up to {MAX_PAD} and every XOR with bits of the row."


def _extra(request: Request) -> int:
    """Wavefronts of conflicts."""
    access = request.addresses, request.site.width, request.site.kind
    return wavefronts(*access) - ideal_wavefronts(*access)


def _in_one_row(tile: Tile, request: Request) -> bool:
    """True if the lanes of one row alone have as many conflicts as the request."""

    def row_of(address: int) -> int:
        return (address - tile.array.base) // (tile.columns * tile.array.itemsize)

    rows = {row_of(address) for address in request.addresses if address is not None}
    alone = (
        replace(request, addresses=tuple(a if a is not None and row_of(a) == row else None for a in request.addresses))
        for row in rows
    )
    return max(map(_extra, alone)) >= _extra(request)
