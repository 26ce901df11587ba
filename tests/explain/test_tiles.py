"""Products by warp groups: all blocks, steps and edges of a launch, from traces of a few."""

from __future__ import annotations

from itertools import product

import pytest

from programs import case_of, cuda_kernel, numba_kernel
from smembench.explain.analysis import explain
from smembench.model.case import Case

STEPS = ("wgmma", "wgmmaSpilled", "wgmmaSpecialized", "wgmmaPersistent", "wgmmaStored", "wgmmaClustered")


def of(name: str, m: int, n: int, k: int, dtype: str = "bfloat16") -> Case:
    return case_of(cuda_kernel("matmul", name), m, n, k, dtype)


@pytest.mark.parametrize("name", STEPS[:4])
@pytest.mark.parametrize(("m", "n"), [(1024, 1024), (64, 64), (1000, 1480), (4104, 250)])
def test_threads_write_every_result_once(name: str, m: int, n: int) -> None:
    (written,) = explain(of(name, m, n, 2048)).traffic
    assert (written.array, written.kind, written.per_element) == ("C", "store", 1)


@pytest.mark.parametrize("name", STEPS[4:])
@pytest.mark.parametrize(("m", "n"), [(1024, 1024), (1000, 1480), (3592, 4096)])
def test_threads_store_every_tile_of_results_in_shared_memory_once(name: str, m: int, n: int) -> None:
    """Four bytes per lane, also of results beyond C, which the TMA leaves out."""
    case = of(name, m, n, 2048)
    explained, (across, down) = explain(case), numba_kernel(case).grid
    (store,) = explained.shared
    columns = int(numba_kernel(case).variant)
    assert store.requests * 32 * 4 == across * columns * down * 128 * 2


@pytest.mark.parametrize("name", STEPS[3:])
@pytest.mark.parametrize(("m", "n"), [(128, 64), (1000, 1480), (3592, 4096)])
def test_blocks_of_a_persistent_grid_have_every_tile_once(name: str, m: int, n: int) -> None:
    program = numba_kernel(of(name, m, n, 64))
    assert program.tile_of is not None
    across, down = program.grid
    assert sorted(map(program.tile_of, range(across * down))) == sorted(product(range(across), range(down)))
