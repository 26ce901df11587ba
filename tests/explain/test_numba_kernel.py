"""Kernels that anybody wrote are traced as they stand."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import foreign_kernels as kernels
from smembench import UsageError, conflicts, explain_function
from smembench.explain.costs import Costs
from smembench.explain.ptx import machine
from smembench.explain.record import costs_dict
from smembench.toolchains import numba
from smembench.views.explain import sentences

TILE = "float32[32,32]"


def sites(result: Costs, space: str = "global") -> dict[tuple[str, str], int]:
    """Requests of the whole grid by array and kind."""
    counts: dict[tuple[str, str], int] = {}
    for request in result.trace.requests:
        if request.site.space == space:
            key = request.site.array, request.site.kind
            counts[key] = counts.get(key, 0) + request.weight
    return counts


def traced(function: Any, grid: Any, block: Any, *args: Any) -> Costs:
    return explain_function(function, grid=grid, block=block, args=args)


def assert_clean(result: Costs) -> None:
    assert [*result.trace.mistakes, *result.trace.unfollowed] == []


def test_conflicts_are_those_of_the_worst_access() -> None:
    launch: dict[str, Any] = {"grid": (2, 2), "block": (32, 32), "args": ("float32[64,64]", "float32[64,64]")}
    assert conflicts(kernels.tile, **launch) == 32
    assert conflicts(kernels.tile, kind="load", **launch) == 32
    assert conflicts(kernels.tile, kind="store", **launch) == 1
    assert conflicts(kernels.padded, **launch) == 1
    with pytest.raises(UsageError, match="kind 'loads'"):
        conflicts(kernels.padded, kind="loads", **launch)


def test_accesses_are_those_that_the_compiler_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    launch: Any = {"grid": 1, "block": 32, "args": ("float32[32]", "float32[4,32]"), "capability": "9.0"}
    result = explain_function(kernels.quads, **launch)
    assert {(item.site.kind, item.site.width) for item in result.shared} == {("load", 16), ("store", 16)}
    assert (result.worst(), result.wavefronts("load"), result.wavefronts("store")) == (1, 4, 4)
    monkeypatch.setattr(numba, "cuda_libraries", lambda: {"NVVM": "", "nvJitLink": "13.0"})
    monkeypatch.setattr(numba, "can_compile", lambda: False)
    with pytest.raises(UsageError, match="quads: to explain it, install NVVM: pip install"):
        explain_function(kernels.quads, **launch)


def test_device_functions_are_compiled_without_a_gpu() -> None:
    result = explain_function(kernels.sums(1), grid=1, block=32, args=("float32[32]", "float32[4,32]"))
    assert ("store", 16) in {(item.site.kind, item.site.width) for item in result.shared}


def test_other_kernels_are_compiled_as_numba_does_alone() -> None:
    """Under the rule of the package's kernels -1 is no index."""
    result = traced(kernels.negative, 1, 32, "float32[32]", "float32[32]")
    assert_clean(result)
    assert sites(result) == {("a", "load"): 1, ("out", "store"): 1}


def test_a_race_is_no_result() -> None:
    with pytest.raises(UsageError, match=r"line 60: .*which thread 32 .*loads in line 61, with no barrier"):
        conflicts(kernels.race, grid=1, block=(32, 32), args=(TILE, TILE))


def test_a_kernel_of_one_dimension_and_its_grid_stride_loop() -> None:
    result = traced(kernels.one_dimension, 4, 64, "float32[1000]", "float32[1000]", 2.0)
    assert_clean(result)
    assert sites(result)["a", "load"] == 32 + 3  # lanes of one warp part for the last three iterations
    assert result.sectors("load") == pytest.approx((125 + 3) / 35, abs=0.1)
    assert result.traffic[0].array == "out"


def test_three_dimensions_device_functions_and_views() -> None:
    shape = "float64[6,10,64]"
    result = traced(kernels.stencil, (2, 5, 3), (32, 2, 2), shape, shape)
    assert_clean(result)
    assert sites(result) == {("a", "load"): 3 * 120, ("out", "store"): 120}
    assert (result.sectors("load"), result.threads) == (8, 128)
    assert sum(request.weight for request in result.trace.requests) == 480


