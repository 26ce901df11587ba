"""Comparisons of simulated nights whose truth is known, seeded: how often they are wrong and what they see."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from smembench.model.case import Case
from smembench.stats.differs import timer_step
from smembench.stats.noise import Evidence, Noise, weigh
from smembench.studies.compare.comparison import judge
from smembench.studies.compare.pairing import Pair
from smembench.studies.compare.verdicts import CaseComparison, Rules, Side, Verdict

Floats = npt.NDArray[np.float64]
Night = Callable[[np.random.Generator, int], tuple[Floats, Floats]]
ROUNDS, SAMPLES = 3, 10  # as a run takes them when it is told nothing
CHANGED = (Verdict.SLOWER, Verdict.FASTER)


def samples(rng: np.random.Generator, level: Floats, within: Floats | float = 0.01) -> Floats:
    """Times by case, round and sample around a level for each round, 1 % apart when nothing else is said."""
    noise = rng.normal(0, 1, (*level.shape, SAMPLES)) * np.reshape(within, (-1, 1, 1))
    return np.asarray(level[..., None] * np.exp(noise), dtype=np.float64)


def two(one: Callable[[], Floats]) -> tuple[Floats, Floats]:
    return one(), one()


def level(cases: int) -> Floats:
    return np.ones((cases, ROUNDS))


def even(rng: np.random.Generator, cases: int) -> tuple[Floats, Floats]:
    return two(lambda: samples(rng, level(cases)))


def uneven(rng: np.random.Generator, cases: int) -> tuple[Floats, Floats]:
    """Rounds apart by 0.01 % to 5 %, another in each case: what the committed runs of a GPU show."""
    between = np.exp(rng.uniform(np.log(1e-4), np.log(0.05), (cases, 1)))
    return two(lambda: samples(rng, np.exp(between * rng.normal(0, 1, (cases, ROUNDS)))))


def noisy(rng: np.random.Generator, cases: int) -> tuple[Floats, Floats]:
    return two(lambda: samples(rng, np.exp(0.02 * rng.normal(0, 1, (cases, ROUNDS)))))


def one_noisy_side(rng: np.random.Generator, cases: int) -> tuple[Floats, Floats]:
    return samples(rng, level(cases)), samples(rng, np.exp(0.03 * rng.normal(0, 1, (cases, ROUNDS))))


def heavy(rng: np.random.Generator, cases: int) -> tuple[Floats, Floats]:
    """Rounds scatter as Student's t with three degrees of freedom, and one sample in ten takes much longer."""

    def one() -> Floats:
        times = samples(rng, np.exp(0.01 * rng.standard_t(3, (cases, ROUNDS))))
        return np.where(rng.random(times.shape) < 0.1, times * (1 + rng.exponential(0.5, times.shape)), times)

    return two(one)


def quantised(rng: np.random.Generator, cases: int) -> tuple[Floats, Floats]:
    """A clock of steps of 3 %, which a time may lie just between two of."""
    height = rng.uniform(1, 1.03, (cases, 1)) * level(cases)
    return two(lambda: np.round(samples(rng, height, 0.005) / 0.03) * 0.03)


def constant(rng: np.random.Generator, cases: int) -> tuple[Floats, Floats]:
    return two(lambda: samples(rng, level(cases), 0.0))


def compare(base: Floats, new: Floats, rules: Rules = Rules()) -> list[CaseComparison]:  # noqa: B008 - frozen
    """Verdicts in the order of the cases."""
    pairs = []
    medians = [np.median(times, axis=2).tolist() for times in (base, new)]
    for number, (before, after) in enumerate(zip(*medians, strict=True)):
        case = Case("transpose", "copyGmem", "cuda:0", "float32", number + 1, number + 1)
        step = timer_step(base[number].ravel().tolist(), new[number].ravel().tolist())
        sides = [Side(median(side), len(side)) for side in (before, after)]
        pairs.append(Pair(case, sides[0], sides[1], evidence=weigh(before, after, step)))
    return judge(pairs, rules).cases


