"""What the compiler made of accesses, by the widths of its machine code and the addresses of a trace."""

from __future__ import annotations

import csv
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from campaign import CAMPAIGN
from smembench.explain import counters
from smembench.explain.analysis import Explanation, explain
from smembench.explain.counters import METRICS
from smembench.kernels.matmul.partial_sums import Shares
from smembench.model.case import Case
from smembench.studies.explain import explainable
from smembench.toolchains.machine_code import machine_code
from smembench.views.explain import sentences
from traces import case

REFERENCE = Path(__file__).parents[2] / "results/reference"
LONG = pytest.mark.skipif(CAMPAIGN == 1, reason="half a minute: SMEMBENCH_CAMPAIGN=2 runs it")
SHARED_BY = 7
"""Multiprocessors that share four tiles of streamK, so that blocks wait for each other."""


def test_loads_of_a_tree_are_issued_twice_as_often_as_its_stores() -> None:
    explained = compiled("sumSequential", "512x1", "float32", 2**14)
    assert explained.idle["load"] == 2 * explained.idle["store"]
    explained = compiled("sumInterleaved", "512x1", "float32", 2**14)
    assert [(item.site.width, item.width) for item in explained.trace.merged] == [(4, 8)]
    assert explained.trace.unmatched == ()


explained = cache(explain)


def compiled(
    kernel: str, block: str, dtype: str, n: int, multiprocessors: int | None = None, **how: bool
) -> Explanation:
    return compiled_case(case(kernel, block, dtype, n=n), multiprocessors, **how)


def compiled_case(chosen: Case, multiprocessors: int | None = None, **how: bool) -> Explanation:
    code = machine_code(chosen, "9.0")
    if code is None:
        pytest.skip("needs NVVM and nvJitLink: pip install 'smembench[cu13]'")
    return explained(chosen, "9.0", code, multiprocessors, **how)


@pytest.mark.parametrize(
    ("kernel", "block", "dtype"),
    [("transposeStreamed", "16x32", "float32"), ("tiled2D", "16x16", "float32"), ("mmaAsync", "16x16", "bfloat16")],
)
def test_lines_of_machine_code_are_those_of_the_trace(kernel: str, block: str, dtype: str) -> None:
    """Also those of helpers in other files, such as copy_streaming, which lies above the kernel's first line."""
    explained = compiled(kernel, block, dtype, 201)
    assert explained.code is not None
    sites = (item.site for item in explained.trace.accesses)
    traced = {(site.place, site.kind) for site in sites if site.space == "shared"}
    assert {(item.line, item.access.kind) for item in explained.code.lined if item.access.space == "shared"} == traced


@pytest.mark.parametrize("name", ["h200-explain-matmul", "h200-explain-constant"])
def test_predictions_of_machine_code_are_what_an_h200_counted(name: str) -> None:
    """To the counters' rounding: those of these kernels are not the source's."""
    result: dict[str, Explanation] = {}
    with (REFERENCE / f"{name}.csv").open(encoding="utf-8") as stream:
        judged = [row for row in csv.DictReader(stream) if row["agrees"]]
    for row in judged:
        _, kernel, _, _, dtype, size, block, _ = row["case_id"].split("/")
        if CAMPAIGN == 1 and (kernel, block) == ("naive", "b32x32"):  # as in smaller blocks, but each is run
            continue
        n = int(size.split("x")[-1])
        explained = result.setdefault(row["case_id"], compiled(kernel, block.removeprefix("b"), dtype, n))
        assert explained.case.id == row["case_id"]
        what, *_, kind = row["figure"].split()
        predicted = explained.wavefronts(kind) if what == "wavefronts" else explained.sectors(kind)
        assert predicted == pytest.approx(float(row["counted"]), abs=0.005), row
    assert any(explained.trace.merged or explained.idle for explained in result.values())


FEW = ("transposeSwizzled", "transposeVectorized", "transposeHalfWarp")
ALIKE = ("Pad", "Dyn")
"""Ends of the names of kernels whose machine code is another's but for the begin or the pitch of a tile."""
DOCUMENTED = ("Gmem", "Smem", "Unroll")
"""Ends of the names of kernels of which each of a thousand blocks is run."""
TRIED = ("copyGmem", "transposeSmemUnroll")
"""Of those, one without shared memory and one with, where ``CAMPAIGN`` is 1; test_prediction.py compares all."""
MOVED_ALIKE = [(name, "float64") for name in ("transposeDown", "transposeStreamed", "transposePaired")]
"""Whose vectors of two elements are moved as by those of the few; they are compared in float32."""
DECLARED = explainable()
"""Stored counts are also of steps that have left the ladder."""


