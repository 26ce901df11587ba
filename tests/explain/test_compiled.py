"""What the compiler made of accesses, by the widths of its machine code and the addresses of a trace."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smembench.explain.analysis import Explanation, explain
from smembench.explain.compiled import as_compiled
from smembench.explain.idle import of_branches, of_lines, of_warps
from smembench.explain.requests import NOWHERE, Accesses, AccessSite, Merged
from smembench.explain.trace import Trace
from smembench.model.hardware import WARP
from smembench.toolchains.machine_code import machine_code
from smembench.toolchains.memory_instructions import UNREAD, MemoryInstruction
from smembench.views.explain import sentences
from traces import case

REFERENCE = Path(__file__).parents[2] / "results/reference"
ROWS, COLUMNS = (AccessSite(53, "shared", "load", array, 4) for array in ("shared0", "shared1"))


def trace(*accesses: Accesses) -> Trace:
    return Trace(accesses, (), "kernel.py", ((0, 0),))


def along(site: AccessSite, apart: int, count: int, first: int = 0) -> Accesses:
    """``count`` accesses of a warp whose lanes lie 256 bytes apart, each ``apart`` bytes after the one before."""
    addresses = first + np.arange(count)[:, None, None] * apart + 256 * np.arange(WARP)
    return Accesses(site, addresses, 1)


def loads(*widths: int) -> Counter[MemoryInstruction]:
    return Counter(MemoryInstruction("shared", "load", width) for width in widths)


def widths(traced: Trace) -> dict[str, int]:
    return {each.site.array: each.site.width for each in traced.accesses}


def test_accesses_side_by_side_are_one() -> None:
    """Of two sites only one has neighbours: it must be what the wide loads are."""
    (found,) = as_compiled([trace(along(ROWS, 4, 8), along(COLUMNS, 128, 8))], loads(4, 16))
    rows, columns = found.accesses
    assert (rows.site.width, columns.site.width) == (16, 4)
    assert (rows.addresses == along(ROWS, 16, 2).addresses).all()
    assert (columns.addresses == along(COLUMNS, 128, 8).addresses).all()
    assert (found.merged, found.unmatched) == ((Merged(ROWS, 16),), ())


@pytest.mark.parametrize(
    ("accesses", "compiled"),
    [
        pytest.param([along(ROWS, 4, 8)], [4], id="the code has the source's widths"),
        pytest.param([along(ROWS, 4, 8)], [4, 2], id="the code has narrower ones on other paths"),
        pytest.param([along(ROWS, 128, 8)], [UNREAD], id="asynchronous copies or matrices"),
        pytest.param([], [4, 16], id="the trace has no such access"),
    ],
)
def test_nothing_is_merged(accesses: list[Accesses], compiled: list[int]) -> None:
    (found,) = as_compiled([trace(*accesses)], loads(*compiled))
    assert [each.site for each in found.accesses] == [each.site for each in accesses]
    assert (found.merged, found.unmatched) == ((), ())


@pytest.mark.parametrize(
    ("accesses", "compiled"),
    [
        pytest.param([along(ROWS, 128, 8)], [4, 16], id="no neighbours"),
        pytest.param([along(ROWS, 4, 7)], [4, 16], id="one too few"),
        pytest.param([along(ROWS, 4, 8, first=4)], [4, 16], id="not aligned"),
        pytest.param([along(ROWS, 4, 8), along(COLUMNS, 4, 8)], [4, 16], id="either of two may be meant"),
        pytest.param([along(ROWS, 4, 8), along(COLUMNS, 128, 8)], [16], id="the other has no width"),
        pytest.param([along(ROWS, 128, 8)], [2], id="split"),
    ],
)
def test_what_the_trace_does_not_explain_is_said(accesses: list[Accesses], compiled: list[int]) -> None:
    (found,) = as_compiled([trace(*accesses)], loads(*compiled))
    assert [each.site for each in found.accesses] == [each.site for each in accesses]
    assert (found.merged, found.unmatched) == ((), (("shared", "load"),))


def test_one_step_of_an_unrolled_loop_is_merged_if_the_code_has_as_many_of_each_width() -> None:
    steps = along(ROWS, 128, 6)
    steps.addresses[3] = steps.addresses[2] + 4
    (found,) = as_compiled([trace(steps, along(COLUMNS, 128, 2))], loads(8, 4, 4, 4, 4, 4, 4))
    together, alone, columns = found.accesses
    assert (together.site.width, alone.site.width, columns.site.width) == (8, 4, 4)
    assert (together.addresses == steps.addresses[2:3]).all()
    assert (alone.addresses == steps.addresses[[0, 1, 4, 5]]).all()
    assert touched(found.accesses) == touched([steps, along(COLUMNS, 128, 2)])
    assert (found.merged, found.unmatched) == ((Merged(ROWS, 8),), ())
    (found,) = as_compiled([trace(steps, along(COLUMNS, 128, 2))], loads(8, 4, 4, 4, 4, 4))
    assert (found.merged, found.unmatched) == ((), (("shared", "load"),))


def test_a_longer_loop_is_merged_as_the_shorter_one_is_or_not_at_all() -> None:
    both = as_compiled([trace(along(ROWS, 4, 8)), trace(along(ROWS, 4, 10))], loads(4, 16))
    assert [widths(found) for found in both] == [{"shared0": 4}] * 2


@given(st.lists(st.booleans(), min_size=WARP, max_size=WARP), st.sampled_from([8, 16]), st.integers(1, 5))
def test_merged_accesses_touch_the_same_bytes(going: list[bool], width: int, count: int) -> None:
    """Whatever lanes are active."""
    accesses = along(ROWS, 4, count * width // 4)
    accesses = accesses._replace(addresses=np.where(going, accesses.addresses, NOWHERE))
    (found,) = as_compiled([trace(accesses)], loads(width))
    assert widths(found) == {"shared0": width}
    assert touched(found.accesses) == touched([accesses])


def touched(accesses: Iterable[Accesses]) -> list[set[int]]:
    """The bytes that each lane touches."""
    found: list[set[int]] = [set() for _ in range(WARP)]
    for each in accesses:
        for request in each.requests():
            for lane, address in enumerate(request.addresses):
                if address is not None:
                    found[lane] |= set(range(address, address + each.site.width))
    return found


@pytest.mark.parametrize(
    ("once", "warps", "expected"),
    [
        ((True, True), 8, {"load": 9}),
        ((True, False), 8, {}),
        ((True, True), 5, {"load": 0}),
        ((True, True), 1, {"load": 0}),
    ],
)
def test_requests_without_an_active_lane(once: tuple[bool, bool], warps: int, expected: dict[str, int]) -> None:
    """Three instructions per warp, of which 15 had an active lane; none where the code cannot be meant."""
    code = {MemoryInstruction("shared", "load", 4 * number, once=each): number for number, each in enumerate(once, 1)}
    requests = list(along(ROWS, 4, 15).requests())
    assert of_warps(requests, code, warps) == expected


@pytest.mark.parametrize(
    ("guards", "expected"),
    [
        pytest.param({53: {False}, 57: {True}}, 15, id="the other branch is a branch"),
        pytest.param({53: {True}, 57: {False}}, 0, id="the branch that is taken is guarded"),
        pytest.param({53: {True}, 57: {True}}, 0, id="both are guarded"),
        pytest.param({53: {False}, 57: {False}}, 0, id="none is guarded"),
        pytest.param({53: {False}, 57: {True}, 60: {True}}, 0, id="another store is guarded"),
        pytest.param({53: {False}, 57: {True, False}}, 0, id="some stores of the line are guarded"),
        pytest.param({}, 0, id="lines are not known"),
    ],
)
def test_stores_of_a_branch_that_is_never_taken(guards: dict[int, set[bool]], expected: int) -> None:
    """Line 57 has the store that no thread makes, line 53 that of the other branch."""
    stores = Accesses(replace(ROWS, kind="store"), along(ROWS, 4, 15).addresses, 1)
    assert of_branches(stores.requests(), {57: 53}, guards) == expected


GUARDED, ONCE = MemoryInstruction("shared", "load", 4, True, True), MemoryInstruction("shared", "load", 4, False, True)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param({53: {GUARDED: 20}, 57: {ONCE._replace(once=False): 1}}, 3 * 20 - 15, id="every warp comes there"),
        pytest.param({53: {ONCE: 15}}, 0, id="an active lane each time"),
        pytest.param({53: {GUARDED: 20, ONCE: 1}}, 0, id="not known which of the line's"),
        pytest.param({53: {GUARDED._replace(once=False): 20}}, 0, id="in a loop or behind a branch"),
        pytest.param({53: {GUARDED: 20}, 57: {GUARDED: 1}}, 0, id="a line that no thread reached"),
        pytest.param({53: {GUARDED: 20}, 57: {GUARDED._replace(kind="store"): 1}}, 45, id="the other kind"),
        pytest.param({}, 0, id="lines are not known"),
    ],
)
def test_guarded_accesses_of_a_line(lines: dict[int, dict[MemoryInstruction, int]], expected: int) -> None:
    """15 requests of line 53 have an active lane, of three warps."""
    assert of_lines([*along(ROWS, 4, 15).requests()], "load", lines, 3) == expected


def test_loads_of_a_tree_are_issued_twice_as_often_as_its_stores() -> None:
    explained = compiled("sumSequential", "512x1", "float32", 2**20)
    assert explained.idle["load"] == 2 * explained.idle["store"]
    explained = compiled("sumInterleaved", "512x1", "float32", 2**20)
    assert [(each.site.width, each.width) for each in explained.trace.merged] == [(4, 8)]
    assert explained.trace.unmatched == ()


def compiled(kernel: str, block: str, dtype: str, n: int) -> Explanation:
    chosen = case(kernel, block, dtype, n=n)
    code = machine_code(chosen, "9.0")
    if code is None:
        pytest.skip("needs NVVM and nvJitLink: pip install 'smembench[cu13]'")
    return explain(chosen, "9.0", code)


@pytest.mark.parametrize("name", ["h200-explain-matmul", "h200-explain-constant"])
def test_predictions_of_machine_code_are_what_an_h200_counted(name: str) -> None:
    """To the counters' rounding: those of these kernels are not the source's."""
    found: dict[str, Explanation] = {}
    with (REFERENCE / f"{name}.csv").open(encoding="utf-8") as stream:
        judged = [row for row in csv.DictReader(stream) if row["agrees"]]
    for row in judged:
        _, kernel, _, _, dtype, size, block, _ = row["case_id"].split("/")
        n = int(size.split("x")[-1])
        explained = found.setdefault(row["case_id"], compiled(kernel, block.removeprefix("b"), dtype, n))
        assert explained.case.id == row["case_id"]
        what, *_, kind = row["figure"].split()
        predicted = explained.wavefronts(kind) if what == "wavefronts" else explained.sectors(kind)
        assert predicted == pytest.approx(float(row["counted"]), abs=0.005), row
    assert any(explained.trace.merged or explained.idle for explained in found.values())


def test_warps_over_an_edge_issue_stores_without_a_lane() -> None:
    """3.85 was counted on an H200; with an active lane each takes 4."""
    explained = compiled("transposeVectorized", "16x32", "float32", 2000)
    assert explained.wavefronts("store") == pytest.approx(3.85, abs=0.005)


@pytest.mark.parametrize(("kernel", "block"), [("tiled1D", "64x8"), ("tiled2D", "16x16")])
def test_a_branch_that_is_never_taken_issues_its_stores(kernel: str, block: str) -> None:
    """0.5 was counted on an H200: zeros are stored beyond the edges alone, under a predicate.

    At edges some threads store zeros, and how many warps do not is not known.
    """
    explained = compiled(kernel, block, "float32", 1024)
    assert (explained.wavefronts("load"), explained.wavefronts("store")) == (1, 0.5)
    assert compiled(kernel, block, "float32", 1000).idle == {}


def test_an_explanation_says_what_the_compiler_merged() -> None:
    said = " ".join(sentences(compiled("tiled", "32x32", "float32", 512)))
    assert "Merged by the compiler: 4 loads of 32 bits are one of 128 (shared0, line " in said
    said = " ".join(sentences(compiled("constantUniform", "256x1", "float32", 2**20)))
    assert "44 % of the requests of shared stores are by warps without an active lane" in said
