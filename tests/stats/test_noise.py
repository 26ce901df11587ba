"""Noise: p-values, intervals and discovery rates against what they are defined as."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control

from smembench.stats.differs import timer_step
from smembench.stats.noise import Evidence, Noise, Own, discovery_rates, weigh
from smembench.stats.summary import centre

PROBABILITIES = st.lists(st.floats(0, 1, allow_subnormal=False), min_size=1, max_size=30)
TIMES = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=6)


@given(PROBABILITIES)
def test_q_values_are_scipys(p_values: list[float]) -> None:
    assert discovery_rates(np.array(p_values)) == pytest.approx(false_discovery_control(p_values), rel=1e-12)


def test_no_p_values_have_no_rates() -> None:
    assert discovery_rates(np.array([])).size == 0


@pytest.mark.parametrize(
    ("freedom", "quantile", "p"),
    # Student's t, two-sided, from any table.
    [(4, 2.776, 0.05), (4, 4.604, 0.01), (2, 4.303, 0.05), (10, 2.228, 0.05), (10, 4.587, 0.001)],
)
def test_a_case_by_itself_gets_students_t(freedom: float, quantile: float, p: float) -> None:
    noise = Noise([Evidence(effect=0.004 * quantile, variance=0.004**2, freedom=freedom, spread=1.0)])
    assert noise.p_values()[0] == pytest.approx(p, rel=0.02)
    assert noise.half_widths(1 - p)[0] == pytest.approx(0.004 * quantile, rel=0.02)


def test_among_others_as_noisy_a_case_needs_less() -> None:
    alone = Evidence(effect=0.03, variance=0.004**2, freedom=4, spread=0.9)
    others = [Evidence(0.0, 0.004**2 * factor, 4, 0.9) for factor in np.linspace(0.2, 2.5, 100)]
    assert Noise([alone, *others]).p_values()[0] < Noise([alone]).p_values()[0] / 100


def test_families_share_nothing_of_their_noise() -> None:
    own = Own(variance=0.03**2, freedom=2, usual=0.03**2, spread=0.34)
    noisy = Evidence(effect=0.05, variance=0.04**2, freedom=6, spread=1.15, own=own, family=-1)
    quiet = [replace(noisy, effect=0.0, variance=0.001**2, own=replace(own, usual=0.001**2), family=0)] * 100
    assert Noise([noisy, *quiet]).half_widths(0.95)[0] == Noise([noisy]).half_widths(0.95)[0]
    assert Noise([noisy, *quiet]).p_values()[0] == Noise([noisy]).p_values()[0]


def test_a_process_whose_numpy_raises_gets_the_same() -> None:
    noisy, quiet = Evidence(0.1, 0.05**2, freedom=4, spread=0.9), Evidence(0.3, 0.0, freedom=200, spread=0.9)
    expected = Noise([noisy, quiet])
    with np.errstate(all="raise"):
        noise = Noise([noisy, quiet])
        assert noise.p_values().tolist() == expected.p_values().tolist()
        assert noise.half_widths(0.95).tolist() == expected.half_widths(0.95).tolist()


def test_quiet_others_do_not_make_a_noisy_case_quiet() -> None:
    noisy = Evidence(effect=0.1, variance=0.05**2, freedom=4, spread=0.9)
    others = [Evidence(0.0, 0.002**2 * factor, 4, 0.9) for factor in np.linspace(0.2, 2.5, 100)]
    assert Noise([noisy, *others]).p_values()[0] > 0.05


@given(TIMES, TIMES, st.floats(0.1, 10))
def test_swapped_sides_and_other_units_change_only_the_sign(base: list[float], new: list[float], factor: float) -> None:
    there, back = weigh(base, new), weigh(new, base)
    scaled = weigh([factor * time for time in base], [factor * time for time in new])
    if there is None or back is None or scaled is None:
        assert len(base) == len(new) == 1
        return
    assert there.effect == pytest.approx(-back.effect)
    assert there.variance == pytest.approx(back.variance)
    assert there.effect == pytest.approx(scaled.effect, abs=1e-9)
    noise = Noise([there])
    assert 0 <= noise.p_values()[0] <= 1
    assert 0 <= noise.half_widths(0.95)[0] < math.inf


@given(st.lists(st.tuples(TIMES, TIMES), min_size=1, max_size=5), st.floats(0.5, 0.999))
def test_an_interval_leaves_one_out_when_the_p_value_says_so(
    pairs: list[tuple[list[float], list[float]]], confidence: float
) -> None:
    weighed = [evidence for base, new in pairs if (evidence := weigh(base, new))]
    noise = Noise(weighed)
    excluded = np.abs(noise.effects) > noise.half_widths(confidence)
    p = noise.p_values()
    clear = np.abs(p - (1 - confidence)) > 1e-4  # ends of intervals are known to within 0.01 %
    assert (excluded == (p < 1 - confidence))[clear].all()


def test_one_round_a_side_tells_no_noise() -> None:
    assert weigh([1.0], [1.1]) is None


def test_a_side_of_one_round_is_as_noisy_as_the_other() -> None:
    evidence = weigh([1.0, 1.01, 0.99], [1.0])
    assert evidence is not None
    assert evidence.freedom == pytest.approx(2)
    assert evidence.spread > 1


def test_many_quiet_rounds_do_not_speak_for_a_few_noisy_ones() -> None:
    noisy, quiet = [1.0, 1.1, 0.9], [1.0, 1.001, 0.999] * 10
    few = weigh(noisy, quiet)
    assert few is not None
    assert few.freedom < 4
    assert few.variance == pytest.approx(np.log(noisy).var(ddof=1), rel=0.2)


def test_the_spread_of_a_centre_is_that_of_normal_values() -> None:
    draws = np.random.default_rng(1).normal(size=(20_000, 8))
    for count in range(1, 9):
        one_side, many = weigh([1.0, 1.0], [1.0] * count), weigh([1.0] * 2, [1.0] * 2)
        assert one_side is not None
        assert many is not None
        spread = one_side.spread - many.spread / 2
        assert spread == pytest.approx(np.var([centre(values) for values in draws[:, :count].tolist()]), rel=0.04)


@pytest.mark.parametrize(("base", "new"), [([1.0], [1.05]), ([1.0, 1.0], [1.05, 1.05]), ([1.0, 1.0 + 1e-9], [1.05])])
def test_one_reading_a_side_shows_no_timer_step(base: list[float], new: list[float]) -> None:
    assert timer_step(base, new) == 0


def test_the_timer_step_is_the_smallest_gap_within_a_side() -> None:
    assert timer_step([0.992, 1.056, 1.056], [1.024, 1.088, 1.056]) == pytest.approx(0.032 / 0.992)


def test_a_difference_of_one_timer_step_is_none() -> None:
    assert Noise([Evidence(effect=0.03, variance=0.0, freedom=4, spread=0.9, step=0.03)]).p_values()[0] > 0.999
    assert Noise([Evidence(effect=0.03, variance=0.0, freedom=4, spread=0.9)]).p_values()[0] < 1e-6


def test_rounds_that_happen_to_agree_do_not_deny_what_the_clock_adds() -> None:
    """Two runs of no change at 3 µs, where event pairs read 0.1 µs more in one round and less in another."""
    base, new = [3.02e-3, 3.03e-3, 3.026e-3], [3.32e-3, 3.317e-3, 3.33e-3]
    believed, known = weigh(base, new), weigh(base, new, clock=1e-4 / 3.02e-3)
    assert believed is not None
    assert known is not None
    quiet = [Evidence(0.0, 0.001**2 * factor, 4, 0.9) for factor in np.linspace(0.2, 2.5, 22)]
    assert Noise([believed, *quiet]).p_values()[0] < 1e-6
    assert Noise([known, *quiet]).p_values()[0] > 1e-4
    # And of a longer kernel it says nothing.
    longer = weigh([1.0, 1.001, 0.999], [1.03, 1.031, 1.029], clock=1e-4)
    assert longer is not None
    assert Noise([longer, *quiet]).p_values()[0] < 1e-6


def test_a_true_effect_of_the_threshold_is_called_beyond_it_as_seldom_as_said() -> None:
    rng = np.random.default_rng(2)
    evidence = [Evidence(0.01 + 0.004 * rng.normal(), 0.004**2 * rng.chisquare(12) / 12, 12, 1.0) for _ in range(2000)]
    beyond = Noise(evidence).p_values(least=0.01) < 0.05
    assert 0.035 < beyond.mean() < 0.065


def test_a_run_whose_rounds_are_noisier_than_usual_needs_more() -> None:
    def own(variance: float) -> Evidence:
        return Evidence(0.03, 0.003**2, 6, 1.14, own=Own(variance, 2, usual=0.001**2, spread=0.34))

    quiet, noisy = (Noise([own(variance)] * 40).p_values(least=0.005)[0] for variance in (0.001**2, 0.02**2))
    assert quiet < 1e-5
    assert noisy > 0.01
    assert Noise([own(0.0005**2)] * 40).p_values(least=0.005)[0] == pytest.approx(quiet, rel=0.6)
