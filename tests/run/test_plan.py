from __future__ import annotations

import tracemalloc
from dataclasses import replace
from typing import Any

import pytest

from smembench.model.case import Block
from smembench.model.device import Limits
from smembench.model.errors import UsageError
from smembench.run.config import from_flags
from smembench.run.plan import Plan, Planned

GPU = Limits(
    free_bytes=2**30,
    max_threads=1024,
    max_block=(1024, 1024),
    max_grid=(2**31 - 1, 65535),
    max_shared_bytes=48 * 1024,
    max_elements=2**32,
)
HOST = Limits(free_bytes=2**34)
RESOLVED = {"auto": "cuda:0", "cuda:0": "cuda:0", "cuda:1": "cuda:1", "cpu": "cpu"}
CEILING = "memcpy"
"""Measured along with every transpose, for % of copy."""
LADDER = ["copyGmem", "naiveGmem", "transposeSmem", "transposeSmemPad"]


def planned(*sweeps: dict[str, Any], gpu: Limits = GPU, host: Limits = HOST) -> list[Planned]:
    """The plan of sweeps, of small transposes where they say nothing else (``()`` for none), without the ceiling."""
    full = [{"problem": "transpose", "n": "64", "block": "8x8", **sweep} for sweep in sweeps]
    data = {"sweep": [{key: value for key, value in sweep.items() if value != ()} for sweep in full]}
    items = list(Plan.of(from_flags(data), RESOLVED).cases({"cuda:0": gpu, "cuda:1": gpu, "cpu": host}))
    return [item for item in items if item.case.kernel != CEILING]


def test_arrays_are_copied_until_the_others_exceed_twice_the_l2_or_the_case_is_skipped() -> None:
    gpu = replace(GPU, flush_bytes=100 * 2**20, free_bytes=2**31)
    sweep = {"kernel": LADDER[0], "n": "64,1024,8192", "cache": "warm,rotated"}
    result = {(item.case.n, item.case.cache): item for item in planned(sweep, gpu=gpu)}
    assert {key: item.copies for key, item in result.items() if not item.skip} == {
        **{(n, "warm"): 1 for n in (64, 1024, 8192)},
        (1024, "rotated"): 1 + 13,  # 13 × 8 MiB
        (8192, "rotated"): 1 + 1,
    }
    assert "1024 copies of 32768 bytes" in result[64, "rotated"].skip
    (on_cpu,) = planned({**sweep, "n": "1024", "cache": "rotated", "device": "cpu"}, {"kernel": LADDER[0]})[:1]
    assert "is a GPU's" in on_cpu.skip
    with pytest.raises(UsageError, match="needs 1\\.0 GiB"):
        planned({**sweep, "n": "8192", "cache": "rotated"}, gpu=replace(gpu, free_bytes=2**30))


def kernels(**sweep: Any) -> list[str]:
    return [item.case.kernel for item in planned(sweep)]


def test_axes_multiply_with_sizes_before_kernels() -> None:
    axes = {"n": "64,128", "block": "8x8,16x8", "dtype": "float32,int32", "cache": "warm,cold", "kernel": LADDER[0]}
    cases = [item.case for item in planned(axes)]
    assert len(set(cases)) == len(cases) == 2 * 2 * 2 * 2
    assert [case.n for case in cases][:8] == [64] * 4 + [128] * 4
    assert {case.block for case in cases} == {Block(8, 8), Block(16, 8)}


