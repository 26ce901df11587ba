"""Work that a simulated thread waits for later: done in groups, as late as it may be, on memory that has to stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from smembench.kernels.intrinsics.deferred import Groups


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
