"""Work that a simulated thread waits for later: done in groups, as late as it may be, on memory that has to stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from smembench.kernels.intrinsics.deferred import Groups, InFlight


def started(groups: Groups, memory: Any, done: list[int]) -> None:
    groups.start(lambda: (memory.copy(),), lambda array: done.append(int(array[0])))


def test_a_thread_that_waits_for_all_but_the_newest_group_has_the_others_done_in_order() -> None:
    groups, done = Groups("a test"), list[int]()
    for number in range(4):
        started(groups, np.array([number]), done)
        if number != 1:  # the second and the third are of one group
            groups.commit()
    groups.finish(1)
    assert done == [0, 1, 2]
    groups.finish(0)
    assert done == [0, 1, 2, 3]


def test_what_is_not_committed_is_not_waited_for() -> None:
    groups, done = Groups("a test"), list[int]()
    started(groups, np.array([1]), done)
    groups.finish(0)
    assert done == []


def test_memory_that_changes_too_early_is_found() -> None:
    groups, memory, done = Groups("the TMA"), np.array([1]), list[int]()
    started(groups, memory, done)
    groups.commit()
    memory[0] = 2
    with pytest.raises(AssertionError, match="memory was changed before the TMA had read it"):
        groups.finish(0)
    assert done == []


def test_values_in_flight_are_nan_until_all_changes_are_complete() -> None:
    flying, values = InFlight(), np.array([1.0, 2.0])
    doubled, increased = flying.changing(values), flying.changing(values)
    assert np.isnan(values).all()
    doubled(lambda before: 2 * before)
    assert np.isnan(values).all()
    increased(lambda before: before + 1)
    assert values.tolist() == [3, 5]


def test_values_that_are_written_in_flight_are_found() -> None:
    flying, values = InFlight(), np.array([1.0, 2.0])
    change = flying.changing(values)
    values[0] = 0
    with pytest.raises(AssertionError, match="values were written while work on them was in flight"):
        change(lambda before: before)