@pytest.mark.parametrize(
    "sweep",
    [
        {
            "nx": "1:5",
            "ny": "1:3",
            "dtype": "float32,int32",
            "cache": "warm,cold",
            "block": "8x8,4x4",
            "pad_width": "1:3",
        },
        {"problem": "matmul", "m": "1:3", "k": "1:2", "stride": "8:9", "kernel": "naive,tiled", "block": "4x4"},
        {"problem": "access", "stride": "1:4", "kernel": "strided", "device": "cuda:0", "n": "32,64"},
        {"problem": "constant", "n": "100,200"},
    ],
)
def test_cases_are_counted_before_they_are_made(sweep: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    config, limits = from_flags({"sweep": [{"problem": "transpose", **sweep}]}), {"cuda:0": GPU, "cpu": HOST}
    count = len(list(Plan.of(config, RESOLVED).cases(limits)))
    monkeypatch.setattr("smembench.run.plan.MOST_CASES", count)
    assert Plan.of(config, RESOLVED).count == count
    monkeypatch.setattr("smembench.run.plan.MOST_CASES", count - 1)
    with pytest.raises(UsageError, match=f"^{count} cases are over the {count - 1}"):
        Plan.of(config, RESOLVED)


def test_too_many_cases_are_refused_and_many_come_one_after_another() -> None:
    many, few = ({"n": (), "nx": "1:10000", "ny": f"1:{ny}", "kernel": CEILING, "device": "cpu"} for ny in (10_000, 99))
    with pytest.raises(UsageError, match="100000000 cases"):
        planned(many)
    del few["n"]
    config = from_flags({"sweep": [{"problem": "transpose", **few}]})
    tracemalloc.start()
    assert next(Plan.of(config, RESOLVED).cases({"cpu": HOST})).case.size == "1x1"
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 10_000_000


def test_kernels_come_in_teaching_order_and_once() -> None:
    assert kernels() == LADDER
    assert kernels(device="cuda,cuda:0,auto") == LADDER
    assert len(planned({}, {})) == len(LADDER)


@pytest.mark.parametrize("names", ["naiveGmemUnroll", "transposeSmemDyn,transposeSmemUnrollPad"])
def test_a_kernel_that_is_not_standard_runs_only_when_named(names: str) -> None:
    assert not set(names.split(",")) & set(kernels())
    assert kernels(kernel=names) == names.split(",")


def test_the_ceiling_is_measured_along_once_a_size() -> None:
    config = from_flags({"sweep": [{"problem": "transpose", "n": "64,128", "kernel": "naiveGmem", "block": "8x8,4x4"}]})
    cases = [item.case for item in Plan.of(config, RESOLVED).cases({"cuda:0": GPU, "cpu": HOST})]
    assert [(case.n, case.block) for case in cases if case.kernel == CEILING] == [(64, None), (128, None)]


def test_columns_and_rows_multiply_and_default_to_each_other() -> None:
    shapes = {(item.case.m, item.case.n) for item in planned({"n": (), "nx": "3,4", "ny": "5,6"})}
    assert shapes == {(5, 3), (5, 4), (6, 3), (6, 4)}
    assert {(item.case.m, item.case.n) for item in planned({"n": (), "ny": "5"})} == {(5, 5)}


@pytest.mark.parametrize(
    ("sizes", "shapes"),
    [
        ({"n": "4"}, {(4, 4, 4)}),
        ({"n": "4", "m": "2,3"}, {(2, 4, 4), (3, 4, 4)}),
        ({"n": "4", "m": "2", "k": "3"}, {(2, 3, 4)}),
        ({"n": (), "k": "3"}, {(3, 3, 3)}),
    ],
)
def test_sizes_of_a_product(sizes: dict[str, Any], shapes: set[tuple[int, int, int]]) -> None:
    cases = [item.case for item in planned({"problem": "matmul", **sizes})]
    assert {(case.m, case.k, case.n) for case in cases} == shapes


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({}, LADDER),
        ({"pad": True}, LADDER),
        ({"pad": False}, LADDER[:3]),
        ({"pad": True, "kernel": "transposesmem"}, ["transposeSmem", "transposeSmemPad"]),
        ({"kernel": "transposeSmemPad", "pad_width": "1,2"}, ["transposeSmemPad"] * 2),
    ],
)
def test_padded_kernels_stand_beside_the_unpadded_or_are_left_out(choice: dict[str, Any], expected: list[str]) -> None:
    assert kernels(**choice) == expected


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("transposeSmem", ["transposeSmem", "transposeSmemPad"]),
        ("transposeSmemUnroll,transposeSmemDyn", ["SmemUnroll", "SmemUnrollPad", "SmemDyn", "SmemPadDyn"]),
        ("copyGmem,transposeSmemPad", ["copyGmem", "transposeSmemPad"]),
    ],
)
def test_with_pad_the_padded_twin_stands_beside_each_kernel(names: str, expected: list[str]) -> None:
    result = kernels(kernel=names, pad=True)
    assert [name.endswith(short) for name, short in zip(result, expected, strict=True)] == [True] * len(expected)


