"""The one rule of what is faster: how often it is wrong where nothing differs, and what it sees."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smembench.stats.differs import Effect, Rounds, differs, evidence, evidence_of_medians

TIMES = st.lists(st.floats(0.5, 2.0), min_size=2, max_size=8)


def rounds(rng: np.random.Generator, level: float = 1.0, *, count: int = 3) -> Rounds:
    """Ten samples per round, each round 0.3 % off in common and each sample 0.1 % by itself."""
    off = rng.normal(level, 0.003, count)
    return {number: rng.normal(mean, 0.001, 10).tolist() for number, mean in enumerate(off)}


def differ(base: Rounds, new: Rounds) -> bool:
    result = evidence(base, new)
    assert result is not None
    return differs([result])[0].differs


def test_cases_that_do_not_differ_are_told_apart_in_one_of_twenty() -> None:
    rng = np.random.default_rng(7)
    wrong = sum(differ(rounds(rng), rounds(rng)) for _ in range(400))
    assert wrong <= 400 * 0.05 + 3 * np.sqrt(400 * 0.05)


def test_three_percent_is_seen() -> None:
    rng = np.random.default_rng(8)
    assert sum(differ(rounds(rng), rounds(rng, 1.03)) for _ in range(100)) >= 95


def test_many_samples_of_a_round_do_not_stand_for_rounds() -> None:
    # Within a round samples agree to 0.01 %, but rounds are 1 % apart: 0.5 % between the cases is nothing.
    base = {place: [level * (1 + 1e-4 * k) for k in range(50)] for place, level in enumerate((1.0, 1.01, 1.02))}
    new = {place: [1.005 * sample for sample in samples] for place, samples in base.items()}
    assert not differ(base, new)


def test_of_a_single_round_samples_tell_the_noise() -> None:
    quick = {0: [1.0, 1.001, 0.999, 1.002, 1.0, 0.998]}
    assert differ(quick, {0: [1.05 * sample for sample in quick[0]]})
    assert not differ(quick, quick)


def test_a_single_time_on_each_side_tells_nothing() -> None:
    assert evidence({0: [1.0]}, {0: [2.0]}) is None


@given(TIMES, TIMES)
def test_swapped_sides_have_the_reciprocal_ratio_and_interval(base: list[float], new: list[float]) -> None:
    there, back = evidence({0: base}, {0: new}), evidence({0: new}, {0: base})
    assert there is not None
    assert back is not None
    (one,), (other,) = differs([there]), differs([back])
    assert (one.ratio, one.low, one.high) == pytest.approx((1 / other.ratio, 1 / other.high, 1 / other.low))
    assert one.low <= one.ratio <= one.high
    assert one.differs == other.differs


def test_medians_with_their_intervals_are_enough() -> None:
    apart, close = (evidence_of_medians((1.0, 0.005), (new, 0.005), samples=30) for new in (1.03, 1.003))
    assert [effect.differs for effect in (*differs([apart]), *differs([close]))] == [True, False]


def test_an_interval_beyond_any_number_has_ends() -> None:
    """As two rounds that agree in all but the clock's step may have."""
    effect = Effect.of(0.1, 5000.0, 1.0)
    assert 0 < effect.low < 1 < effect.high < math.inf
    assert not effect.differs