@pytest.mark.parametrize("others", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["few", "others"])
def test_predictions_of_transposes_at_odd_sizes_are_what_an_h100_counted(*, others: bool) -> None:
    """Tiles at all four edges, helpers of other files, and loads that the compiler moved into a branch."""
    with (REFERENCE / "h100-explain-odd.csv").open(encoding="utf-8") as stream:
        judged = [row for row in csv.DictReader(stream) if row["agrees"] and row["case_id"].startswith("transpose/")]
    result: dict[str, Explanation] = {}
    for row in judged:
        _, kernel, _, _, dtype, size, block, *_ = row["case_id"].split("/")
        rows, columns = map(int, size.split("x"))
        if (kernel in FEW) is others or kernel not in DECLARED or kernel.endswith(ALIKE):
            continue
        if kernel.endswith(DOCUMENTED) and dtype == "float64":  # which test_prediction.py compares
            continue
        if CAMPAIGN == 1 and ((kernel.endswith(DOCUMENTED) and kernel not in TRIED) or (kernel, dtype) in MOVED_ALIKE):
            continue
        if row["case_id"] not in result:
            chosen = replace(case(kernel, block.removeprefix("b"), dtype), m=rows, n=columns)
            result[row["case_id"]] = compiled_case(chosen)
        explained = result[row["case_id"]]
        assert explained.case.id == row["case_id"]
        what, *_, kind = row["figure"].split()
        predicted = explained.wavefronts(kind) if what == "wavefronts" else explained.sectors(kind)
        assert predicted == pytest.approx(float(row["counted"]), abs=0.005), row
    assert len(result) > 1


def test_warps_over_an_edge_issue_stores_without_a_lane() -> None:
    """3.85 was counted on an H200; with an active lane each takes 4."""
    explained = compiled("transposeVectorized", "16x32", "float32", 2000)
    assert explained.wavefronts("store") == pytest.approx(3.85, abs=0.005)


@pytest.mark.parametrize(
    ("kernel", "block", "dtype", "n", "kind", "counted"),
    [
        # Zeros are stored beyond the edges alone, under a predicate, by warps of which some, all or none do.
        ("tiled1D", "64x8", "float32", 1000, "store", 0.5108055009823183),
        ("tiled2D", "16x16", "float32", 1024, "store", 0.5),
        ("mmaPlain", "16x16", "bfloat16", 1024, "store", 2.0),
        ("mmaSwizzled", "16x16", "bfloat16", 1024, "store", 2.2857142857142856),
        # Loads that never run stand between asynchronous copies.
        ("mmaAsync", "16x16", "bfloat16", 1024, "load", 0.0),
    ],
)
def test_guarded_accesses_are_issued_without_a_lane(
    kernel: str, block: str, dtype: str, n: int, kind: str, counted: float
) -> None:
    """To all digits that an H200 counted."""
    assert compiled(kernel, block, dtype, n).wavefronts(kind) == counted


@LONG
def test_blocks_that_share_tiles_as_on_a_gpu_wait_for_each_other_and_pass_sums_on() -> None:
    """As an H200 with 132 multiprocessors counted streamK, but for loads of flags: one, or more where a block waits."""
    explained = compiled("streamK", "16x16", "float32", 1000, 132, whole=True)
    assert explained.wavefronts("load") == pytest.approx(1.6182655718005208, abs=0.005)
    assert explained.wavefronts("store") == 2.4
    assert explained.sectors("store") == pytest.approx(15.386811023622048)
    assert explained.sectors("load") == pytest.approx(6.69593905441015, abs=0.005)
    assert 334331 - explained.load_requests == 59
    assert len(explained.trace.blocks) == 128


def test_what_is_added_in_the_l2_is_neither_loaded_nor_stored() -> None:
    """Partial sums of streamK where rows are not aligned, as an H100 counted; 25 blocks stand for all."""
    explained = compiled_case(replace(case("streamK", "16x16"), m=773, n=1111, k=645), 132)
    assert explained.wavefronts("load") == pytest.approx(1.4362301456143023, abs=0.005)
    assert explained.sectors("store") == pytest.approx(131139 / 27181, rel=0.005)
    stores = sum(access.requests for access in explained.memory if access.site.kind == "store")
    assert stores == pytest.approx(27181, rel=0.03)
    assert explained.load_requests == pytest.approx(344199, rel=0.005)


