"""Accesses that a trace recorded: an array of all at an access site by a block, and the requests of its warps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from smembench.explain.warp import STEPS
from smembench.model.groups import grouped
from smembench.model.hardware import WARP

Integers = NDArray[np.int64]

NOWHERE = -1
"""The address of an inactive lane."""

UNSERVED = ("barrier", "branch", "fence", "mbarrier")
"""The spaces of an access site that are no memory."""


WAITING = "waiting"
"""The way of loads that blocks repeat until another block has stored what they wait for."""


@dataclass(frozen=True, slots=True)
class AccessSite:
    """A memory access in the source.

    Attributes:
        line: in the kernel's file.
        space: ``shared``, ``constant`` or ``global``, or ``distributed`` for the shared memory of another block of the
            cluster. No memory serves the others, but a launch counts them: ``barrier`` for the barriers of a block,
            ``branch`` for warps that come to an access which none of their lanes makes, ``mbarrier`` for the use of a
            barrier in shared memory.
        kind: ``load``, ``store`` or ``atomic``; for the others as the space.
        array: the problem's name for it, or shared0, shared1, constant0 …
        width: bytes per lane.
        way: ``matrix`` for ``ldmatrix`` and ``stmatrix``, ``asynchronous`` for ``cp.async`` and ``WAITING``, which are
            counted otherwise than plain loads and stores; for those it is empty.
        place: line of the statement, which may be a helper's, as in the machine code's line information; 0 in global
            and constant memory.
    """

    line: int
    space: str
    kind: str
    array: str
    width: int
    way: str = ""
    place: int = 0

    @property
    def in_kernel(self) -> AccessSite:
        """The same for any line of a helper that makes the access."""
        return replace(self, place=0)

    @property
    def name(self) -> str:
        """The way and the kind, such as ``load`` and ``asynchronous store``."""
        return f"{self.way} {self.kind}".strip()


@dataclass(frozen=True, slots=True)
class Request:
    """An access by a warp: a byte address per lane, None for inactive lanes.

    ``weight`` is the number of requests, of the grid or of a launch, that it stands for.
    """

    site: AccessSite
    addresses: tuple[int | None, ...]
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Merged:
    """An access site of the source, and the bytes per lane of the accesses that the compiler made of several.

    Of atomics, which keep their width, it made one of a request's.
    """

    site: AccessSite
    width: int


class Accesses(NamedTuple):
    """The accesses of a block's threads at a site.

    Attributes:
        addresses: byte addresses by access, warp and lane: a thread's n-th access belongs to its warp's n-th request.
        weight: the blocks of the grid that the block stands for.
    """

    site: AccessSite
    addresses: Integers
    weight: int

    def requests(self) -> Iterator[Request]:
        """The requests with an active lane, warp by warp."""
        for warp, number in np.argwhere(self.active().T):
            yield _request(self.site, self.addresses[number, warp], self.weight)

    def active(self) -> NDArray[np.bool_]:
        """A mask by access and warp: true if any lane makes it."""
        active: NDArray[np.bool_] = (self.addresses != NOWHERE).any(axis=2)
        return active


def distinct(recorded: Iterable[Accesses]) -> list[Request]:
    """Requests with those of a site whose addresses are equal, or differ by a shift, as one.

    Only by shifts that leave the cost of a request as it is: see ``STEPS``.
    """
    by_site = grouped(recorded, lambda accesses: accesses.site)
    return [request for site, members in by_site.items() for request in _distinct(site, members)]


def _distinct(site: AccessSite, members: list[Accesses]) -> Iterator[Request]:
    rows, weights = [], []
    for accesses in members:
        rows.append(accesses.addresses.swapaxes(0, 1)[accesses.active().T])
        weights.append(np.full(len(rows[-1]), accesses.weight))
    addresses = np.concatenate(rows)
    alike = np.ascontiguousarray(shifted_rows(addresses, STEPS.get(site.space, 1)))
    # A row as one value of bytes: comparing rows of numbers takes ten times as long.
    values = alike.view(np.dtype((np.void, alike.itemsize * WARP))).ravel()
    _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    counts = np.zeros(len(first), np.int64)
    np.add.at(counts, inverse, np.concatenate(weights))
    for which in np.argsort(first):
        yield _request(site, addresses[first[which]], int(counts[which]))


def shifted_rows(addresses: Integers, step: int, base: int = 0) -> Integers:
    """Rows relative to the largest multiple of ``step`` bytes from ``base`` on that is not above any address."""
    active = addresses != NOWHERE
    begin = np.where(active, addresses - base, np.iinfo(np.int64).max).min(axis=1, keepdims=True) // step * step
    return np.where(active, addresses - begin, NOWHERE)


def _request(site: AccessSite, addresses: Integers, weight: int) -> Request:
    return Request(site, tuple(None if at == NOWHERE else at for at in addresses.tolist()), weight)
