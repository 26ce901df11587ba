"""The standing level of series: what joins it, what stays out, and what nights make of nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from campaign import CAMPAIGN
from smembench.stats.levels import levels
from smembench.stats.noise import Floats

SINCE = range(1, 31) if CAMPAIGN > 1 else (1, 2, 3, 4, 7, 12, 20, 30)
"""Nights since a step on which the level is asked for: each answer is that of the nights until then."""


def nights(count: int, cases: int = 1, seed: int = 1, noise: float = 0.002) -> Floats:
    return np.random.default_rng(seed).normal(0, noise, (cases, count))


@pytest.mark.parametrize("step", [0.05, -0.05])
def test_a_step_never_becomes_the_level(step: float) -> None:
    series = nights(40)
    series[0, 10:] += step
    result = levels(series, 7)
    assert result.at[0].tolist() == [True] * 10 + [False] * 30
    assert result.open[0]
    assert math.sqrt(result.variance[0]) < 0.005


def test_what_is_slower_is_never_the_level_and_what_is_faster_is_after_sixty_nights() -> None:
    series = nights(400, cases=2)
    series[0, 10:] += 0.05
    series[1, 10:] -= 0.05
    result = levels(series, 7)
    assert result.open.tolist() == [True, False]
    assert np.flatnonzero(result.at[0]).tolist() == list(range(10))
    assert levels(series[:, :69], 7).open.tolist() == [True, True]
    assert not levels(series[:, :70], 7).open[1]


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_a_drift_is_part_of_the_level_however_few_nights_make_it(count: int) -> None:
    series = nights(365) + 0.0005 * np.arange(365)
    result = levels(series, count)
    assert result.at[0].mean() > 0.98
    assert not result.open[0]


def test_old_nights_tell_where_the_level_is_and_not_how_noisy_it_is() -> None:
    quiet = nights(60, cases=30)
    old = nights(100, cases=30, seed=2, noise=0.006)
    pooled, alone = levels(np.hstack([old, quiet]), 7), levels(quiet, 7)
    assert np.sqrt(pooled.variance) == pytest.approx(np.sqrt(alone.variance), rel=0.2)


def test_a_bad_night_is_left_out_and_the_next_one_is_not() -> None:
    series = nights(12)
    series[0, 6] += 0.05
    result = levels(series, 7, families=np.zeros(1, dtype=np.int64))
    assert np.flatnonzero(~result.at[0]).tolist() == [6]
    assert not result.open[0]
    assert result.returned[0] == 0


def test_nights_that_come_and_go_are_a_habit() -> None:
    """Of a family if three of its series show it; one that does so has it for itself alone."""
    series = nights(14, cases=40)
    families = np.repeat([0, 1], 20)
    series[0, [4, 7, 10]] += 0.03
    assert not levels(series, 7, families=families).returned.any()
    series[[1, 2], [[5], [8]]] += 0.03
    result = levels(series, 7, families=families)
    assert result.returned[:20] == pytest.approx([0.03] * 20, abs=0.01)
    assert not result.returned[20:].any()


def test_what_is_off_for_longer_than_others_were_is_no_habit() -> None:
    series = nights(14, cases=20)
    series[[1, 2, 3, 4], [4, 6, 8, 10]] += 0.03
    series[0, -2:] += 0.03
    result = levels(series, 7)
    assert result.returned[0] == 0
    assert result.returned[1:] == pytest.approx([0.03] * 19, abs=0.01)


@pytest.mark.parametrize("seed", range(10 if CAMPAIGN > 1 else 5))
def test_a_noisy_family_among_quiet_ones_keeps_its_noise(seed: int) -> None:
    """As one case on a CPU beside a GPU's."""
    series = nights(20, cases=40, seed=seed, noise=0.001)
    series[0] *= 40
    result = levels(series, 7, families=np.array([-1, *[0] * 39]))
    assert result.at[0].mean() >= 0.9
    assert not result.open[0]
    assert math.sqrt(result.variance[0]) == pytest.approx(0.04, rel=0.6)