def test_with_pad_every_pattern_of_access_has_its_twin() -> None:
    result = kernels(problem="access", n=(), block="32x32", device="cuda", pad=True)
    assert {f"{name}Pad" for name in result if "Pad" not in name and name.startswith("set")} < set(result)


@pytest.mark.parametrize(
    ("sweep", "message"),
    [
        ({"kernel": "copyGmem,naiveGmem", "pad": True}, "pad: copyGmem, naiveGmem have no padding; leave it out"),
        (
            {"kernel": "transposeSmem", "pad_width": "2"},
            "pad_width 2: transposeSmem has no padding; add pad, for transposeSmemPad beside it",
        ),
    ],
)
def test_padding_that_no_kernel_has_is_refused(sweep: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        planned(sweep)


def test_pad_widths_go_to_the_padded_kernel_only() -> None:
    pads = [(item.case.kernel, item.case.pad) for item in planned({"pad_width": "1,3"})]
    assert pads == [(LADDER[0], None), (LADDER[1], None), (LADDER[2], 0), (LADDER[3], 1), (LADDER[3], 3)]


@pytest.mark.parametrize(("device", "places"), [("cuda", ["cpu", "cuda:0", "cuda:0"]), ("cpu", ["cpu"] * 3)])
def test_the_cpu_baseline_runs_on_the_cpu_whatever_the_device(device: str, places: list[str]) -> None:
    sweep = {"problem": "matmul", "device": device}
    assert [item.case.device for item in planned(sweep)] == places
    assert Plan.of(from_flags({"sweep": [sweep]}), RESOLVED).devices == tuple(dict.fromkeys(places))


def test_a_stride_is_refused_for_kernels_that_would_run_dense_beside_the_others() -> None:
    assert {item.case.stride for item in planned({"problem": "matmul", "stride": "80"})} == {80}
    with pytest.raises(UsageError, match=r"^stride 80: cublas, torch cannot take one; name only cpu, naive, tiled, "):
        planned({"problem": "matmul", "stride": "80", "peers": True})
    with pytest.raises(UsageError, match=r"^stride 80: memcpy, copyGmem cannot take one; leave it out$"):
        planned({"kernel": "copyGmem", "stride": "80"})


def test_several_gpus_share_one_baseline() -> None:
    cases = [item.case for item in planned({"problem": "matmul", "device": "cuda:0,cuda:1"})]
    assert [case.device for case in cases].count("cpu") == 1
    assert {case.device for case in cases} == {"cpu", "cuda:0", "cuda:1"}


def test_blocks_that_a_kernel_refuses_are_skipped_with_the_reason() -> None:
    items = planned({"problem": "matmul", "block": "8x4,8x8"})
    assert [(item.case.kernel, item.case.block) for item in items if item.skip] == [("tiled", Block(8, 4))]
    assert next(item.skip for item in items if item.skip) == "tiled needs a square block, not 8x4"


def test_what_a_kernel_refuses_need_not_fit_the_device() -> None:
    """Tiles of one dtype are too large, and so are their results; those of the other run."""
    items = planned({"problem": "matmul", "kernel": "serpentine16x8", "dtype": "float32,float64", "block": "16x8,8x8"})
    run = [(item.case.dtype, str(item.case.block)) for item in items if not item.skip]
    assert run == [("float32", "16x8"), ("float32", "8x8")]
    assert all("keeps 16×8 float64 results per thread" in item.skip for item in items if item.skip)


@pytest.mark.parametrize(
    ("capability", "reason"),
    [("7.5", "needs compute capability 8.0 or later; this device has 7.5"), ("8.0", ""), ("10.0", ""), (None, "")],
)
def test_what_the_device_has_no_instructions_for_is_skipped(capability: str | None, reason: str) -> None:
    items = planned({"problem": "matmul", "kernel": "tiled,streamK"}, gpu=replace(GPU, capability=capability))
    assert {item.case.kernel: item.skip for item in items} == {"tiled": "", "streamK": reason}


@pytest.mark.parametrize(
    ("sweep", "limits", "words"),
    [
        ({"block": "8x8"}, {"max_threads": 63}, "block 8x8: 64 threads are over the limit of 63"),
        ({"block": "8x8"}, {"max_block": (4, 64)}, "block 8x8: over the limit of 4 × 64"),
        ({"kernel": LADDER[2], "block": "32x32"}, {"max_shared_bytes": 4095}, "transposeSmem takes 4096 bytes"),
        ({"kernel": LADDER[3], "block": "32x32"}, {"max_shared_bytes": 4223}, "with pad 1.* takes 4224 bytes"),
        ({"kernel": "transposeSmemDyn", "block": "32x32"}, {"max_dynamic_bytes": 4095}, "SmemDyn takes 4096 bytes"),
        ({"n": "65"}, {"max_grid": (8, 99)}, "size 65x65 in blocks of 8x8: a grid of 9 × 9"),
        ({"n": "65"}, {"max_grid": (99, 8)}, "a grid of 9 × 9 blocks is over the limit of 99 × 8"),
        ({}, {"max_elements": 4095}, "4096 elements are over the 4095"),
        ({"problem": "matmul", "m": "1", "k": "99"}, {"max_elements": 6335}, "6336 elements"),
        ({}, {"free_bytes": 2 * 4096 * 4}, "needs 0.0 MiB of device memory"),
    ],
)
def test_what_a_device_cannot_run_is_refused(sweep: dict[str, Any], limits: dict[str, Any], words: str) -> None:
    assert planned(sweep)
    with pytest.raises(UsageError, match=words):
        planned(sweep, gpu=replace(GPU, **limits))


def test_the_host_needs_memory_for_what_runs_on_the_gpu() -> None:
    with pytest.raises(UsageError, match=r"needs 0\.1 MiB of host memory and 0\.1 MiB is free"):
        planned({}, host=Limits(free_bytes=4 * 4096 * 4 - 1))
    assert planned({}, host=Limits(free_bytes=4 * 4096 * 4))


def test_what_does_not_fit_the_host_is_said_of_the_host() -> None:
    with pytest.raises(UsageError, match=r"memcpy 64x64 float32 on cpu: needs 0\.0 MiB of host memory"):
        planned({"kernel": "memcpy", "device": "cpu", "block": ()}, host=Limits(free_bytes=4096))


def test_b_lies_as_asked_or_as_is_usual_for_the_type() -> None:
    def layouts(**sweep: Any) -> list[tuple[str, str, str]]:
        of = {"problem": "matmul", "n": 64, "kernel": "wgmma,mmaPlain", "device": "cuda", "block": ()}
        return [(item.case.kernel, item.case.b_layout, item.skip) for item in planned({**of, **sweep})]

    both = layouts(dtype="bfloat16", b_layout="columns,rows")
    assert ("wgmma", "rows", "") in both
    assert ("wgmma", "columns", "") in both
    assert ("mmaPlain", "columns", "mmaPlain takes B by rows, not by columns") in both
    assert {layout for name, layout, skip in layouts(dtype="bfloat16")} == {"rows"}
    assert {layout for name, layout, skip in layouts(dtype="tf32,float8_e4m3", kernel="wgmma")} == {"columns"}


def test_layouts_that_there_are_not_are_refused() -> None:
    with pytest.raises(UsageError, match="--b-layout 'diagonal': no such layout"):
        planned({"problem": "matmul", "b_layout": "diagonal"})
    with pytest.raises(UsageError, match="layout of transpose's second matrix"):
        planned({"b_layout": "columns"})


def test_a_sustained_load_without_a_gpu_is_refused() -> None:
    config = from_flags({"sweep": [{"problem": "transpose", "device": "cpu"}], "sustained": 2})
    with pytest.raises(UsageError, match="sustained: a load of seconds runs only on a GPU, not on cpu"):
        Plan.of(config, {"cpu": "cpu"})
