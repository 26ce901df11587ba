"""Text for people."""

from __future__ import annotations

import pytest

from smembench.model.text import capital, duration, number_of


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0243, "0.024 s"),
        (4.25, "4.2 s"),
        (53.4, "53 s"),
        (60, "1 min"),
        (3190, "53 min 10 s"),
        (7500, "2 h 5 min"),
        (36000, "10 h"),
    ],
)
def test_a_duration_has_two_units(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_capital() -> None:
    assert [capital("matrix transpose float32"), capital("")] == ["Matrix transpose float32", ""]


def test_one_is_no_plural() -> None:
    assert [number_of(count, "run") for count in (0, 1, 2)] == ["0 runs", "1 run", "2 runs"]
