"""Simulated fleets in small: how often the rule names a normal GPU, and what it finds. The study has them at large."""

from __future__ import annotations

import pytest
from scipy.stats import binom
from variation.simulator import MODELS
from variation.study import Found, Task, study

from campaign import CAMPAIGN

FEW = {8: (20, 8), 64: (8, 6), 1024: (1, 1)} if CAMPAIGN == 1 else {8: (40, 15), 64: (16, 12), 1024: (2, 1)}
"""By number of GPUs: fleets of normal GPUs, and fleets with slow ones."""


def asked(model: str, count: int, sizes: tuple[float, ...] = (0.03,)) -> Found:
    quiet, slow = FEW[count]
    return study(Task(model, count, quiet, slow, seed=1, sizes=sizes))


def share(result: Found, what: str) -> float:
    return result[what, "yes"] / result[what, "of"]


def too_many_alarms(result: Found, rate: float) -> bool:
    """Whether more normal GPUs are named than in 99 of 100 studies of this size, if each is named at this rate."""
    asked = "false alarms"
    return bool(result[asked, "yes"] > binom.ppf(0.99, result[asked, "of"], rate))


@pytest.mark.parametrize("count", FEW)
def test_three_percent_beyond_the_measured_variation_is_found(count: int) -> None:
    result = asked("measured", count)
    assert share(result, "3.0% slower in all metrics") == 1
    assert share(result, "3.0% slower in a metric of memory") >= 0.9
    assert share(result, "3.0% beyond the edge in a metric of memory") >= 0.9
    assert share(result, "3.0% beyond the edge in a metric limited by power") >= 0.9
    assert not too_many_alarms(result, 0.002)


@pytest.mark.parametrize("count", FEW)
def test_three_percent_beyond_the_published_variation_is_found(count: int) -> None:
    result = asked("published", count)
    assert share(result, "3.0% slower in all metrics") >= 0.95
    assert share(result, "3.0% beyond the edge in a metric of memory") >= 0.85
    if count > 8:  # eight GPUs do not tell how wide a metric varies that is limited by power
        assert share(result, "3.0% beyond the edge in a metric limited by power") >= 0.9
    assert not too_many_alarms(result, 0.005)


@pytest.mark.parametrize("model", MODELS)
def test_no_variation_makes_many_alarms(model: str) -> None:
    result = study(Task(model, 64, 5 if CAMPAIGN == 1 else 10, 0, seed=2, sizes=()))
    assert not too_many_alarms(result, 0.02)


def test_slow_gpus_do_not_hide_each_other() -> None:
    result = asked("published, a fifth slow", 64)
    assert share(result, "3.0% slower in all metrics") == 1
    assert not too_many_alarms(result, 0.002)


def test_what_is_within_the_threshold_is_not_named() -> None:
    result = asked("measured", 64, sizes=(0.005,))
    assert share(result, "0.5% slower in all metrics") == 0
