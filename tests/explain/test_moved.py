"""Loads that the compiler moved into a branch have the lanes of the store there."""

from __future__ import annotations

import numpy as np
import pytest

from smembench.explain.moved import keep_lanes_that_store, moved_loads
from smembench.explain.requests import NOWHERE, AccessSite
from smembench.toolchains.memory_instructions import Guard, MemoryInstruction
from smembench.toolchains.source_lines import Lined

P1, P2 = Guard(1), Guard(2)
LOAD, STORE = AccessSite(53, "shared", "load", "shared0", 4, place=53), AccessSite(56, "global", "store", "out", 4)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        pytest.param([(53, P1), (53, P2), (56, P1), (56, P2)], {LOAD.statement: 56}, id="unrolled"),
        pytest.param([(53, P2), (53, P1), (56, P1), (56, P2)], {LOAD.statement: 56}, id="in another order"),
        pytest.param([(53, P1), (56, Guard(1, since=3))], {}, id="the predicate may be another by then"),
        pytest.param([(53, P1), (53, P1), (56, P1)], {}, id="several loads for one store"),
        pytest.param([(53, P1), (53, P2), (56, P1), (57, P2)], {}, id="stores of two lines"),
    ],
)
def test_loads_and_stores_with_the_same_guards_have_the_same_lanes(
    code: list[tuple[int, Guard]], expected: dict[tuple[str, int, int], int]
) -> None:
    """Loads of line 53, and stores of others."""
    load, store = MemoryInstruction("shared", "load", 4), MemoryInstruction("global", "store", 4)
    program = [Lined(line, frozenset({7}), load if line == 53 else store, guard) for line, guard in code]
    assert moved_loads(program) == expected
    elsewhere = [each._replace(region=frozenset()) if each.line == 53 else each for each in program]
    assert moved_loads(elsewhere) == {}


@pytest.mark.parametrize(
    ("load", "store", "kept"),
    [
        pytest.param([[0, 4, 8]] * 2, {0: [NOWHERE, 0, 4]}, [[NOWHERE, 4, 8], [NOWHERE] * 3], id="fewer store"),
        pytest.param([[0, 4, 8]], {0: [0, 4, 8]}, [[0, 4, 8]], id="all store"),
        pytest.param([[0, NOWHERE, 8]], {0: [0, 4, NOWHERE]}, [[0, NOWHERE, 8]], id="one stores that does not load"),
        pytest.param([[0, 4, 8]], {0: [0, NOWHERE, 8], 1: [0, 4, 8]}, [[0, 4, 8]], id="some store later, too"),
        pytest.param([[0, 4, 8]], {}, [[0, 4, 8]], id="the trace has no such store"),
    ],
)
def test_threads_that_do_not_store_do_not_load(
    load: list[list[int]], store: dict[int, list[int]], kept: list[list[int]]
) -> None:
    """Rows of accesses by the time at which they are made."""
    addresses, rows = {LOAD: np.array(load)}, {LOAD: {time: time for time in range(len(load))}}
    if store:
        addresses[STORE], rows[STORE] = np.array([*store.values()]), {time: row for row, time in enumerate(store)}
    keep_lanes_that_store(addresses, rows, {LOAD.statement: 56})
    assert addresses[LOAD].tolist() == kept
    if store:
        assert addresses[STORE].tolist() == [*store.values()]