@LONG
def test_blocks_that_share_tiles_unevenly_are_predicted_as_an_h100_counted_splitk() -> None:
    """15 blocks stand for all."""
    explained = compiled_case(replace(case("splitK", "16x16"), m=773, n=1111, k=645), 132)
    assert explained.wavefronts("load") == pytest.approx(1.4553306342780028, abs=0.005)
    assert explained.wavefronts("store") == 2.5
    assert explained.sectors("store") == pytest.approx(16.997776810066238, rel=0.01)
    assert explained.load_requests == pytest.approx(384889.5, rel=0.02)
    assert explained.untraced == ()


def test_blocks_that_stand_for_others_have_the_figures_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight tiles of splitK for 22 blocks, of which those of a tile wait for each other.

    The figures of all are those that were traced while an H100's agreed at 773 × 1111 × 645.
    """
    monkeypatch.setattr(Shares, "blocks", lambda shares, multiprocessors: multiprocessors)
    chosen = replace(case("splitK", "8x4"), m=64, n=256, k=160)
    some, every = (compiled_case(chosen, 22, **{how: True}) for how in ("quick", "whole"))
    assert len(some.trace.blocks) < len(every.trace.blocks) == 22
    assert some.waits
    assert some.untraced == every.untraced == ()
    assert (every.wavefronts("store"), every.load_requests) == (4, 4528)
    assert every.wavefronts("load") == pytest.approx(188 / 97)
    assert (every.sectors("load"), every.sectors("store")) == pytest.approx((8.9505, 15.5672), rel=1e-4)
    for kind in ("load", "store"):
        assert some.wavefronts(kind) == pytest.approx(every.wavefronts(kind), rel=0.05)
        assert some.sectors(kind) == pytest.approx(every.sectors(kind), rel=0.05)
    assert some.load_requests == pytest.approx(every.load_requests, rel=0.1)


def test_loads_of_blocks_that_wait_are_named_and_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """How often a block loads a flag depends on timing."""
    chosen = replace(case("streamK", "16x16"), m=161, n=161, k=645)
    alone, together = (compiled_case(chosen, count, whole=True) for count in (None, SHARED_BY))
    reading = dict.fromkeys(METRICS, 1.0)
    monkeypatch.setattr(counters, "profile", lambda cases, metrics, **how: [reading])
    monkeypatch.setattr(counters, "explain", explained)
    for result, multiprocessors, agrees in ((alone, None, False), (together, SHARED_BY, None)):
        assert ("Blocks wait for each other" in " ".join(sentences(result))) is result.waits is (agrees is None)
        figures = {item.figure: item for item in counters.compare([result.case], "9.0", multiprocessors)}
        assert figures["global load requests"].predicted == result.load_requests
        assert figures["sectors per global load"].agrees is agrees
        assert figures["sectors per global store"].agrees is False


def test_a_store_on_which_data_decide_is_named_and_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that reads the one odd element stores, in readGmem; in a trace no element is odd."""
    explained = compiled("readGmem", "256x1", "float32", 2**17)
    assert explained.untraced == (("global", "store"),)
    assert "The kernel's global stores are not in these figures: data decide" in " ".join(sentences(explained))
    assert compiled("sumVectorized", "256x1", "float32", 2**17).untraced == ()
    reading = dict.fromkeys(METRICS, 1.0) | {"l1tex__t_requests_pipe_lsu_mem_global_op_st.sum": 1.0}
    monkeypatch.setattr(counters, "profile", lambda cases, metrics, **how: [reading])
    figures = {item.figure: item for item in counters.compare([explained.case], "9.0")}
    assert figures["sectors per global store"].agrees is None
    assert figures["sectors per global load"].agrees is False


def test_an_explanation_says_what_the_compiler_merged() -> None:
    text = " ".join(sentences(compiled("tiled", "32x32", "float32", 512)))
    assert "Merged by the compiler: 4 loads of 32 bits are one of 128 (shared0, line " in text
    assert "of other widths" not in text
    text = " ".join(sentences(compiled("constantUniform", "256x1", "float32", 2**17)))
    assert "44 % of the requests of shared stores are by warps without an active lane" in text
