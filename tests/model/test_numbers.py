"""Numbers as people type them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smembench.model.numbers import capability, percent, seconds, size


@pytest.mark.parametrize(
    ("text", "value"),
    [("10", 10), ("10s", 10), ("500 ms", 0.5), ("2min", 120), ("1h", 3600), ("1e-3", 0.001), (0.02, 0.02)],
)
def test_durations(text: object, value: float) -> None:
    assert seconds(text) == pytest.approx(value)


@given(st.floats(0, 1e9))
def test_a_percent_sign_changes_nothing(value: float) -> None:
    assert percent(f"{value} %") == percent(f"{value}%") == percent(str(value)) == percent(value) == value


@pytest.mark.parametrize("read", [seconds, percent, size])
@given(text=st.text(max_size=8) | st.sampled_from(["nan", "inf", "1_0_", "٣", "1e999", "9" * 400]))
def test_any_text_is_a_number_or_a_reason(read: Callable[[object], float], text: str) -> None:
    try:
        result = str(read(text))
    except ValueError as error:
        result = str(error)
    assert result.startswith("is ") or float(result) < float("inf")


@pytest.mark.parametrize("text", ["9.0", "90", "sm_90", "SM90", "sm_90a", "compute_90"])
def test_a_compute_capability_is_taken_in_any_spelling(text: str) -> None:
    assert capability(text) == "9.0"
    assert capability("sm_120") == "12.0"


@pytest.mark.parametrize("text", ["9", "sm_", "h100", "9.0.1"])
def test_what_is_no_compute_capability_says_what_to_write(text: str) -> None:
    with pytest.raises(ValueError, match=r"write 9\.0 or sm_90"):
        capability(text)
