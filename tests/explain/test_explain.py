"""Explanations from traces: what accesses cost, and what is said of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from programs import NUMBA
from smembench.explain.analysis import Explanation, explain
from smembench.explain.launch_layouts import pads_of
from smembench.explain.trace import SharedArray, Trace
from smembench.model.case import Block, Case
from smembench.toolchains.machine_code import MachineCode
from smembench.views.explain import explanation
from smembench.views.explain_layouts import tried_pads
from traces import case, elements

DOCUMENTED = [kernel for kernel in NUMBA if kernel.blocks and not kernel.default_blocks]
TRANSPOSES = [kernel.name for kernel in DOCUMENTED if kernel.problem == "transpose"]
"""Those of the documents, a thread an element or two; see test_transpose_ladder.py for those of the ladder."""


def figures(explained: Explanation) -> tuple[float | None, ...]:
    """Degree, wavefronts and sectors of loads, then of stores."""
    asked = (explained.degree, explained.wavefronts, explained.sectors)
    return tuple(figure(kind) for kind in ("load", "store") for figure in asked)


@pytest.mark.parametrize(
    ("kernel", "block", "dtype", "loads", "stores"),
    [
        ("transposeSmem", "32x32", "float32", (32, 32, 4), (1, 1, 4)),
        ("transposeSmem", "16x16", "float64", (16, 32, 8), (1, 2, 8)),
        ("transposeSmemPad", "16x16", "float32", (2, 2, 4), (2, 2, 4)),
        ("transposeSmemUnroll", "16x16", "float32", (16, 16, 4), (2, 2, 4)),
        ("tiled", "32x32", "float32", (1, 1, 4), (1, 1, 4)),
        ("copyGmem", "32x32", "float16", (None, None, 2), (None, None, 2)),
        ("naiveGmem", "32x32", "float64", (None, None, 8), (None, None, 32)),
        ("naive", "32x32", "float32", (None, None, 2.5), (None, None, 4)),  # a broadcast of A, a sector; a row of B
    ],
)
def test_figures_of_known_kernels(
    kernel: str, block: str, dtype: str, loads: tuple[float | None, ...], stores: tuple[float | None, ...]
) -> None:
    """Of those that no counter confirms below, and the degree."""
    assert figures(explain(case(kernel, block, dtype))) == loads + stores


def test_a_kernel_without_a_tile_has_no_shared_access() -> None:
    explained = explain(case("copyGmem"))
    assert (explained.shared, explained.trace.shared) == ((), ())


def test_the_tile_of_a_is_broadcast() -> None:
    explained = explain(case("tiled"))
    loads = {access.site.array: access for access in explained.shared if access.site.kind == "load"}
    assert [(name, access.broadcast, access.degree) for name, access in loads.items()] == [
        ("shared0", True, 1),
        ("shared1", False, 1),
    ]
    assert "a_sub" in loads["shared0"].source
    assert explained.trace.shared == (SharedArray("shared0", (32, 32), 4, 0), SharedArray("shared1", (32, 32), 4, 4096))
    assert explained.shared_bytes == sum(array.bytes for array in explained.trace.shared)
    assert explained.intensity == pytest.approx(4096 / 6)


@pytest.mark.parametrize(("block", "n"), [("32x32", 1001), ("16x16", 1100), ("24x8", 1004)])
def test_sectors_of_ragged_sizes_are_those_of_the_whole_grid(n: int, block: str) -> None:
    """By arithmetic: copyGmem's warps read rows of a block, piece by piece, each piece its own sectors."""
    asked = case("copyGmem", block, n=n)
    assert asked.block is not None
    width, height = asked.block
    requests = sectors = 0
    for top in range(0, n, height):
        for left in range(0, n, width):
            for first in range(0, width * height, 32):
                threads = [divmod(thread, width) for thread in range(first, first + 32)]
                inside = [(top + y) * n + left + x for y, x in threads if top + y < n and left + x < n]
                requests += bool(inside)
                sectors += len({element // 8 for element in inside})
    assert explain(asked).sectors("load") == pytest.approx(sectors / requests, rel=0.005)


@pytest.mark.parametrize(("rows", "columns"), [(100, 70), (33, 1000), (257, 31)])
@pytest.mark.parametrize("kernel", TRANSPOSES)
def test_ragged_blocks_stay_inside_the_arrays(kernel: str, rows: int, columns: int) -> None:
    ragged = replace(case(kernel), m=rows, n=columns)
    traced = explain(ragged).trace
    loaded, stored = elements(traced, "in", 4), elements(traced, "out", 4)
    assert len(loaded) == len(stored) == len(set(loaded)) == len(set(stored))
    assert set(loaded) | set(stored) <= set(range(rows * columns))


@pytest.mark.parametrize(("rows", "columns"), [(32, 64), (7, 61), (1, 1)])
@pytest.mark.parametrize("kernel", TRANSPOSES)
def test_where_the_grid_is_two_blocks_the_trace_is_the_whole_kernel(kernel: str, rows: int, columns: int) -> None:
    small = replace(case(kernel), m=rows, n=columns)
    traced = explain(small).trace
    whole = list(range(rows * columns))
    assert sorted(elements(traced, "in", 4)) == sorted(elements(traced, "out", 4)) == whole


@pytest.mark.parametrize(
    ("capability", "code", "expected"),
    [(None, None, None), ("9.0", None, (2, 64, "threads")), ("9.0", MachineCode(64, 0, 100), (1, 32, "registers"))],
)
def test_occupancy_where_the_capability_is_known(
    capability: str | None, code: MachineCode | None, expected: tuple[int, int, str] | None
) -> None:
    explained = explain(case("transposeSmem"), capability, code)
    resident = explained.occupancy
    assert (explained.threads, explained.shared_bytes) == (1024, 4096)
    assert (resident and (resident.blocks, resident.warps, resident.limiter)) == expected


def test_what_is_done_once_weighs_little_beside_a_loop() -> None:
    """The first tiles are stored before the loop; C is written at its end."""
    planned = Case("matmul", "serpentine", "cuda:0", "float32", 4096, 4096, 4096, Block(16, 16))
    source, shared, memory = (section.cells for section in explanation(explain(planned)))
    (result,) = (line for line, code in source if "(C.elements" in code)
    shares = [cells[-1] for cells in shared]
    loop = [share for share in shares if share != "< 0.1 %"]
    assert len(shares) - len(loop) == 2
    assert sum(float(share.removesuffix(" %")) for share in loop) == pytest.approx(100, abs=2)
    assert [cells[-1] for cells in memory if cells[0] == result] == ["2 %"]


@pytest.mark.parametrize(
    ("block", "best", "first", "phrase"),
    [
        ("32x32", 1, [(0, 32, 1), (1, 1, 1)], "smallest pad free of conflicts is 1"),
        ("16x16", None, [(0, 8, 1), (1, 2, 2), (2, 1, 2)], "pad 2 has the fewest"),
    ],
)
def test_the_smallest_pad_without_conflicts(
    block: str, best: int | None, first: list[tuple[int, int, int]], phrase: str
) -> None:
    (outcome,) = pads_of(explain(replace(case("transposeSmemPad", block), pad=0)))
    assert (outcome.best and outcome.best.layout.pad) == best
    assert [(tried.layout.pad, tried.loads, tried.stores) for tried in outcome.tried[:3]] == first
    assert best is not None or [tried.layout.pad for tried in outcome.tried] == list(range(32))
    (shown,) = tried_pads([outcome], "heading")
    assert phrase in shown.sentence


def test_an_explanation_as_tables() -> None:
    """An access of one line is both: the load of one space, and the store of the other."""
    source, shared, memory = explanation(explain(case("transposeSmem")))
    assert [line[1:] for line in shared.cells] == [
        ["store", "shared0", "1.00", "none", "3 %"],
        ["load", "shared0", "32.0", "32-way", "97 %"],
    ]
    assert [line[1:] for line in memory.cells] == [
        ["load", "in", "4.00", "4.00", "100 %", "50 %"],
        ["store", "out", "4.00", "4.00", "100 %", "50 %"],
    ]
    lines = [line[0] for line in source.cells]
    assert lines == [line[0] for line in shared.cells] == [line[0] for line in memory.cells]
    assert [code for _, code in source.cells] == ["tile[ty, tx] = inp[ti]", "out[to] = tile[icol, irow]"]


@pytest.mark.parametrize(
    ("kernel", "block", "phrases"),
    [
        ("transposeSmem", "32x32", ["loads take 32.0 times the wavefronts", "fully coalesced", "Occupancy 100 %"]),
        ("transposeSmemPad", "16x16", ["loads take 2.00 times", "stores take 2.00 times"]),
        ("transposeSmemPad", "32x32", ["free of bank conflicts"]),
        ("naiveGmem", "32x32", ["Stores of out use 12 % of the bytes that they move."]),
        ("tiled", "16x16", ["A 256 times", "B 256 times", "34.4 GB"]),
        ("naive", "32x32", ["A 4096 times", "B 4096 times", "343.6 GB"]),
    ],
)
def test_an_explanation_in_words(kernel: str, block: str, phrases: list[str]) -> None:
    sentence = explanation(explain(case(kernel, block), "9.0"))[-1].sentence
    assert [words for words in phrases if words not in sentence] == []


def test_a_statement_over_several_lines_is_shown_whole(tmp_path: Path) -> None:
    """A reader could not tell a call over four lines from its first."""
    file = tmp_path / "kernel.py"
    file.write_text("def kernel(tile, inp):\n    tile[0] = inp[\n        1\n    ]\n    tile[1] = inp[2]\n")
    outcome = Trace((), (), str(file), ())
    assert [outcome.source(line) for line in (2, 5)] == ["tile[0] = inp[1]", "tile[1] = inp[2]"]
