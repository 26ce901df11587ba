"""Two levels by chance, and steps that look like them."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from smembench.stats.alternation import Habit
from smembench.stats.levels import levels

SLOWER = 0.08


def habit(nights: str) -> Habit:
    """Nights at the level (``.``) and off it (``x``); none with a time for a blank."""
    off = np.array([SLOWER if night == "x" else math.nan for night in nights])
    return Habit(np.array([night == "." for night in nights]), off)


@pytest.mark.parametrize(
    ("nights", "explained"),
    [
        (".......", False),
        ("....x..", True),
        ("..x...x..x..", True),
        ("..x.. .x..x..xx", True),
        ("..x...x..x.........xxx", False),  # four in a row with tonight
        (".......xxxxx......", False),  # a fault and its repair
        (".......xxxxx.....xxxxx.....", False),
        (".......xxxxx.....xxxx", False),
        ("xx", False),
    ],
)
def test_chance_explains_another_night_at_a_level_that_came_and_went(nights: str, explained: bool) -> None:
    assert (habit(nights).alternation(SLOWER, 0.01) is not None) == explained


@pytest.mark.parametrize("effect", [0.03, 0.12])
def test_another_difference_is_no_night_at_that_level(effect: float) -> None:
    assert habit("..x...x..x..").alternation(effect, 0.01) is None


def test_the_nights_in_a_row_that_are_a_change_depend_on_how_often_they_came() -> None:
    needed = {}
    for share in (0.05, 0.2, 0.5):
        nights = np.random.default_rng(1).random(60) < share
        shown = habit("".join("x" if slow else "." for slow in [*nights, False])).alternation(SLOWER, 0.01)
        assert shown is not None
        needed[share] = shown.needed
    assert needed[0.05] == 2
    assert 2 < needed[0.2] < needed[0.5] <= 8


@pytest.mark.parametrize("share", [0.05, 0.2, 0.5])
def test_a_series_with_two_levels_is_rarely_slower(share: float) -> None:
    rng, nights, alone = np.random.default_rng(2), Counter[tuple[bool, bool]](), np.arange(200)
    slow = rng.random((200, 22)) < share
    series = rng.normal(0, 0.003, slow.shape) + SLOWER * slow
    for night in range(7, 22):
        shown = levels(series[:, :night], 7, families=alone)
        for row in alone:
            at, off = shown.at[row], shown.off[row]
            effect = float(series[row, night] - np.median(series[row, :night][at][-7:]))
            beyond = effect > 0.005 + 3.5 * math.sqrt(shown.variance[row])
            false = beyond and Habit(at, off).alternation(effect, 0.012) is None
            nights[bool(3 <= slow[row, :night].sum() <= night - 3), false] += 1
    assert nights[True, True] <= 0.02 * nights[True, False]
    assert nights[False, True] <= 0.05 * nights[False, False]
