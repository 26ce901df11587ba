"""The picture of the worst bank conflict."""

from __future__ import annotations

import io
import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from smembench.explain.analysis import explain
from smembench.explain.banks import ideal_wavefronts, wavefronts
from smembench.explain.costs import SharedAccess
from smembench.explain.requests import AccessSite, Request
from smembench.explain.trace import SharedArray
from smembench.model.case import Case
from smembench.studies.explain import Axes
from smembench.studies.explain import cases as cases_of
from smembench.views.explain_banks import conflict_picture, picture
from smembench.views.sections import table
from smembench.views.table import draw
from traces import case

SCREEN = 80


def drawn(case: Case) -> list[str]:
    return [line.plain for line in picture(explain(case))]


def marks(lines: list[str]) -> Counter[int]:
    """How many words of each bank are marked below the legend."""
    assert ".: not " in lines[2]
    rows = (line.split(maxsplit=1)[1] for line in lines[3:] if "rows without" not in line)
    return Counter(int(bank) for row in rows for bank in re.findall(r"\d+", row))


def access(kind: str, addresses: tuple[int | None, ...], width: int) -> SharedAccess:
    site = AccessSite(1, "shared", kind, "shared0", width)
    needed, ideal = wavefronts(addresses, width, kind), ideal_wavefronts(addresses, width, kind)
    return SharedAccess(site, "", 1, needed, ideal, Request(site, addresses), broadcast=False)


@pytest.mark.parametrize(
    ("kernel", "block", "dtype", "expected"),
    [
        ("transposeSmem", "32x32", "float32", {0: 32}),
        ("transposeSmem", "16x16", "float32", {0: 8, 1: 8, 16: 8, 17: 8}),
        ("transposeSmem", "32x32", "float64", {0: 16}),  # of a half-warp, an element by the first of its banks
        ("transposeSmem", "32x32", "float16", {0: 16, 16: 16}),  # two elements per word
        ("transposeSmemPad", "16x16", "float32", {0: 2}),
        ("transposeSmemUnroll", "32x32", "float32", {0: 32}),  # wider than a screen
        ("transposeSmemDyn", "32x32", "float32", {0: 32}),
    ],
)
def test_the_words_in_conflict_are_marked_by_their_bank(
    kernel: str, block: str, dtype: str, expected: dict[int, int]
) -> None:
    result = case(kernel, block, dtype)
    lines = drawn(result)
    assert marks(lines) == expected
    assert max(expected.values()) == explain(result).degree("load")
    assert max(map(len, lines)) <= SCREEN


def test_words_without_conflict_and_the_pad_are_told_apart_without_colour() -> None:
    lines = drawn(case("transposeSmemPad", "16x16"))
    rows = [line.split() for line in lines[3:]]
    assert [row[0] for row in rows] == [str(row) for row in range(16)]
    assert sum(row.count("o") for row in rows) == 30
    assert all(line.index("|") == lines[3].index("|") for line in lines[3:])
    assert all(f"{mark}: " in lines[2] for mark in "o.|")
    assert "o: " not in drawn(case("transposeSmem"))[2]


@pytest.mark.parametrize(("kernel", "block"), [("transposeSmemPad", "32x32"), ("tiled", "16x16"), ("strided", None)])
def test_a_kernel_without_conflicts_has_a_line_and_no_marks(kernel: str, block: str | None) -> None:
    (line,) = drawn(cases_of(kernel, Axes(block))[0])
    assert line.startswith("No bank conflicts")


def test_a_kernel_without_shared_memory_has_no_picture() -> None:
    assert drawn(case("copyGmem")) == []


def test_rows_without_accesses_are_one_line() -> None:
    lines = drawn(cases_of("streamK")[0])
    assert len(lines) < 20
    assert set(marks(lines).values()) == {2}
    rows = [line.split() for line in lines[3:]]
    assert sum(int(row[1]) if "rows" in row else 1 for row in rows) == 132


@pytest.mark.parametrize(("elements", "base"), [(0, 0), (40, 0), (10**9, 0), (64, 128)])
def test_words_outside_of_their_array_are_drawn_too(elements: int, base: int) -> None:
    """As of a dynamic array without bytes; however many rows are empty, they take a line."""
    array = SharedArray("dyn", (elements,), 4, base)
    lines = [line.plain for line in conflict_picture(array, access("load", tuple(range(0, 256, 8)), 4), 0)]
    assert marks(lines) == dict.fromkeys(range(0, 32, 2), 2)
    assert len(lines) < 8


@given(
    lanes=st.lists(st.none() | st.integers(0, 255), min_size=1, max_size=32).filter(any),
    width=st.sampled_from([2, 4, 8, 16]),
    columns=st.integers(1, 300),
    pad=st.integers(0, 4),
    kind=st.sampled_from(["load", "store", "atomic"]),
    flat=st.booleans(),
)
def test_every_picture_fits_and_marks_as_many_words_of_a_bank_as_it_has_to_serve(
    lanes: list[int | None], width: int, columns: int, pad: int, kind: str, flat: bool
) -> None:
    itemsize = min(width, 8)
    total = columns + pad
    rows = -(-255 * width // (total * itemsize)) + 1
    array = SharedArray("shared0", (rows * total,) if flat else (rows, total), itemsize, 0)
    addresses = tuple(None if lane is None else lane * width for lane in lanes)
    lines = [line.plain for line in conflict_picture(array, access(kind, addresses, width), pad)]
    assert max(map(len, lines)) <= SCREEN
    if lines[2:] and width <= 4:  # served in one part
        words = Counter(word % 32 for word in {address // 4 for address in addresses if address is not None})
        assert marks(lines) == {bank: count for bank, count in words.items() if count > 1}


def test_tables_in_a_pipe_are_as_wide_as_what_they_hold() -> None:
    piped = Console(file=io.StringIO(), width=SCREEN)
    draw(piped, [table("heading", ["a", "b"], {"name": str, "again": str})])
    assert isinstance(piped.file, io.StringIO)
    assert max(len(line.rstrip("\n")) for line in piped.file.getvalue().splitlines()) < 20
