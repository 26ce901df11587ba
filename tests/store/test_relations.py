from __future__ import annotations

from dataclasses import replace

import pytest

from conftest import Measured
from smembench.model.case import Block
from smembench.store.relations import Relations, relate
from smembench.store.run import Run
from smembench.store.run_json import Description
from smembench.studies.difference import ratio


def test_a_transpose_compares_with_the_ceiling_the_copy_and_the_naive_kernel(measured: Measured) -> None:
    ceiling = measured("memcpy", [0.5], block=None)
    copy, naive, padded = (
        measured(name, [ms]) for name, ms in {"copyGmem": 1.0, "naiveGmem": 4.0, "transposeSmem": 2.0}.items()
    )
    relations = relate([ceiling, copy, naive, padded])
    assert relations[padded.case] == Relations(percent_of_copy=25.0, percent_of_copygmem=50.0, speedup_vs_naive=2.0)
    assert relations[copy.case] == Relations(percent_of_copy=50.0, percent_of_copygmem=100.0, speedup_vs_naive=4.0)


def test_a_product_compares_with_the_cpu_on_whatever_device(measured: Measured) -> None:
    cpu = measured("cpu", [100.0], problem="matmul", device="cpu", block=None)
    naive = measured("naive", [4.0], problem="matmul")
    tiled = measured("tiled", [2.0], problem="matmul")
    relations = relate([cpu, naive, tiled])
    assert relations[tiled.case] == Relations(speedup_vs_cpu=50.0, speedup_vs_naive=2.0)
    assert relations[cpu.case] == Relations(speedup_vs_cpu=1.0)


@pytest.mark.parametrize("other", [{"n": 2048}, {"block": Block(16, 16)}, {"device": "cuda:1"}, {"cache": "cold"}])
def test_only_the_same_size_block_device_and_cache_compare(measured: Measured, other: dict[str, object]) -> None:
    shared = measured("transposeSmem", [2.0], pad=0)
    assert relate([measured("copyGmem", [1.0], **other), shared])[shared.case] == Relations()


def test_what_failed_has_no_relations_and_is_none(measured: Measured) -> None:
    failed, shared = measured("copyGmem"), measured("transposeSmem", [2.0])
    assert relate([failed, shared]) == {shared.case: Relations()}


def test_a_port_compares_with_the_naive_kernel_of_its_own_compiler(measured: Measured) -> None:
    by_numba = measured("naiveGmem", [8.0])
    naive, copy = (
        replace(item, case=replace(item.case, compiler="nvrtc"))
        for item in (measured("naiveGmem", [6.0]), measured("copyGmem", [2.0]))
    )
    assert relate([by_numba, naive, copy])[copy.case].speedup_vs_naive == 3.0


def test_a_ratio_has_the_interval_that_tables_show(measured: Measured) -> None:
    naive, copy = measured("naiveGmem", [4.0, 4.1, 3.9, 4.05]), measured("copyGmem", [1.0, 1.02, 0.98, 1.01])
    run = Run.of(Description(), [naive, copy])
    row = run.rows[1]
    result = ratio(run, run.rows[0], row)
    assert result is not None
    assert result.within is not None
    assert row.speedup_vs_naive == pytest.approx(result.value)
    assert row.speedup_vs_naive_low == pytest.approx(result.value / (1 + result.within))
    assert row.speedup_vs_naive_high == pytest.approx(result.value * (1 + result.within))
    assert row.percent_of_copygmem_low is None  # of itself


def test_a_time_that_is_not_known_within_a_fifth_makes_no_ratio(measured: Measured) -> None:
    naive, copy = measured("naiveGmem", [4.0, 8.0, 2.0, 6.0]), measured("copyGmem", [1.0, 1.02, 0.98, 1.01])
    assert relate([naive, copy])[copy.case].speedup_vs_naive is None
