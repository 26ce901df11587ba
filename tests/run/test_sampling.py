"""The stop rule, the taking of samples, and the order of rounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smembench.model.measurement import Conditions
from smembench.run.config import from_flags
from smembench.run.sampling import Limit, collect, shuffled
from smembench.run.stop_rule import StopRule, rules_of
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


UNKNOWN = Conditions()
COOL, HOT = Conditions(throttle_reasons="none"), Conditions(throttle_reasons="sw_thermal")
LIMITED, BOTH = Conditions(throttle_reasons="sw_power_cap"), Conditions(throttle_reasons="sw_power_cap+sw_thermal")
WAITED, CALM = Conditions(cpu_waiting=0.5), Conditions(cpu_waiting=0.04)


def states(*seen: Conditions) -> Callable[[], Conditions]:
    """An observer that reports these, the last one for ever."""
    pending = iter(seen)
    return lambda: next(pending, seen[-1])


def test_the_wanted_number_is_taken_when_time_allows() -> None:
    source = Ticking(0.01)
    batch = collect(source, Limit(30, 10.0, clock=source.clock))
    assert batch.values == tuple(float(number) for number in range(1, 31))
    assert batch.discarded == ()


@given(st.floats(0.01, 20), st.integers(1, 50), st.floats(0.01, 60))
def test_time_is_kept_but_one_sample_is_always_taken(item: float, wanted: int, seconds: float) -> None:
    source = Ticking(item)
    batch = collect(source, Limit(wanted, seconds, clock=source.clock))
    assert 1 <= len(batch.values) <= wanted
    assert len(batch.values) == wanted or batch.seconds >= seconds
    assert batch.seconds <= seconds + 2 * item


@pytest.mark.parametrize(
    ("wanted", "seconds", "before", "seen", "kept", "discarded", "marked"),
    [
        (4, 100.0, UNKNOWN, [HOT, COOL, HOT, COOL], [5, 6, 7, 8], [1, 2, 3, 4], False),
        (4, 100.0, UNKNOWN, [HOT], [9, 10, 11, 12], [1, 2, 3, 4, 5, 6, 7, 8], True),
        (2, 100.0, HOT, [COOL], [2, 3], [1], False),
        (2, 0.05, HOT, [COOL], [1], [], True),
        (4, 100.0, UNKNOWN, [LIMITED], [1, 2, 3, 4], [], True),
        (2, 100.0, LIMITED, [COOL], [2, 3], [1], False),
        (2, 100.0, UNKNOWN, [BOTH, COOL], [3, 4], [1, 2], False),
        (2, 100.0, UNKNOWN, [replace(LIMITED, cpu_waiting=0.5), COOL], [3, 4], [1, 2], False),
        (2, 100.0, UNKNOWN, [WAITED, CALM], [2, 3], [1], False),
        (2, 100.0, WAITED, [CALM], [1, 2], [], False),
    ],
    ids=[
        "throttled",
        "throttled for ever",
        "throttled before",
        "in no time",
        "power limit",
        "power limit before",
        "hot, too",
        "limit and waited",
        "waited",
        "waited before",
    ],
)
def test_disturbed_samples_are_taken_again_while_there_is_time(
    wanted: int,
    seconds: float,
    before: Conditions,
    seen: list[Conditions],
    kept: list[int],
    discarded: list[int],
    marked: bool,
) -> None:
    source = Ticking(0.1)
    batch = collect(source, Limit(wanted, seconds, clock=source.clock), states(*seen), before)
    assert (list(batch.values), list(batch.discarded)) == (kept, discarded)
    assert any(state.throttled for state in batch.states) is marked


def test_a_stop_ends_after_the_sample_in_flight() -> None:
    source = Ticking(1.0)
    batch = collect(source, Limit(100, 1000.0, lambda: source.now >= 3, source.clock))
    assert batch.values == (1.0, 2.0, 3.0)


@given(st.integers(3, 1000), st.integers(1, 20))
def test_the_first_rounds_share_the_samples_evenly(samples: int, rounds: int) -> None:
    rule = StopRule(samples=samples, rounds=rounds)
    shares = [rule.share(round_) for round_ in range(rounds)]
    assert len(set(shares)) == 1
    assert samples <= sum(shares) < samples + rounds
    assert rule.share(rounds) == 2 * shares[0]


@given(st.integers(1, 10), st.floats(0.1, 1000), st.sampled_from([None, 0.1]))
def test_rounds_that_use_their_limit_use_all_of_a_case_s(rounds: int, most: float, first: float | None) -> None:
    rule = StopRule(rounds=rounds, max_seconds=most, first_round=first)
    spent: list[float] = []
    for round_ in range(rounds):
        spent.append(rule.seconds(round_, sum(spent)))
    assert sum(spent) == pytest.approx(most)
    assert spent[0] == pytest.approx(most * first if first and rounds > 1 else most / rounds)
    assert spent[1:] == pytest.approx([spent[-1]] * (rounds - 1))
    assert rule.seconds(rounds, sum(spent)) == pytest.approx(0, abs=1e-9)
    assert rule.seconds(rounds, 2 * most) == 0


def test_the_first_round_is_short_on_a_cpu_only() -> None:
    rules = rules_of(from_flags({"sweep": [{"problem": "matmul"}], "max_seconds": 30.0}))
    assert [rules[kind].seconds(0, 0.0) for kind in ("cpu", "cuda")] == pytest.approx([3.0, 10.0])
    assert [rules[kind].ci_width for kind in ("cpu", "cuda")] == [0.02, 0.005]


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
