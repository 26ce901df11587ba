"""Accesses as an array are the requests that one finds one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from smembench.explain.requests import NOWHERE, Accesses, AccessSite, Request, distinct
from smembench.explain.warp import STEPS
from smembench.model.hardware import WARP

SITES = [AccessSite(7, space, "load", space, 4) for space in ("shared", "global", "constant")]


@st.composite
def accesses(draw: st.DrawFn) -> Accesses:
    """Of few patterns, so that many are equal, or equal but for a shift."""
    lanes = st.lists(st.sampled_from([NOWHERE, 0, 4, 128]), min_size=WARP, max_size=WARP)
    patterns = draw(st.lists(lanes, min_size=1, max_size=3))
    count, warps = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    addresses = np.full((count, warps, WARP), NOWHERE)
    for number, warp in np.ndindex(count, warps):
        pattern = np.array(draw(st.sampled_from(patterns)))
        moved = draw(st.sampled_from([0, 4, 32, 128, 2**40]))
        addresses[number, warp] = np.where(pattern == NOWHERE, NOWHERE, pattern + moved)
    return Accesses(draw(st.sampled_from(SITES)), addresses, draw(st.integers(1, 2**40)))


def one_by_one(recorded: Sequence[Accesses]) -> list[Request]:
    """By the definition: every access, every warp, every lane."""
    return [
        Request(item.site, tuple(None if at == NOWHERE else at for at in lanes), item.weight)
        for item in recorded
        for rows in item.addresses.swapaxes(0, 1).tolist()
        for lanes in rows
        if any(at != NOWHERE for at in lanes)
    ]


def shifted(addresses: Sequence[int | None], step: int) -> tuple[int | None, ...]:
    """The addresses relative to the largest multiple of ``step`` bytes that is not above any of them.

    Requests with equal relative addresses cost the same if ``step`` is a line in global memory, or one word per bank in
    shared memory.
    """
    begin = min((address for address in addresses if address is not None), default=0) // step * step
    return tuple(None if address is None else address - begin for address in addresses)


@given(st.lists(accesses(), max_size=4))
def test_each_warp_with_an_active_lane_makes_a_request(recorded: list[Accesses]) -> None:
    assert [request for item in recorded for request in item.requests()] == one_by_one(recorded)


@given(st.lists(accesses(), max_size=4))
def test_distinct_requests_stand_for_all(recorded: list[Accesses]) -> None:
    """With the first of those alike, and as many as there are."""

    def kind(request: Request) -> object:
        return request.site, shifted(request.addresses, STEPS.get(request.site.space, 1))

    every, result = one_by_one(recorded), distinct(recorded)
    weights: Counter[object] = Counter()
    first: dict[object, Request] = {}
    for request in every:
        weights[kind(request)] += request.weight
        first.setdefault(kind(request), request)
    assert {kind(request): request.weight for request in result} == weights
    assert [replace(request, weight=first[kind(request)].weight) for request in result] == [
        first[kind(request)] for request in result
    ]
    assert len(result) == len(first)
