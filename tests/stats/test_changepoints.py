"""Change points on simulated nights whose truth is known. Every generator is seeded."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from smembench.stats.changepoints import SHORTEST, Change, changes, noise_width

Series = NDArray[np.float64]
Noise = Callable[[np.random.Generator, int], Series]

NORMAL: Noise = lambda rng, count: rng.normal(size=count)  # noqa: E731
HEAVY: Noise = lambda rng, count: rng.standard_t(3, size=count)  # noqa: E731


def bad_nights(rng: np.random.Generator, count: int) -> Series:
    """Normal noise, and one night in fifty slower by ten noise widths on average."""
    return rng.normal(size=count) + (rng.random(count) < 0.02) * rng.exponential(10, count)


def times(noise: Series, level: Series | float = 0.0) -> list[float]:
    """Times in ms around 2 ms, from noise and level as logarithms."""
    return list(2 * np.exp(noise + level))


def step(count: int, at: int, size: float) -> Series:
    return np.asarray((np.arange(count) >= at) * np.log1p(size), dtype=np.float64)


def drifting(count: int, at: int) -> Series:
    """0.2 % a night over 20 nights."""
    return np.asarray(0.002 * np.clip(np.arange(count) - at, 0, 20), dtype=np.float64)


def share_found(make: Callable[[np.random.Generator], list[float]], repeats: int = 100) -> float:
    """How often the newest stretch is found slower."""
    rng = np.random.default_rng(20260102)
    result = [changes(make(rng)) for _ in range(repeats)]
    return sum(bool(some and some[-1].ratio > 1) for some in result) / repeats


@pytest.mark.slow
@pytest.mark.parametrize("noise", [NORMAL, HEAVY, bad_nights], ids=["normal", "heavy tails", "bad nights"])
@pytest.mark.parametrize("width", [0.003, 0.01])
@pytest.mark.parametrize("count", [12, 40, 120])
def test_unchanged_series_have_no_change(noise: Noise, width: float, count: int) -> None:
    rng = np.random.default_rng(7)
    alarms = sum(bool(changes(times(width * noise(rng, count)))) for _ in range(300))
    assert alarms <= (0 if noise is NORMAL else 2)


def test_a_thousand_nights_of_two_hundred_cases_do_not_cry_wolf() -> None:
    rng = np.random.default_rng(8)
    widths = rng.uniform(0.003, 0.01, 200)
    assert not any(changes(times(width * rng.normal(size=1000))) for width in widths)


@pytest.mark.parametrize(
    ("size", "width"), [(0.02, 0.003), (0.03, 0.005), (0.06, 0.01), (-0.03, 0.005)], ids=lambda value: f"{value:g}"
)
def test_a_step_is_found_within_three_nights(size: float, width: float) -> None:
    rng = np.random.default_rng(9)
    hits = 0
    for _ in range(100):
        result = changes(times(width * rng.normal(size=63), step(63, 60, size)))
        hits += bool(result) and 58 <= result[-1].index <= 61 and (result[-1].ratio > 1) == (size > 0)
    assert hits >= 95


def test_a_step_of_three_noise_widths_is_found_within_ten_nights() -> None:
    assert share_found(lambda rng: times(0.01 * rng.normal(size=110), step(110, 100, 0.03))) >= 0.95


@pytest.mark.parametrize("noise", [HEAVY, bad_nights], ids=["heavy tails", "bad nights"])
def test_a_step_is_found_in_bad_noise(noise: Noise) -> None:
    assert share_found(lambda rng: times(0.003 * noise(rng, 65), step(65, 60, 0.04))) >= 0.95


@pytest.mark.parametrize("width", [0.003, 0.005, 0.01])
def test_a_slow_drift_is_found_within_three_nights_of_its_end(width: float) -> None:
    drift = drifting(63, 40)
    assert share_found(lambda rng: times(width * rng.normal(size=63), drift)) >= 0.95


def test_a_slow_drift_is_found_without_any_night_before_it() -> None:
    drift = drifting(20, 0)
    assert share_found(lambda rng: times(0.003 * rng.normal(size=20), drift)) >= 0.95


def test_a_drift_and_a_step_are_told_apart() -> None:
    rng = np.random.default_rng(10)
    drift = drifting(60, 40)
    drifts = [changes(times(0.003 * rng.normal(size=60), drift)) for _ in range(60)]
    assert sum(result[-1].drift for result in drifts) >= 50
    assert sum(len(result) == 1 for result in drifts) >= 50
    steps = [changes(times(0.003 * rng.normal(size=60), step(60, 40, 0.04))) for _ in range(60)]
    assert sum(any(change.drift for change in result) for result in steps) <= 1


@pytest.mark.parametrize("night", [0, 1, 30, 58, 59])
@pytest.mark.parametrize("nights", [1, 2])
@pytest.mark.parametrize("factor", [0.5, 1.2, 100.0])
def test_a_bad_night_or_two_are_no_change(night: int, nights: int, factor: float) -> None:
    rng = np.random.default_rng(night)
    for _ in range(20):
        series = times(0.005 * rng.normal(size=60))
        for place in range(night, min(night + nights, 60)):
            series[place] *= factor
        assert not changes(series)


def test_a_change_for_some_nights_is_two_changes() -> None:
    rng = np.random.default_rng(11)
    series = times(0.005 * rng.normal(size=400), step(400, 200, 0.05) - step(400, 210, 0.05))
    up, down = changes(series)
    assert (up.index, down.index) == (200, 210)
    assert up.ratio == pytest.approx(1.05, abs=0.01)
    assert down.ratio == pytest.approx(1 / 1.05, abs=0.01)


def test_many_changes_are_all_found_where_they_are() -> None:
    rng = np.random.default_rng(12)
    sizes = rng.choice([-0.06, 0.06], 12)
    level = sum((step(390, 30 * (place + 1), size) for place, size in enumerate(sizes)), start=np.zeros(390))
    result = changes(times(0.005 * rng.normal(size=390), level))
    assert [change.index for change in result] == [30 * (place + 1) for place in range(12)]


def test_the_noise_may_be_none_at_all() -> None:
    assert changes([1.5] * 50) == []
    assert changes([1.5] * 50 + [1.53] * 3) == [Change(50, 1.5, 1.53)]
    assert changes([1.5] * 50 + [1.507] * 30) == []  # less than 1 %
    assert changes([1.5] * 50 + [1.507] * 30, threshold=0.004) == [Change(50, 1.5, 1.507)]


@pytest.mark.parametrize("often", [0.02, 0.3, 0.5])
def test_times_that_jump_between_two_readings_of_the_clock_are_no_change(often: float) -> None:
    rng = np.random.default_rng(13)
    for _ in range(100):
        assert not changes(list(np.where(rng.random(200) < often, 2.048, 2.0)))


def test_a_step_in_quantised_times_is_found() -> None:
    rng = np.random.default_rng(14)
    series = np.round(np.array(times(0.004 * rng.normal(size=80), step(80, 77, 0.05))) / 0.02) * 0.02
    assert [change.index for change in changes(list(series))] == [77]


@pytest.mark.parametrize("count", range(2 * SHORTEST))
def test_few_nights_tell_nothing(count: int) -> None:
    assert changes([1.0, 2.0, 4.0, 8.0, 16.0][:count]) == []


@given(st.lists(st.floats(1e-6, 1e6), max_size=40), st.floats(1e-3, 1e3))
def test_changes_stand_apart_and_do_not_depend_on_the_unit(series: list[float], unit: float) -> None:
    result = changes(series)
    bounds = [0, *(change.index for change in result if not change.drift), len(series)]
    assert all(after - before >= SHORTEST for before, after in pairwise(bounds) if result)
    assert all(change.before != change.after for change in result)
    scaled = changes([unit * value for value in series])
    assert [change.index for change in scaled] == [change.index for change in result]


def test_the_noise_width_is_that_of_the_noise_whatever_the_level_does() -> None:
    rng = np.random.default_rng(15)
    noise = 0.005 * rng.normal(size=2000)
    for level in (0.0, step(2000, 1000, 0.5), 0.001 * np.arange(2000)):
        assert noise_width(noise + level) == pytest.approx(0.005, rel=0.07)