ALIKE = [even, uneven, noisy, heavy, quantised, constant]


@pytest.mark.parametrize(
    ("night", "cases", "pairs"),
    [(night, *size) for night in ALIKE for size in ((1, 200), (20, 100))],
)
def test_nights_alike_are_seldom_called_changed(night: Night, cases: int, pairs: int) -> None:
    rng = np.random.default_rng(20261120)
    wrong = [
        sum(result.verdict in CHANGED for result in compare(*night(rng, cases))) for _ in range(pairs)
    ]  # false verdicts of each pair of nights
    assert sum(wrong) <= 0.01 * cases * pairs  # of the cases
    assert sum(map(bool, wrong)) <= 0.01 * pairs  # of the runs


def test_a_noisier_night_is_seldom_called_changed() -> None:
    """The distributions are not alike, but neither is slower."""
    rng = np.random.default_rng(10)
    wrong = [any(result.verdict in CHANGED for result in compare(*one_noisy_side(rng, 20))) for _ in range(100)]
    assert sum(wrong) <= 0.02 * len(wrong)


@pytest.mark.parametrize(("cases", "slowed", "pairs"), [(1, 1, 200), (40, 1, 40), (40, 40, 10), (200, 1, 10)])
def test_a_slowdown_of_3_percent_is_seen_under_noise_of_1_percent(cases: int, slowed: int, pairs: int) -> None:
    rng = np.random.default_rng(20261121)
    seen = 0
    for _ in range(pairs):
        base, new = even(rng, cases)
        new[:slowed] *= 1.03
        seen += sum(result.verdict is Verdict.SLOWER for result in compare(base, new)[:slowed])
    assert seen >= 0.95 * pairs * slowed


def nights(rng: np.random.Generator, cases: int, count: int, between: Floats) -> tuple[Floats, Floats]:
    """Some nights and one more, each as a whole off by so much: a night is the unit."""
    times = samples(rng, np.exp(between * rng.normal(0, 1, (cases, count + 1))), 1e-4)
    return times[:, :-1], times[:, -1:]


@pytest.mark.parametrize(("cases", "pairs"), [(1, 200), (20, 100)])
def test_a_night_like_several_before_it_is_seldom_called_changed(cases: int, pairs: int) -> None:
    """Nights differ by 0.01 % to 5 %, another amount in each case, and nothing within a night shows it."""
    rng = np.random.default_rng(11)
    wrong = []
    for _ in range(pairs):
        between = np.exp(rng.uniform(np.log(1e-4), np.log(0.05), (cases, 1)))
        wrong.append(sum(result.verdict in CHANGED for result in compare(*nights(rng, cases, 7, between))))
    assert sum(wrong) <= 0.01 * cases * pairs
    assert sum(map(bool, wrong)) <= 0.015 * pairs


def test_a_slowdown_of_3_percent_over_the_threshold_is_seen_against_seven_nights_half_a_percent_apart() -> None:
    rng = np.random.default_rng(12)
    seen = 0
    for _ in range(100):
        base, new = nights(rng, 20, 7, np.full((20, 1), 0.005))
        new[0] *= 1.035
        seen += compare(base, new)[0].verdict is Verdict.SLOWER
    assert seen >= 90


def test_a_slowdown_below_the_threshold_is_not_called_one() -> None:
    rng = np.random.default_rng(3)
    verdicts = []
    for _ in range(20):
        base, new = two(lambda: samples(rng, level(20), 0.002))
        verdicts += [result.verdict for result in compare(base, 1.01 * new, Rules(threshold=0.02))]
    assert set(verdicts) == {Verdict.SAME}


def test_speeding_up_is_seen_as_slowing_down_is() -> None:
    base, new = even(np.random.default_rng(4), 30)
    for forth, back in zip(compare(base, new * 1.05), compare(new * 1.05, base), strict=True):
        assert (forth.verdict, back.verdict) == (Verdict.SLOWER, Verdict.FASTER)
        assert forth.ratio is not None
        assert back.ratio is not None
        assert forth.ratio * back.ratio == pytest.approx(1)


