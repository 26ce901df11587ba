"""Requests counted again at once have the wavefronts of requests counted one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from smembench.explain.banks import ideal_wavefronts, wavefronts
from smembench.explain.rearranged import asked_by, asked_of
from smembench.explain.requests import NOWHERE, Accesses, AccessSite, Request


@st.composite
def some_requests(draw: st.DrawFn) -> list[Request]:
    """Requests of several sites, with lanes that are inactive, share words, or share addresses in pairs."""
    result = []
    for line in range(draw(st.integers(1, 3))):
        width, kind = draw(st.sampled_from([1, 2, 4, 8, 16])), draw(st.sampled_from(["load", "store"]))
        for _ in range(draw(st.integers(1, 4))):
            pairs = draw(st.sampled_from([0, 0, 1, 2]))
            elements = draw(st.lists(st.one_of(st.none(), st.integers(0, 200)), min_size=32, max_size=32))
            lanes = [elements[lane & ~pairs] for lane in range(32)]
            addresses = tuple(None if at is None else at * width for at in lanes)
            site = AccessSite(line, "shared", kind, "tile", width)
            result.append(Request(site, addresses, draw(st.integers(1, 5))))
    return result


@given(some_requests())
def test_wavefronts_are_those_of_each_request(requests: list[Request]) -> None:
    asked = asked_of(requests)
    counted = dict(zip(asked.sites, zip(asked.wavefronts(), asked.ideal, asked.requests, strict=True), strict=True))
    for site, (turns, ideal, number) in counted.items():
        own = [item for item in requests if item.site == site]
        item = [(wavefronts(r.addresses, site.width, site.kind) * r.weight) for r in own]
        best = [ideal_wavefronts(r.addresses, site.width, site.kind) * r.weight for r in own]
        assert (turns, ideal, number) == (sum(item), sum(best), sum(r.weight for r in own))


@given(some_requests(), st.sampled_from([64, 192, 256]))
def test_a_pad_costs_as_much_for_requests_that_whole_rows_make_equal(requests: list[Request], row: int) -> None:
    asked = asked_of(requests)

    def padded(addresses: Any) -> Any:
        return addresses + addresses // row * 16

    np.testing.assert_array_equal(asked.wavefronts(padded), asked.modulo(row, 0).wavefronts(padded))


def test_equal_accesses_of_blocks_add_up() -> None:
    site = AccessSite(3, "shared", "load", "tile", 4)
    column = np.full((2, 1, 32), NOWHERE)
    column[:, 0] = 128 * np.arange(32)
    asked = asked_by([Accesses(site, column, 5), Accesses(site, column, 1)])
    assert (asked.wavefronts()[0], asked.ideal[0], asked.requests[0]) == (12 * 32, 12, 12)


def test_a_sample_stands_for_all() -> None:
    site = AccessSite(3, "shared", "load", "tile", 4)
    rows = np.tile(4 * np.arange(32), (1000, 1, 1))
    rows[:700] *= 32
    asked = asked_by([Accesses(site, rows + 4096 * np.arange(1000)[:, None, None], 1)])
    few = asked.sample(100)
    assert few.parts <= 100 < asked.parts
    assert abs(few.wavefronts()[0] / asked.wavefronts()[0] - 1) < 0.05
