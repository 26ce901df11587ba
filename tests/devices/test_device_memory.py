"""Arrays on a device and in page-locked memory, on the fake driver: contents, lifetimes, and Numba beside them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fake_driver.process import FakeDriver, ended

pytestmark = pytest.mark.slow
PART = [float(number) for number in range(10, 20)]


@pytest.fixture(scope="module")
def outcome(fake_driver: FakeDriver) -> dict[str, Any]:
    out, _ = ended(fake_driver("tests.devices.on_fake_driver"))
    result: dict[str, Any] = json.loads(out)
    return result


def test_memory_is_freed_with_the_last_part_that_uses_it(outcome: dict[str, Any]) -> None:
    assert (outcome["taken"], outcome["kept by a part"], outcome["freed"]) == (400, 400, 0)


def test_a_part_in_another_type_holds_the_same_bytes_there_and_in_page_locked_memory(outcome: dict[str, Any]) -> None:
    assert outcome["part"] == outcome["pinned"] == PART
    assert outcome["is pinned"]


def test_numba_works_on_the_same_arrays_in_the_same_primary_context(outcome: dict[str, Any]) -> None:
    assert outcome["by Numba"] == [0, 1, 2, 3, 4]
    assert outcome["one context"]
    assert outcome["primary"]


def test_too_little_memory_is_said_with_cudas_name_for_it(outcome: dict[str, Any]) -> None:
    assert outcome["too much"] == "CUDA_ERROR_OUT_OF_MEMORY: out of memory"