def test_shared_atomics_are_traced_but_not_in_the_table() -> None:
    result = traced(kernels.histogram, 4, 64, "int32[32]", "float32[256]")
    assert result.trace.mistakes == ()
    assert sites(result, "shared") == {("counts", "store"): 4, ("counts", "atomic"): 8, ("counts", "load"): 4}
    assert {access.site.kind for access in result.shared} == {"store", "load"}
    assert sites(result)["bins", "atomic"] == 4
    assert costs_dict(result)["shared_atomics_not_counted"] == ["counts"]
    text = " ".join(sentences(result))
    assert "Shared loads and stores are free of bank conflicts." in text
    assert "Atomics on counts are not counted: no rule tells their wavefronts." in text


def test_shuffles_local_and_constant_arrays_and_imported_names() -> None:
    result = traced(kernels.shuffled, 2, 64, "float32[8]", "float32[512]")
    assert_clean(result)
    assert sites(result) == {("a", "load"): 16, ("out", "store"): 4}
    assert {access.site.array for access in result.constant} == {"_cudapy_cmem"}


def test_an_index_outside_is_named() -> None:
    result = traced(kernels.outside, 4, 64, "float32[256]", "float32[256]")
    (mistake,) = result.trace.mistakes
    assert (mistake.line, mistake.kind) == (81, "outside")
    assert "thread 63" in mistake.text
    assert "a[256], and a has 256 elements" in mistake.text


def test_what_depends_on_data_is_named_and_followed_with_it() -> None:
    launch: Any = (kernels.gather, 2, 32, "float32[64]", "float32[4096]")
    (unfollowed,) = traced(*launch, "int32[64]").trace.unfollowed
    assert unfollowed.line == 89
    assert unfollowed.text.startswith("an address depends on data of indices; give its data")
    with pytest.raises(UsageError, match="depends on data of indices"):
        conflicts(kernels.gather, grid=2, block=32, args=("float32[64]", "float32[4096]", "int32[64]"))
    assert conflicts(kernels.gather, grid=2, block=32, args=(*launch[3:], "int32[64]"), partial=True) == 1
    spread = traced(*launch, np.arange(64, dtype=np.int32) * 64)
    assert spread.trace.unfollowed == ()
    (load,) = (access for access in spread.memory if access.site.array == "a")
    assert (load.sectors, load.requests) == (32, 2)


def test_loops_as_long_as_data_says() -> None:
    first = np.array([0, 3, 3, 5, 9])
    names = {item.text for item in traced(kernels.rows, 1, 4, "float32[4]", "int64[5]", "float32[9]").trace.unfollowed}
    assert any(text.startswith("a branch depends on data of first") for text in names)
    result = traced(kernels.rows, 1, 4, "float32[4]", first, "float32[9]")
    assert_clean(result)
    loads = [request for request in result.trace.requests if request.site.array == "a"]
    assert sum(sum(lane is not None for lane in item.addresses) * item.weight for item in loads) == 9


def test_data_beyond_the_array_is_a_mistake() -> None:
    result = traced(kernels.gather, 1, 32, "float32[32]", "float32[16]", np.arange(32))
    assert "a[16], and a has 16 elements" in result.trace.mistakes[0].text


def test_what_is_displayed_names_mistakes_and_what_was_not_followed() -> None:
    result = explain_function(kernels.race, grid=1, block=(32, 32), args=(TILE, TILE))
    (mistake, *_) = result.trace.mistakes
    for shown in (repr(result), result._repr_html_()):
        assert f"mistake in foreign_kernels.py, line {mistake.line}:" in " ".join(shown.split())
    result = explain_function(kernels.gather, grid=1, block=32, args=("float32[32]", "float32[16]", "int64[32]"))
    assert "not followed in foreign_kernels.py, line" in repr(result)


def test_too_much_work_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "MOST_STEPS", 1000)
    with pytest.raises(UsageError, match=r"long, line \d+: .*end the loop or give less work"):
        traced(kernels.long, 1, 64, "int32[1000]", 1000)


def test_a_function_without_a_decorator_and_the_first_block_of_a_grid() -> None:
    count = 2**20
    result = traced(kernels.plain, count, 32, f"float32[{32 * count}]", f"float32[{32 * count}]")
    assert result.trace.blocks == ((0, 0, 0),)
    assert sites(result) == {("a", "load"): count, ("out", "store"): count}


