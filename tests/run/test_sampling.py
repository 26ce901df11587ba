"""The stop rule, the taking of samples, and the order of rounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smembench.model.measurement import Conditions
from smembench.run.sampling import collect, shuffled
from smembench.run.stop_rule import StopRule
from smembench.stats.summary import MIN_SAMPLES, ci_width


class Ticking:
    """A sampler and a clock: each sample takes ``seconds`` and reads its own number."""

    def __init__(self, seconds: float) -> None:
        self.now = 0.0
        self._seconds = seconds
        self._numbers = count(1)

    def take(self) -> float:
        self.now += self._seconds
        return float(next(self._numbers))

    def clock(self) -> float:
        return self.now


def states(*reasons: str | None) -> Callable[[], Conditions]:
    """An observer that reports these throttle reasons, the last one for ever."""
    pending: Iterator[str | None] = iter(reasons)
    last = reasons[-1]
    return lambda: Conditions(throttle_reasons=next(pending, last))


def test_the_wanted_number_is_taken_when_time_allows() -> None:
    source = Ticking(0.01)
    batch = collect(source, 30, 10.0, clock=source.clock)
    assert batch.values == tuple(float(number) for number in range(1, 31))
    assert batch.discarded == ()


@given(st.floats(0.01, 20), st.integers(1, 50), st.floats(0.01, 60))
def test_time_is_kept_but_one_sample_is_always_taken(each: float, wanted: int, seconds: float) -> None:
    source = Ticking(each)
    batch = collect(source, wanted, seconds, clock=source.clock)
    assert 1 <= len(batch.values) <= wanted
    assert len(batch.values) == wanted or batch.seconds >= seconds
    assert batch.seconds <= seconds + 2 * each


def test_samples_under_throttling_are_thrown_away_and_taken_again() -> None:
    source = Ticking(0.1)
    batch = collect(source, 4, 100.0, states("sw_thermal", "none", "hw_slowdown", "none"), clock=source.clock)
    assert batch.values == (5.0, 6.0, 7.0, 8.0)
    assert batch.discarded == (1.0, 2.0, 3.0, 4.0)
    assert not any(state.throttled for state in batch.states)


def test_a_batch_that_began_throttled_is_thrown_away() -> None:
    source = Ticking(0.1)
    cool, hot = Conditions(throttle_reasons="none"), Conditions(throttle_reasons="sw_thermal")
    batch = collect(source, 2, 100.0, lambda: cool, clock=source.clock, before=hot)
    assert (batch.values, batch.discarded) == ((2.0, 3.0), (1.0,))
    assert batch.states == (cool, cool)


def test_a_batch_that_began_throttled_and_must_be_kept_is_marked() -> None:
    source = Ticking(0.1)
    hot = Conditions(throttle_reasons="sw_thermal")
    batch = collect(source, 2, 0.05, lambda: Conditions(throttle_reasons="none"), clock=source.clock, before=hot)
    assert (batch.values, batch.discarded, batch.states) == ((1.0,), (), (hot,))


def test_waiting_for_a_core_before_the_first_sample_is_none_of_its_business() -> None:
    source = Ticking(0.1)
    crowded, calm = Conditions(cpu_waiting=0.9), Conditions(cpu_waiting=0.0)
    batch = collect(source, 2, 100.0, lambda: calm, clock=source.clock, before=crowded)
    assert (batch.values, batch.discarded, batch.states) == ((1.0, 2.0), (), (calm, calm))


def test_when_throttling_does_not_end_the_samples_are_kept_and_marked() -> None:
    source = Ticking(0.1)
    batch = collect(source, 4, 100.0, states("sw_thermal"), clock=source.clock)
    assert len(batch.values) == 4
    assert len(batch.discarded) == 8
    assert all(state.throttled for state in batch.states)


def test_samples_without_a_core_are_taken_again_as_well() -> None:
    source = Ticking(0.1)
    pending = iter([0.5, 0.0, 0.04])
    batch = collect(source, 2, 100.0, lambda: Conditions(cpu_waiting=next(pending)), clock=source.clock)
    assert batch.values == (2.0, 3.0)
    assert batch.discarded == (1.0,)


def test_a_stop_ends_after_the_sample_in_flight() -> None:
    source = Ticking(1.0)
    batch = collect(source, 100, 1000.0, stopped=lambda: source.now >= 3, clock=source.clock)
    assert batch.values == (1.0, 2.0, 3.0)


@given(st.integers(3, 1000), st.integers(1, 20))
def test_the_first_rounds_share_the_samples_evenly(samples: int, rounds: int) -> None:
    rule = StopRule(samples=samples, rounds=rounds)
    shares = [rule.share(round_) for round_ in range(rounds)]
    assert len(set(shares)) == 1
    assert samples <= sum(shares) < samples + rounds
    assert rule.share(rounds) == 2 * shares[0]


@pytest.mark.parametrize(
    ("values", "spent", "enough"),
    [
        ([1.0] * 30, 0.0, True),
        ([1.0] * 29, 0.0, False),  # too few, however precise
        ([1.0, 2.0] * 15, 0.0, False),  # enough, and not precise
        ([1.0, 2.0] * 15, 30.0, True),  # not precise, and out of time
        ([1.0] * (MIN_SAMPLES - 1), 30.0, False),  # out of time, and too few for a median
        ([1.0] * MIN_SAMPLES, 30.0, True),
    ],
)
def test_when_a_case_has_enough(values: list[float], spent: float, enough: bool) -> None:
    assert StopRule().satisfied(values, spent) is enough


def test_ci_width_is_the_relative_half_width_of_the_interval() -> None:
    assert ci_width([1.0, 1.0]) == 1.0
    assert ci_width([2.0] * 10) == 0.0
    assert ci_width([0.9, 1.0, 1.0, 1.0, 1.1]) == pytest.approx(0.1)


@given(st.lists(st.integers(0, 1000), unique=True, max_size=60), st.integers(0, 2**31), st.integers(0, 5))
def test_a_round_has_every_case_once_and_keeps_groups_together(cases: list[int], seed: int, round_: int) -> None:
    order = shuffled(cases, lambda case: case % 7, seed, round_)
    assert sorted(order) == sorted(cases)
    groups = [case % 7 for case in order]
    assert sum(a != b for a, b in pairwise(groups)) == max(len(set(groups)) - 1, 0)
    assert order == shuffled(cases, lambda case: case % 7, seed, round_)


def test_rounds_differ_in_their_order() -> None:
    orders = {tuple(shuffled(range(20), lambda case: 0, 1, round_)) for round_ in range(5)}
    assert len(orders) == 5
