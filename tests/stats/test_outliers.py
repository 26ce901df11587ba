"""Which members of a group are told from the others: properties that hold for any group."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smembench.stats.noise import Floats
from smembench.stats.outliers import FEWEST, outliers

THRESHOLD, LEVEL = math.log1p(0.01), 2.5e-5


def group(members: int, series: int = 6, seed: int = 1, spread: float = 0.0015) -> Floats:
    return np.random.default_rng(seed).normal(0, spread, (series, members))


def noise(times: Floats, size: float = 0.0005) -> Floats:
    return np.full(times.shape, size)


groups = st.builds(
    group,
    members=st.integers(1, 40),
    series=st.integers(1, 6),
    seed=st.integers(0, 10**6),
    spread=st.sampled_from([0.0, 0.001, 0.01, 0.05]),
)


@pytest.mark.parametrize("members", [8, 64, 1024])
def test_one_slow_member_is_told_in_its_series(members: int) -> None:
    times = group(members, series=20)
    times[4, 3] += 0.05
    flagged = outliers(times, noise(times), THRESHOLD, LEVEL).p <= LEVEL
    assert np.argwhere(flagged).tolist() == [[4, 3]]


def test_a_fifth_of_slow_members_hides_none_of_them() -> None:
    times = group(60, series=20)
    times[:, :12] += 0.03
    flagged = outliers(times, noise(times), THRESHOLD, LEVEL).p <= LEVEL
    assert flagged[:, :12].all()
    assert not flagged[:, 12:].any()


def test_half_slow_is_two_groups_and_names_nobody() -> None:
    times = group(16, series=8)
    times[2, ::2] += 0.04
    result = outliers(times, noise(times), THRESHOLD, LEVEL)
    assert np.flatnonzero(result.slower[2]).tolist() == list(range(0, 16, 2))
    assert not np.delete(result.slower, 2, axis=0).any()
    assert not (result.p <= LEVEL).any()


def test_in_one_of_two_groups_the_slow_one_is_told() -> None:
    times = group(16, series=8)
    times[2, ::2] += 0.04
    times[2, 4] += 0.04
    assert np.argwhere(outliers(times, noise(times), THRESHOLD, LEVEL).p <= LEVEL).tolist() == [[2, 4]]


def test_a_member_with_noisy_rounds_is_not_slow() -> None:
    times = group(32)
    times[:, 5] += 0.02
    wild = noise(times)
    wild[:, 5] = 0.02
    assert (outliers(times, noise(times), THRESHOLD, LEVEL).p[:, 5] <= LEVEL).all()
    assert not (outliers(times, wild, THRESHOLD, LEVEL).p <= LEVEL).any()


def test_times_that_repeat_exactly_leave_the_clocks_resolution() -> None:
    times = np.zeros((6, 16))
    times[0, 3] = 0.03
    assert outliers(times, noise(times, 0.0001), THRESHOLD, LEVEL).p[0, 3] <= LEVEL
    assert outliers(times, noise(times, 0.015), THRESHOLD, LEVEL).p[0, 3] > LEVEL


def test_the_limit_is_where_a_member_is_told() -> None:
    times = group(24)
    result = outliers(times, noise(times), THRESHOLD, LEVEL)
    for share, flagged in ((0.98, False), (1.02, True)):
        # The member in the middle, so that its own move does not change the others' median and scale by much.
        moved = result.distance[:, 0] * 0 + share * result.limit
        assert ((result.p[:, 0] <= LEVEL) == (result.distance[:, 0] >= result.limit)).all()
        again = times.copy()
        again[:, 0] = np.median(times, axis=1) + moved
        later = outliers(again, noise(times), THRESHOLD, LEVEL)
        assert ((later.p[:, 0] <= LEVEL) == (later.distance[:, 0] >= later.limit)).all()
        assert (later.p[:, 0] <= LEVEL).all() == flagged


@settings(max_examples=40, deadline=None)
@given(groups, st.randoms(use_true_random=False))
def test_the_order_of_members_and_series_changes_nothing(times: Floats, random: object) -> None:
    columns = np.random.default_rng(times.size).permutation(times.shape[1])
    rows = np.random.default_rng(times.size + 1).permutation(times.shape[0])
    one = outliers(times, noise(times), THRESHOLD, LEVEL)
    other = outliers(times[rows][:, columns], noise(times), THRESHOLD, LEVEL)
    np.testing.assert_allclose(other.p, one.p[rows][:, columns], rtol=1e-6)
    np.testing.assert_allclose(other.limit, one.limit[rows], rtol=1e-6)


@settings(max_examples=40, deadline=None)
@given(groups, st.floats(-10, 10))
def test_the_unit_of_time_changes_nothing(times: Floats, factor: float) -> None:
    one, other = (outliers(values, noise(times), THRESHOLD, LEVEL) for values in (times, times + factor))
    np.testing.assert_allclose(other.p, one.p, rtol=1e-4, atol=1e-12)
    assert (one.slower == other.slower).all()


@settings(max_examples=40, deadline=None)
@given(groups, st.floats(0.0, 1.0))
def test_who_is_not_slower_than_the_median_is_never_told(times: Floats, by: float) -> None:
    times[:, 0] = np.median(times, axis=1) - by
    result = outliers(times, noise(times), THRESHOLD, LEVEL)
    assert not (result.p[result.distance <= 0] <= LEVEL).any()


@settings(max_examples=40, deadline=None)
@given(groups, st.integers(1, 40))
def test_more_members_at_the_median_raise_no_alarm(times: Floats, more: int) -> None:
    times = np.clip(times, -THRESHOLD / 2, THRESHOLD / 2)
    wider = np.hstack([times, np.repeat(np.median(times, axis=1, keepdims=True), more, axis=1)])
    result = outliers(wider, noise(wider), THRESHOLD, LEVEL)
    assert not (result.p <= LEVEL).any()


@settings(max_examples=40, deadline=None)
@given(groups, st.data())
def test_missing_times_are_nobodys(times: Floats, data: st.DataObject) -> None:
    holes = np.array(data.draw(st.lists(st.booleans(), min_size=times.size, max_size=times.size))).reshape(times.shape)
    with_holes = np.where(holes, math.nan, times)
    result = outliers(with_holes, noise(times), THRESHOLD, LEVEL)
    few = (~holes).sum(axis=1) < FEWEST
    assert (np.isnan(result.p) == (holes | few[:, None])).all()
    assert (np.isnan(result.limit) == few).all()
    assert not result.slower[holes].any()


def test_a_thousand_members_are_judged_in_two_seconds() -> None:
    times = group(1024, series=20, spread=0.01)
    best = math.inf
    for _ in range(3):
        began = time.process_time()
        outliers(times, noise(times), THRESHOLD, LEVEL)
        best = min(best, time.process_time() - began)
    assert best < 2
