"""Pads and swizzles: layouts permute a tile, and what the search says of them is counted again by other means."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from campaign import CAMPAIGN
from programs import case_of, cuda_kernel
from smembench.explain.analysis import explain
from smembench.explain.launch_layouts import best_layouts, layouts_of, pads_of
from smembench.explain.layouts import Layout, Tile
from smembench.explain.rearranged import asked_of
from smembench.explain.requests import AccessSite, Request
from smembench.explain.trace import SharedArray, Trace
from smembench.model.case import Block, Case
from smembench.model.errors import UsageError
from smembench.studies.explain import Axes, cases


@st.composite
def tiles(draw: st.DrawFn) -> tuple[Tile, Layout]:
    """A tile with rows of a power of two, and a swizzle that stays in it."""
    bits, rows = draw(st.integers(1, 7)), draw(st.integers(1, 70))
    across = draw(st.integers(0, bits - 1))
    taken = draw(st.integers(1, bits - across))
    columns, size = 2**bits, draw(st.sampled_from([2, 4, 8]))
    shape = draw(st.sampled_from([(rows, columns), (3, rows, columns), (rows * columns,)]))
    layout = Layout(down=draw(st.integers(0, 4)), rows=2**taken, across=across)
    return Tile(SharedArray("tile", shape, size, 128), columns), layout


@given(tiles())
def test_a_swizzle_is_a_permutation_of_each_row_that_keeps_vectors(drawn: tuple[Tile, Layout]) -> None:
    tile, layout = drawn
    base, size, columns = tile.array.base, tile.array.itemsize, tile.columns
    addresses = range(base, base + tile.array.bytes, size)
    moved = tile.moved(np.array(addresses), layout).tolist()
    assert sorted(moved) == [*addresses]
    row_of = [(address - base) // (size * columns) for address in addresses]
    assert [(address - base) // (size * columns) for address in moved] == row_of
    vector = 2**layout.across
    for first in range(0, len(moved), vector):
        assert moved[first] % (vector * size) == base % (vector * size)
        assert moved[first : first + vector] == [*range(moved[first], moved[first] + vector * size, size)]
    assert tile.bytes(layout) == tile.array.bytes


@given(tiles(), st.integers(1, 9))
def test_the_printed_expression_is_the_layout(drawn: tuple[Tile, Layout], pad: int) -> None:
    tile, swizzle = drawn
    for layout in (swizzle, Layout(pad=pad)):
        for row in {0, tile.rows // 3, tile.rows // 2, tile.rows - 1}:
            for column in {0, tile.columns - 1}:
                base, size = tile.array.base, tile.array.itemsize
                (address,) = tile.moved(np.array([base + (row * tile.columns + column) * size]), layout)
                assert (address - base) // size == place_by_expression(tile, layout)(row, column)


@cache
def place_by_expression(tile: Tile, layout: Layout) -> Callable[[int, int], int]:
    """The element that the expression of a layout names for a row and a column, as Python computes it."""
    text = tile.expression(layout)
    if text == "tile[i]":
        return lambda r, c: c
    result = re.fullmatch(r"\w+\[(?:…, )?(?:(r), )?(.*)\]", text)
    assert result, text
    column = eval(f"lambda r, c: int({result[2]})")
    if result[1] is None:
        return column  # type: ignore[no-any-return]
    return lambda r, c: r * (tile.columns + layout.pad) + column(r, c)


def words_of_the_busiest_bank(addresses: Sequence[int | None], width: int) -> int:
    """Wavefronts of a request whose lanes do not share addresses in pairs."""
    together, count = min(32, 128 // width), 0
    for first in range(0, 32, together):
        active = [address for address in addresses[first : first + together] if address is not None]
        words = {byte // 4 for address in active for byte in range(address, address + width)}
        count += max(Counter(word % 32 for word in words).values(), default=0)
    return count


LARGE, SMALL = Block(32, 32), Block(16, 16)


def shared_requests(traced: Trace) -> list[Request]:
    """The requests to shared memory, one by one."""
    return [request for request in traced.requests if request.site.space == "shared"]


def transpose(kernel: str = "transposeSmem", block: Block = LARGE, dtype: str = "float32") -> Case:
    return Case("transpose", kernel, "cuda:0", dtype, 256, 256, None, block, 0)


@pytest.mark.parametrize(
    ("block", "dtype"),
    [
        *((LARGE, "float16"), (LARGE, "float32"), (SMALL, "float32"), (Block(32, 8), "float64")),
        *(((LARGE, "float64"), (Block(8, 32), "float16"), (Block(64, 4), "float32")) if CAMPAIGN > 1 else ()),
    ],
)
def test_what_a_layout_costs_is_counted_again_from_its_expression(block: Block, dtype: str) -> None:
    case = transpose(block=block, dtype=dtype)
    explained = explain(case)
    (result,) = layouts_of(explained)
    requests = shared_requests(explained.trace)
    assert result.swizzle is not None
    for candidate in filter(None, (result.plain, result.pad, result.swizzle)):
        place_of, total = place_by_expression(result.tile, candidate.layout), 0
        for request in requests:
            moved: list[int | None] = []
            for address in request.addresses:
                element = (
                    None if address is None else divmod(address // result.tile.array.itemsize, result.tile.columns)
                )
                place = None if element is None else place_of(*element)
                moved.append(None if place is None else place * result.tile.array.itemsize)
            total += request.weight * words_of_the_busiest_bank(moved, request.site.width)
        assert total == candidate.wavefronts


def test_a_swizzle_frees_square_tiles_of_which_a_pad_frees_only_the_larger() -> None:
    (small,), (large,) = (layouts_of(explain(transpose(block=block))) for block in (SMALL, LARGE))
    assert small.swizzle is not None is not large.swizzle
    assert small.pad is not None is not large.pad
    assert [tried.free for tried in (small.pad, small.swizzle, large.pad, large.swizzle)] == [False, True, True, True]
    assert small.tile.expression(small.swizzle.layout) == "shared0[r, c ^ r]"
    assert (large.tile.bytes(large.swizzle.layout), large.tile.bytes(large.pad.layout)) == (4096, 4224)


@pytest.mark.parametrize("block", [Block(32, 32), Block(16, 16), Block(48, 16)])
def test_a_moved_trace_is_the_trace_of_the_padded_kernel(block: Block) -> None:
    case = transpose("transposeSmemPad", block)
    (pads,) = pads_of(explain(case))
    for moved in pads.tried[: 4 if CAMPAIGN > 1 else 2]:
        padded = explain(replace(case, pad=moved.layout.pad))
        assert (moved.loads, moved.stores) == pytest.approx((padded.degree("load"), padded.degree("store")))


def test_requests_one_by_one_weigh_as_much_as_those_that_explain_merges() -> None:
    """Also in a kernel with a loop, whose requests repeat."""
    explained = explain(Case("matmul", "tiled", "cuda:0", "float32", 64, 64, 128, SMALL))
    requests = shared_requests(explained.trace)
    for access in explained.shared:
        own = [request for request in requests if replace(request.site, place=0) == access.site]
        assert sum(request.weight for request in own) == access.requests
        assert len({request.addresses for request in own}) > 1


def test_rows_of_no_power_of_two_are_not_swizzled() -> None:
    (result,) = layouts_of(explain(transpose(block=Block(48, 16))))
    assert result.pad is not None
    assert result.swizzle is None
    assert "a row of shared0 has 48 elements, no power of two, and XOR would leave it" in result.reason


@pytest.mark.parametrize("row", [None, 32])
def test_rows_of_a_flat_array_are_tried_or_given(row: int | None) -> None:
    (result,) = layouts_of(explain(transpose("transposeSmemDyn")), row)
    assert result.swizzle
    assert result.swizzle.free
    assert result.tile.expression(result.swizzle.layout) == "shared0[r * 32 + (c ^ r)]"


def test_no_layout_is_found_for_indices_outside_the_tile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMEMBENCH_KERNELS", str(Path(__file__).with_name("mistaken_kernels.py")))
    (case,) = cases("beyond_the_tile", Axes("32x32"), n=64)
    with pytest.raises(UsageError, match="--best-swizzle: line 22: thread 256"):
        layouts_of(explain(case))


def requests(elements: Sequence[int], width: int, kind: str = "load") -> list[Request]:
    """A float32 request of a warp, whose lanes access so many bytes from these elements on."""
    site = AccessSite(1, "shared", kind, "tile", width)
    return [Request(site, tuple(4 * element for element in elements))]


def test_vectors_stay_whole() -> None:
    array = SharedArray("tile", (32, 64), 4, 0)
    column = requests([64 * lane for lane in range(32)], 16)
    rows = requests([4 * lane for lane in range(32)], 16, "store")
    result = best_layouts([Tile(array, 64)], asked_of(column + rows))
    assert result.plain.loads == 8
    assert result.swizzle
    assert result.swizzle.free
    assert result.tile.expression(result.swizzle.layout) == "tile[r, c ^ ((r % 16) << 2)]"
    assert result.pad
    assert result.pad.layout.pad % 4 == 0


@pytest.mark.parametrize(
    ("row", "reason"),
    [(33, "rows of shared0 are whole vectors of 4 elements"), (10**16, r"shared0 has \d+ elements; give fewer")],
)
def test_rows_that_split_vectors_or_are_longer_than_the_array_are_refused(row: int, reason: str) -> None:
    with pytest.raises(UsageError, match=f"--row {row}: {reason}"):
        layouts_of(explain(case_of(cuda_kernel("matmul", "vectorized"), 128, 128, 16)), row=row)


def test_where_neither_helps_it_says_why() -> None:
    wide = SharedArray("tile", (4, 1024), 4, 0)
    result = best_layouts([Tile(wide, 1024)], asked_of(requests([32 * lane for lane in range(32)], 4)))
    assert (result.pad, result.swizzle, result.reason) == (None, None, "No layout has fewer wavefronts.")
    free = best_layouts([Tile(wide, 1024)], asked_of(requests([*range(32)], 4)))
    assert (free.plain.free, free.pad, free.swizzle, free.reason) == (True, None, None, "")


def test_rows_are_those_for_which_a_pad_helps_as_well() -> None:
    array = SharedArray("tile", (512,), 8, 0)
    asked = asked_of(requests([4 * lane for lane in range(32)], 8, "store") + requests([*range(0, 64, 2)], 8))
    result = best_layouts([Tile(array, 2), Tile(array, 16)], asked)
    assert result.pad
    assert result.swizzle
    assert (result.tile.columns, result.pad.layout.pad, result.pad.free, result.swizzle.free) == (16, 1, True, True)


def test_planes_of_a_tile_keep_their_rows() -> None:
    """Two buffers of a tile: each is swizzled by its own rows."""
    array = SharedArray("tile", (2, 32, 32), 4, 0)
    column = [32 * lane for lane in range(32)]
    both = requests(column, 4) + requests([1024 + element for element in column], 4)
    result = best_layouts([Tile(array, 32)], asked_of(both))
    assert result.swizzle
    assert result.swizzle.free
    assert result.tile.expression(result.swizzle.layout) == "tile[…, r, c ^ r]"
    assert replace(result.swizzle.layout, rows=1) == Layout()