def test_an_accepted_level_begins_with_its_run() -> None:
    series = nights(14)
    series[0, 10:] += 0.05
    result = levels(series, 7, starts=np.array([10]))
    assert result.at[0].tolist() == [False] * 10 + [True] * 4
    assert not result.open[0]
    assert result.freedom[0] == 9 + 3


def test_an_accepted_level_may_be_that_of_the_first_night() -> None:
    """One night is enough: what follows it is off the level, as after any other accepted night."""
    series = nights(6)
    series[0, 1:] += 0.05
    result = levels(series, 7, starts=np.array([0]))
    assert result.at[0].tolist() == [True] + [False] * 5
    assert result.open[0]
    assert levels(series, 7, starts=np.array([-1])).at[0, 1:].all()


def test_what_all_series_share_is_no_ones_noise_unless_it_is_large() -> None:
    series = nights(20, cases=30) + np.random.default_rng(2).normal(0, 0.004, 20)
    result = levels(series, 7)
    assert math.sqrt(np.median(result.variance)) == pytest.approx(0.002, rel=0.3)
    assert (result.shared > 0.004).all()
    series[:, 15:] += 0.05
    assert levels(series, 7).open.all()


@pytest.mark.parametrize("seed", range(6 if CAMPAIGN > 1 else 3))
def test_a_shift_of_all_series_lasts_until_it_recovers_or_is_accepted(seed: int) -> None:
    """By four times what nights share, however many nights there are of it."""
    series = nights(30, cases=30, seed=seed) + np.random.default_rng(seed).normal(0, 0.002, 30)
    series[:, 7:21] += 0.015
    for night in range(8, 21):
        result = levels(series[:, :night], 7)
        assert result.open.mean() > 0.9, night
        assert result.at[:, 7:].mean() < 0.02, night
        assert (result.shared < 0.012).all(), night
    assert not levels(series, 7).open.any()
    assert not levels(series[:, :21], 7, starts=np.full(30, 7)).open.any()


def test_a_shift_of_one_device_is_none_of_another() -> None:
    series = nights(20, cases=60)
    series[:30, 12:] += 0.03
    result = levels(series, 7, devices=np.repeat([0, 1], 30))
    assert result.open.tolist() == [True] * 30 + [False] * 30
    assert result.at[30:].mean() > 0.98


def test_a_season_is_no_shift() -> None:
    for phase in range(0, 60, 7):
        season = 0.01 * np.sin(2 * math.pi * (np.arange(67) + phase) / 60)
        noise = np.random.default_rng(phase).normal(0, 0.002, 67)
        result = levels(nights(67, cases=30, seed=phase) + season + noise, 7)
        assert not result.open.any()


@pytest.mark.slow
@pytest.mark.parametrize("before", [3, 4, 7, 10, 20])
@pytest.mark.parametrize(("slower", "step"), [(30, 0.1), (30, 0.05), (18, 0.1), (12, -0.1)])
def test_what_most_series_share_never_becomes_the_level_either(before: int, slower: int, step: float) -> None:
    """However many nights there are of it, also more than before it."""
    series = nights(before + 30, cases=30) + np.random.default_rng(2).normal(0, 0.001, before + 30)
    series[:slower, before:] += step
    for night in SINCE:
        result = levels(series[:, : before + night], 7)
        assert result.open.tolist() == [True] * slower + [False] * (30 - slower), night
        assert not result.at[:slower, before:].any()


def test_the_variance_of_nights_is_theirs() -> None:
    result = levels(nights(8, cases=3000), 7)
    assert result.freedom.tolist() == [7] * 3000
    assert math.sqrt(result.variance.mean()) == pytest.approx(0.002, rel=0.05)


@given(st.lists(st.lists(st.one_of(st.floats(-0.2, 0.2), st.just(math.nan)), min_size=4, max_size=4), max_size=6))
def test_any_nights_have_levels(rows: list[list[float]]) -> None:
    series = np.array(rows, dtype=np.float64).reshape(-1, 4)
    result = levels(series, 3)
    assert result.at.shape == series.shape
    assert not result.at[np.isnan(series)].any()
    assert (result.freedom <= np.maximum(np.isfinite(series).sum(axis=1) - 1, 0)).all()