def test_arguments_that_are_none() -> None:
    with pytest.raises(UsageError, match=r"takes \(out, a\), not 1 argument"):
        traced(kernels.plain, 1, 32, 3)
    with pytest.raises(UsageError, match="is no argument"):
        traced(kernels.plain, 1, 32, object(), 3)
    with pytest.raises(UsageError, match=r"^\[0\.5, 0\.5.* more characters .*\]: is no argument") as refused:
        traced(kernels.plain, 1, 32, [0.5] * 1000, 3)
    assert len(str(refused.value)) < 500
    with pytest.raises(UsageError, match=r"counted: Numba does not compile it: .*\(array\(int32, 1d, C\), int64\)"):
        traced(kernels.counted, 1, 32, "int32[32]", "int32[4,4]")
    with pytest.raises(UsageError, match="is not a kernel"):
        traced(3, 1, 32)


def test_dynamic_shared_arrays_are_one_memory() -> None:
    args = ("int32[32]", "float32[32]")
    result = explain_function(kernels.dynamic, grid=1, block=32, args=args, shared_bytes=256)
    assert_clean(result)  # what is loaded under one name was stored under the other
    assert [array.base for array in result.trace.shared] == [0, 0]
    assert (result.shared_bytes, result.worst("load"), result.worst("store")) == (256, 1, 1)
    named = {(access.site.array, access.site.kind) for access in result.shared}
    assert named == {("everything", "store"), ("words", "load")}
    wrong = explain_function(kernels.dynamic, grid=1, block=32, args=args, shared_bytes=128)
    assert "at byte 128 of shared memory, which has 128 bytes" in wrong.trace.mistakes[0].text


@settings(max_examples=25)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=3))
def test_the_blocks_traced_stand_for_the_whole_grid(grid: list[int]) -> None:
    result = explain_function(kernels.once, grid=grid, block=1, args=["int8[1]"])
    assert sum(request.weight for request in result.trace.requests) == prod(grid)


def test_the_kernel_stays_as_it_was() -> None:
    before = dict(vars(kernels))
    traced(kernels.shuffled, 1, 32, "float32[8]", "float32[512]")
    assert {name: value for name, value in vars(kernels).items() if value is not before.get(name)} == {}
    assert Path(kernels.__file__).name == "foreign_kernels.py"


@pytest.mark.parametrize("grid", [4, 9, 10, 1000])
def test_the_partly_filled_block_is_found_wherever_the_grid_ends(grid: int) -> None:
    """Three elements beyond the array are accessed in the one block that is filled in part."""
    result = traced(kernels.guarded_too_late, grid, 256, "float32[1000]", "float32[1000]", 1000)
    assert any("a[1000], and a has 1000 elements" in mistake.text for mistake in result.trace.mistakes)
    right = traced(kernels.returns_early, grid, 256, "float32[1000]", "float32[1000]", 1000)
    assert_clean(right)
    assert sites(right) == {("a", "load"): 32, ("out", "store"): 32}


def test_threads_that_return_before_a_barrier_are_no_mistake_and_those_that_go_on_are() -> None:
    launch = (4, 256, "float32[1000]", "float32[1000]", 1000)
    assert_clean(traced(kernels.returns_early, *launch))
    assert_clean(traced(kernels.returns_between_barriers, *launch))
    (mistake,) = traced(kernels.goes_on, *launch).trace.mistakes
    assert (mistake.kind, "232 of the block's 256 threads reach this barrier" in mistake.text) == ("barrier", True)


@pytest.mark.parametrize("kernel", [kernels.add, kernels.sqrt, kernels.shared])
def test_kernels_may_be_called_like_what_they_use(kernel: Any) -> None:
    result = traced(kernel, 1, 32, "float32[32]", "float32[32]")
    assert_clean(result)
    assert sites(result)["a", "load"] == 1


def test_a_recursion_is_refused() -> None:
    with pytest.raises(UsageError, match=r"recurses: .*a device function that calls itself"):
        traced(kernels.recurses, 1, 32, "float32[32]", "float32[32]")