def test_quiet_nights_are_the_same_and_noisy_ones_ambiguous() -> None:
    rng = np.random.default_rng(5)
    quiet = [result.verdict for result in compare(*two(lambda: samples(rng, level(40), 0.005)), Rules(threshold=0.02))]
    loud = [result.verdict for result in compare(*noisy(rng, 40))]
    assert set(quiet) == {Verdict.SAME}
    assert loud.count(Verdict.AMBIGUOUS) >= 38


def test_constant_times_are_judged_by_their_difference() -> None:
    base, new = constant(np.random.default_rng(6), 3)
    new[1] *= 1.05
    new[2] *= 0.9
    assert [result.verdict for result in compare(base, new)] == [Verdict.SAME, Verdict.SLOWER, Verdict.FASTER]


@pytest.mark.parametrize("night", [even, noisy, uneven])
def test_intervals_cover_the_true_ratio_as_often_as_they_say(night: Night) -> None:
    rng = np.random.default_rng(7)
    covered, count = 0, 0
    for _ in range(40):
        result = compare(*night(rng, 40))
        covered += sum(case.low is not None and case.high is not None and case.low <= 1 <= case.high for case in result)
        count += len(result)
    assert 0.935 <= covered / count <= 0.975


def test_more_rounds_see_less() -> None:
    rng = np.random.default_rng(9)
    least = []
    for rounds in (3, 12):
        units = np.exp(0.01 * rng.normal(0, 1, (40, 2, rounds)))
        weighed = [evidence for pair in units if (evidence := weigh(pair[0].tolist(), pair[1].tolist()))]
        least.append(float(np.median(Noise(weighed).critical(0.01 / len(weighed)))))
    assert least[1] < 0.6 * least[0]


def of_runs(count: int, *, first: float, **fields: Any) -> list[Pair]:
    """Cases whose runs have noise of 0.3 %, as seven nights told; all but the first have no effect."""
    effects = [first, *np.random.default_rng(5).normal(0, 0.003, count - 1).tolist()]
    return [
        Pair(
            Case("transpose", "copyGmem", "cuda:0", "float32", number + 1, number + 1),
            Side(1.0, 7, 1980.0),
            Side(math.exp(effect), 1, 1980.0),
            evidence=Evidence(effect, variance=0.003**2, freedom=6.0, spread=1.15),
            **fields,
        )
        for number, effect in enumerate(effects)
    ]


def test_weight_for_a_case_that_was_off_before_is_taken_from_the_others() -> None:
    pairs = of_runs(100, first=0.02)
    plain, open_all = (judge([replace(pair, open=value) for pair in pairs], Rules()).cases for value in (False, True))
    assert [result.q for result in open_all] == pytest.approx([result.q for result in plain])
    judged = judge([replace(pairs[0], open=True), *pairs[1:]], Rules()).cases
    assert judged[0].q < plain[0].q  # type: ignore[operator]  # a case with evidence has a rate
    assert all(result.q >= before.q for result, before in zip(judged[1:], plain[1:], strict=True))  # type: ignore[operator]


@pytest.mark.parametrize(("returned", "verdict"), [(0.0, "slower"), (0.019, "slower"), (0.021, "ambiguous")])
def test_a_change_is_over_three_times_what_came_and_went(returned: float, verdict: str) -> None:
    pairs = of_runs(20, first=0.06, returned=returned)
    assert judge(pairs, Rules()).cases[0].verdict == verdict


@pytest.mark.parametrize(("least", "verdict"), [(0.0, "slower"), (0.05, "ambiguous")])
def test_a_lower_clock_is_why_a_case_is_slower_where_noise_between_runs_is_known(least: float, verdict: str) -> None:
    slower, *others = of_runs(20, first=0.2, least=least)
    lower = replace(slower, new=replace(slower.new, sm_clock_mhz=1980 / math.exp(0.2)))
    result = judge([lower, *others], Rules()).cases[0]
    assert result.verdict == verdict
    assert "the SM clock was 1980 MHz" in result.reason
