"""Figures of a load of seconds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from smembench.model.sustained import Moment, Sustained

BATCH = 0.1
"""Seconds of a batch."""


def load(seconds: float, watts: float | None, *, slower: float = 1.0) -> list[Moment]:
    """Batches of launches of 1 ms, which after half the time take ``slower`` times as long."""
    moments, launches, passed, count = [], round(1000 * BATCH), 0.0, round(seconds / BATCH)
    for number in range(count):
        elapsed_ms = 1.0 if number < count / 2 else slower
        passed += launches * elapsed_ms / 1000
        moments.append(Moment(passed, launches, elapsed_ms, energy_j=None if watts is None else watts * passed))
    return moments


def test_the_first_second_and_the_last_third_are_told_apart_and_so_is_the_energy_of_a_launch() -> None:
    result = Sustained.of(load(10, 500, slower=1.25))
    assert result.burst_ms == pytest.approx(1)
    assert result.steady_ms == pytest.approx(1.25)
    assert result.energy_mj == pytest.approx(500 * 1.25)
    assert result.burst_uncertainty == pytest.approx(0, abs=1e-9)
    assert result.energy_uncertainty == pytest.approx(0, abs=1e-9)


def test_intervals_contain_what_differs_between_parts() -> None:
    moments = load(12, 500)
    moments = [replace(item, elapsed_ms=1 + 0.1 * (number // 8 % 2)) for number, item in enumerate(moments)]
    result = Sustained.of(moments)
    assert 1 < result.steady_ms < 1.1  # type: ignore[operator]
    assert 0.02 < result.steady_uncertainty < 0.1  # type: ignore[operator]


@pytest.mark.parametrize("watts", [None, 0.0])
def test_energy_is_blank_where_nothing_counts_it_or_the_counter_stands_still(watts: float | None) -> None:
    result = Sustained.of(load(10, watts))
    assert result.energy_mj is None
    assert result.steady_ms == pytest.approx(1)


def test_a_short_load_has_what_its_batches_tell() -> None:
    assert Sustained.of([]) == Sustained()
    (one,) = load(BATCH, 500)
    assert Sustained.of([one]) == Sustained(burst_ms=1.0, steady_ms=1.0)
    result = Sustained.of(load(3, 500))  # one second at the end: its energy has no interval
    assert result.energy_mj == pytest.approx(500)
    assert result.energy_uncertainty is None
