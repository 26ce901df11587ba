from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t

from smembench.stats.summary import Summary, ci_width, median_interval, student, uncertainty

times = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=200)


@given(times)
def test_summary_agrees_with_numpy(values: list[float]) -> None:
    summary = Summary.of(values)
    result = (summary.min, summary.q1, summary.median, summary.q3, summary.max)
    assert result == pytest.approx(np.quantile(values, [0, 0.25, 0.5, 0.75, 1]), rel=1e-12)
    assert list(result) == sorted(result)
    assert summary.count == len(values)


@pytest.mark.parametrize("values", [[], [0.0], [1.0, -1.0], [1.0, math.nan], [math.inf]])
def test_times_must_be_positive_and_finite(values: list[float]) -> None:
    with pytest.raises(ValueError, match=r"no samples|positive and finite"):
        Summary.of(values)


@given(times)
def test_the_interval_runs_between_samples_around_the_median(values: list[float]) -> None:
    low, high = median_interval(values)
    assert {low, high} <= set(values)
    assert low <= np.median(values) * (1 + 1e-12)
    assert high >= np.median(values) * (1 - 1e-12)


@given(st.integers(6, 300), st.sampled_from([0.9, 0.95, 0.99]))
def test_the_interval_is_the_narrowest_that_is_sure_enough(count: int, confidence: float) -> None:
    def coverage(rank: int) -> float:
        below = sum(math.comb(count, place) for place in range(rank))
        return 1 - float(2 * below / 2**count)

    low, high = median_interval(range(count), confidence)
    rank = int(low) + 1
    assert high == count - rank
    assert coverage(rank + 1) < confidence
    assert coverage(rank) >= confidence or rank == 1


@pytest.mark.parametrize("count", [6, 11, 30, 101])
def test_the_interval_covers_the_median_as_often_as_it_says(count: int) -> None:
    draws = np.random.default_rng(1).exponential(size=(3000, count))
    bounds = np.array([median_interval(list(draw)) for draw in draws])
    covered = (bounds[:, 0] <= math.log(2)) & (math.log(2) <= bounds[:, 1])
    assert covered.mean() > 0.95 - 3 * math.sqrt(0.95 * 0.05 / len(draws))


@pytest.mark.parametrize("freedom", [*range(1, 40), 100, 1000])
def test_students_t_is_scipys(freedom: int) -> None:
    assert student(freedom) == pytest.approx(float(t.ppf(0.975, freedom)), rel=2e-3)


@pytest.mark.parametrize("rounds", [3, 5, 12])
def test_the_interval_over_rounds_covers_the_time_as_often_as_it_says(rounds: int) -> None:
    """Where rounds differ by ten times as much as their samples; intervals of the samples alone hardly ever do."""
    rng = np.random.default_rng(rounds)
    covered, alone = 0, 0
    for _ in range(1500):
        samples = 1 + rng.normal(0, 0.01, (rounds, 1)) + rng.normal(0, 0.001, (rounds, 10))
        off = abs(np.median(samples) - 1) / np.median(samples)
        covered += bool(off <= uncertainty(samples.tolist()))
        alone += bool(off <= ci_width(samples.ravel().tolist()))
    assert 0.9 < covered / 1500 < 0.985
    assert alone / 1500 < 0.9


@given(st.lists(st.lists(st.floats(0.1, 10), min_size=1, max_size=9), min_size=1, max_size=6))
def test_the_interval_over_rounds_is_never_narrower_than_the_samples(rounds: list[list[float]]) -> None:
    alone = ci_width([value for values in rounds for value in values])
    assert uncertainty(rounds) >= alone
    if len(rounds) < 3:
        assert uncertainty(rounds) == alone


def test_no_samples_have_no_interval() -> None:
    with pytest.raises(ValueError, match="no samples"):
        median_interval([])
