"""Requests to shared memory, counted again with their elements elsewhere: the rules of banks.py for many at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from smembench.explain.requests import NOWHERE, Accesses, AccessSite, Integers, Request, shifted_rows
from smembench.model.groups import grouped
from smembench.model.hardware import BANKS, WARP, WORD_BYTES

Figures = NDArray[np.float64]
Move = Callable[[Integers], Integers]
"""The byte addresses of elements in a layout."""


class _Parts(NamedTuple):
    """Lanes that are served together: addresses by part and lane, and of each part its site and how often it is."""

    width: int
    addresses: Integers
    site: Integers
    weight: Figures


@dataclass(frozen=True, slots=True)
class Asked:
    """The requests of sites to a shared array; ``requests`` and ``ideal`` wavefronts are those of each site."""

    sites: Sequence[AccessSite]
    requests: Figures
    ideal: Figures
    _parts: Sequence[_Parts]

    def wavefronts(self, move: Move | None = None) -> Figures:
        """Wavefronts of each site, with the elements moved."""
        totals = np.zeros(len(self.sites))
        for parts in self._parts:
            totals += np.bincount(parts.site, parts.weight * _turns(parts, move), len(self.sites))
        return totals

    def times(self, factors: Figures) -> Asked:
        """The requests of each site, multiplied by its factor."""
        parts = [group._replace(weight=group.weight * factors[group.site]) for group in self._parts]
        return Asked(self.sites, self.requests * factors, self.ideal * factors, parts)

    def modulo(self, step: int, base: int) -> Asked:
        """Requests that a shift by multiples of ``step`` bytes makes equal are one, for layouts that repeat so."""
        return Asked(self.sites, self.requests, self.ideal, [_shifted(group, step, base) for group in self._parts])

    @property
    def parts(self) -> int:
        """Parts of requests whose lanes are served together."""
        return sum(len(group.site) for group in self._parts)

    def sample(self, count: int) -> Asked:
        """About ``count`` parts: those with most conflicts, and others for the rest; all if there are no more."""
        if self.parts <= count:
            return self
        turns = np.concatenate([group.weight * (_turns(group, None) - 1) for group in self._parts])
        order = np.argsort(-turns, kind="stable")
        worst, others = order[: count // 2], np.sort(order[count // 2 :])
        step = -(-len(others) // (count // 2))
        factors = np.zeros(len(turns))
        factors[worst], factors[others[step // 2 :: step]] = 1, step
        kept, begin = [], 0
        for group in self._parts:
            factor = factors[begin : (begin := begin + len(group.site))]
            few = factor > 0
            kept.append(_Parts(group.width, group.addresses[few], group.site[few], (group.weight * factor)[few]))
        return Asked(self.sites, self.requests, self.ideal, kept)

    def rows(self) -> Iterable[tuple[int, Integers]]:
        """The bytes per lane and the addresses of lanes that are served together, NOWHERE for inactive ones."""
        return [(group.width, group.addresses) for group in self._parts]


def asked_of(requests: Iterable[Request]) -> Asked:
    """The requests of all sites together."""
    by_site = grouped(requests, lambda request: request.site)
    return _asked(
        {site: (_table(own), np.array([float(request.weight) for request in own])) for site, own in by_site.items()}
    )


def asked_by(accesses: Iterable[Accesses]) -> Asked:
    """The requests of the warps of traced blocks; the lines of helpers are not distinguished."""
    by_site = grouped(accesses, lambda made: made.site.in_kernel)
    return _asked({site: _distinct(own) for site, own in by_site.items()})


def _table(requests: Sequence[Request]) -> Integers:
    table = np.full((len(requests), WARP), NOWHERE)
    for row, request in enumerate(requests):
        table[row, : len(request.addresses)] = [NOWHERE if at is None else at for at in request.addresses]
    return table


def _distinct(accesses: Sequence[Accesses]) -> tuple[Integers, Figures]:
    rows = [made.addresses[made.active()] for made in accesses]
    weights = [np.full(len(own), float(made.weight)) for own, made in zip(rows, accesses, strict=True)]
    return _merged(np.concatenate(rows), np.concatenate(weights))


def _merged(rows: Integers, weights: Figures) -> tuple[Integers, Figures]:
    """Each row once, with the weight of all that are equal."""
    if not len(rows):
        return rows, weights
    factors = np.random.default_rng(rows.shape[1]).integers(1, 2**62, rows.shape[1])  # so that a row is one number
    _, first, inverse = np.unique(rows @ factors, return_index=True, return_inverse=True)
    return rows[first], np.bincount(inverse, weights, len(first)).astype(np.float64)


def _asked(of_sites: Mapping[AccessSite, tuple[Integers, Figures]]) -> Asked:
    sites, parts, ideal = [*of_sites], [], np.zeros(len(of_sites))
    for number, (site, (rows, weights)) in enumerate(of_sites.items()):
        together = min(WARP, BANKS * WORD_BYTES // site.width)
        shared = _pairwise(rows) if site.kind == "load" and together < WARP else np.zeros(len(rows), np.bool_)
        for lanes, chosen in ((together, ~shared), (2 * together, shared)):
            pieces = rows[chosen].reshape(-1, min(lanes, WARP))
            weight = np.repeat(weights[chosen], WARP // min(lanes, WARP))
            active = (pieces != NOWHERE).any(axis=1)
            if active.any():
                parts.append(
                    _Parts(site.width, pieces[active], np.full(np.count_nonzero(active), number), weight[active])
                )
                ideal[number] += weight[active].sum()
    requests = np.array([weights.sum() for _, weights in of_sites.values()], np.float64)
    return Asked(sites, requests, ideal, parts)


def _pairwise(rows: Integers) -> NDArray[np.bool_]:
    """The requests in which all lanes n and n^1, or all n and n^2, have equal addresses; see ``banks``."""
    lanes = np.arange(WARP)

    def equal(other: int) -> NDArray[np.bool_]:
        partner = rows[:, lanes ^ other]
        same: NDArray[np.bool_] = ((rows == partner) | (rows == NOWHERE) | (partner == NOWHERE)).all(axis=1)
        return same

    return equal(1) | equal(2)


def _turns(parts: _Parts, move: Move | None) -> Integers:
    """The most distinct words that a bank has to deliver, by part."""
    count, active = len(parts.site), parts.addresses != NOWHERE
    if not count:
        return np.zeros(0, np.int64)
    moved = parts.addresses if move is None else move(np.where(active, parts.addresses, parts.addresses.max()))
    words = np.where(active, moved // WORD_BYTES, -BANKS)[:, :, None] + np.arange(max(parts.width // WORD_BYTES, 1))
    words = np.sort(words.reshape(count, -1), axis=1)
    fresh = words >= 0
    fresh[:, 1:] &= words[:, 1:] != words[:, :-1]
    bank = (np.arange(count) * BANKS)[:, None] + words % BANKS
    turns: Integers = np.bincount(bank[fresh], minlength=count * BANKS).reshape(count, BANKS).max(axis=1)
    return turns


def _shifted(parts: _Parts, step: int, base: int) -> _Parts:
    rows = shifted_rows(parts.addresses, step, base)
    rows, weight = _merged(np.column_stack((rows, parts.site)), parts.weight)
    return _Parts(parts.width, rows[:, :-1], rows[:, -1], weight)
