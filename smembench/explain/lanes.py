"""An access of a warp by element offsets, a function of the lane: for layouts without a kernel."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from smembench.explain.banks import ideal_wavefronts, is_broadcast, wavefronts
from smembench.explain.costs import SharedAccess
from smembench.explain.cure import Cure, cure_of
from smembench.explain.occupancy import MOST_SHARED_BYTES
from smembench.explain.rearranged import asked_of
from smembench.explain.requests import AccessSite, Request
from smembench.explain.trace import SharedArray
from smembench.explain.warp import WIDTHS
from smembench.launches.expression import evaluated, parsed
from smembench.model.errors import UsageError
from smembench.model.hardware import STATIC_SHARED_BYTES, WARP

_TOO_FAR = f"is beyond the {MOST_SHARED_BYTES} bytes of shared memory that a block can have"

Offsets = Callable[[int], int | None] | Sequence[int | None]
"""The offset of each lane, in elements; None for an inactive lane."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lanes:
    """Accesses of a warp to a tile: a load, a store or both.

    Attributes:
        array: the tile, from its first element to the last that a lane accesses.
        accesses: the load before the store.
        vector: elements per lane.
        cure: the cure of all bank conflicts; None without conflicts.
    """

    array: SharedArray
    accesses: tuple[SharedAccess, ...]
    vector: int
    cure: Cure | None

    @property
    def wavefronts(self) -> int:
        """Wavefronts of all accesses, one request each."""
        return round(sum(access.wavefronts for access in self.accesses))

    @property
    def degree(self) -> float:
        """The worst n of an n-way conflict; 1 without conflicts."""
        return max(access.degree for access in self.accesses)


def lanes(
    load: Offsets | None = None,
    store: Offsets | None = None,
    *,
    itemsize: int = 4,
    vector: int = 1,
    row: int | None = None,
) -> Lanes:
    """Wavefronts and conflicts of a load, a store or both.

    Args:
        load, store: element offsets by lane.
        itemsize: bytes per element.
        vector: elements per lane, from the offset on.
        row: elements per row of the tile, for the cure; None where they are to be tried.

    Raises:
        UsageError: for bytes per lane that no instruction has, offsets that are negative, not aligned or too large, and
            what is no number or no offsets.
    """
    for name, value in (("itemsize", itemsize), ("vector", vector), ("row", row)):
        if not (value is None and name == "row") and not hasattr(value, "__index__"):
            raise UsageError(f"{name} {value!r}: give a whole number")
    width = itemsize * vector
    if width not in WIDTHS or vector < 1:
        sizes = ", ".join(map(str, WIDTHS))
        raise UsageError(f"itemsize {itemsize}, vector {vector}: are {width} bytes per lane; give {sizes} in all")
    given = {kind: offsets for kind, offsets in (("load", load), ("store", store)) if offsets is not None}
    if not given:
        raise UsageError("layout: give offsets of a load or a store, a function of the lane")
    requests = [_request(kind, offsets, itemsize, vector) for kind, offsets in given.items()]
    end = max(address + width for request in requests for address in request.addresses if address is not None)
    array = SharedArray("tile", _shape(end // itemsize, row, vector, itemsize), itemsize, 0)
    asked = asked_of(requests)
    free = asked.wavefronts().sum() == asked.ideal.sum()
    return Lanes(
        array=array,
        accesses=tuple(map(_access, requests)),
        vector=vector,
        cure=None if free else cure_of(array, asked, None, STATIC_SHARED_BYTES - array.bytes),
    )


def offsets_of(text: str, option: str) -> list[int]:
    """The offsets of an expression of ``lane``, such as ``lane // 8 * 64 + lane % 8``.

    Raises:
        UsageError: for what is no arithmetic of integers with ``lane``.
    """
    try:
        expression = parsed(text)
        return [evaluated(expression, {"lane": lane}) for lane in range(WARP)]
    except ValueError as error:
        raise UsageError(f"{option} {text!r}: {error}") from None


def _shape(elements: int, row: int | None, vector: int, itemsize: int) -> tuple[int, ...]:
    if row is None:
        return (elements,)
    if row < 1 or row % vector:
        raise UsageError(f"row {row}: give whole vectors of {vector} elements")
    if row * itemsize > MOST_SHARED_BYTES:
        raise UsageError(f"row {row}: {_TOO_FAR}; give a shorter one")
    return -(-elements // row), row


def _request(kind: str, offsets: Offsets, itemsize: int, vector: int) -> Request:
    if not callable(offsets) and not hasattr(offsets, "__iter__"):
        raise UsageError(f"{kind} {offsets!r}: give a function of the lane, or the lanes' offsets")
    of_lanes = [offsets(lane) for lane in range(WARP)] if callable(offsets) else list(offsets)
    if len(of_lanes) > WARP:
        raise UsageError(f"{kind}: has {len(of_lanes)} offsets; a warp has {WARP} lanes")
    addresses: list[int | None] = []
    for lane, offset in enumerate(of_lanes):
        try:
            at = None if offset is None else operator.index(offset)
        except TypeError:
            raise UsageError(f"{kind}: the offset of lane {lane} is {offset!r}; give whole elements") from None
        if at is not None and (at < 0 or at % vector):
            why = "is negative" if at < 0 else f"is not aligned: give multiples of the vector's {vector} elements"
            raise UsageError(f"{kind}: the offset of lane {lane}, {at}, {why}")
        if at is not None and (at + vector) * itemsize > MOST_SHARED_BYTES:
            raise UsageError(f"{kind}: the offset of lane {lane}, {at}, {_TOO_FAR}; give smaller offsets")
        addresses.append(None if at is None else at * itemsize)
    if all(address is None for address in addresses):
        raise UsageError(f"{kind}: no lane is active; give an offset for one at least")
    return Request(AccessSite(0, "shared", kind, "tile", itemsize * vector), tuple(addresses))


def _access(request: Request) -> SharedAccess:
    addresses, width, kind = request.addresses, request.site.width, request.site.kind
    return SharedAccess(
        request.site,
        "",
        1,
        wavefronts=wavefronts(addresses, width, kind),
        ideal=ideal_wavefronts(addresses, width, kind),
        worst=request,
        broadcast=is_broadcast(addresses, width),
    )
