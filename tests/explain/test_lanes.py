"""Accesses of a warp by their lanes' offsets, without a kernel."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smembench import UsageError, layout
from smembench.explain.banks import conflict_degree, wavefronts
from smembench.explain.lanes import lanes, offsets_of
from smembench.launches.expression import evaluated, parsed
from smembench.views.explain_cure import cure_line


def of_matrix(lane: int) -> int:
    """The rows of ``ldmatrix`` in a tile of 64 elements per row."""
    return lane % 16 * 64 + lane // 16 * 8


def test_a_layout_has_the_wavefronts_of_its_request() -> None:
    result = layout(of_matrix, itemsize=2, vector=8)
    addresses = [2 * of_matrix(lane) for lane in range(32)]
    assert result.wavefronts == wavefronts(addresses, 16, "load") == 32
    assert result.degree == conflict_degree(addresses, 16, "load") == 8
    for words in ("load            32                  4  8-way", "Bank conflict: load of tile, lanes 0 to 7"):
        assert words in repr(result)


@pytest.mark.parametrize("row", [None, 64])
def test_the_cure_is_free_of_conflicts(row: int | None) -> None:
    result = layout(of_matrix, itemsize=2, vector=8, row=row)
    assert result.cure is not None
    assert "makes the load free of conflicts: 32 -> 4 wavefronts per request" in cure_line(result.cure, python=True)
    tile, best = result.cure.tile, result.cure.best
    assert best is not None

    def cured(lane: int) -> int:
        r, c = divmod(of_matrix(lane), tile.columns)
        return best.layout.place(r, c, tile.columns)  # type: ignore[arg-type, return-value]

    assert layout(cured, itemsize=2, vector=8).degree == 1


def test_the_cure_of_a_load_is_held_against_the_store() -> None:
    both = lanes(lambda lane: lane * 32, lambda lane: lane, row=32)
    assert both.cure is not None
    assert both.cure.best is not None
    assert [access.degree for access in both.accesses] == [32, 1]
    assert [change.after for change in both.cure.changes] == [1, 1]
    diagonal = lanes(lambda lane: lane * 32, lambda lane: lane * 33, row=32)
    assert diagonal.cure is not None
    line = cure_line(diagonal.cure, python=True)
    assert "lowers the conflicts of the load: 32 -> 1 wavefronts per request, 1 without conflicts" in line
    assert "but raises the store: 1 -> 2. No pad of up to 124 bytes per row and no XOR of columns removes all." in line


def test_inactive_lanes_and_lists() -> None:
    assert layout([32 * lane if lane < 16 else None for lane in range(32)]).wavefronts == 16
    assert layout(store=lambda lane: 0).wavefronts == 1


def test_the_last_bytes_of_shared_memory_are_taken() -> None:
    assert layout([232448 // 16 * 4 - 4, 0], vector=4).wavefronts == 1


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: layout(), "layout: give offsets"),
        (lambda: layout(lambda lane: lane, itemsize=4, vector=8), "itemsize 4, vector 8: are 32 bytes per lane"),
        (lambda: layout(lambda lane: lane, vector=4), "load: the offset of lane 1, 1, is not aligned"),
        (lambda: layout(store=lambda lane: 3 - lane), "store: the offset of lane 4, -1, is negative"),
        (lambda: layout(lambda lane: lane / 2), "load: the offset of lane 0 is 0.0; give whole elements"),  # type: ignore[arg-type,return-value]
        (lambda: layout(lambda lane: None), "load: no lane is active"),
        (lambda: layout(range(33)), "load: has 33 offsets; a warp has 32 lanes"),
        (lambda: layout(lambda lane: lane << 40), "lane 1, 1099511627776, is beyond the 232448 bytes of shared memory"),
        (lambda: layout([232448 // 16 * 4], vector=4), "load: the offset of lane 0, 58112, is beyond the 232448 bytes"),
        (lambda: layout(lambda lane: 32 * lane, row=10**11), "row 100000000000: is beyond the 232448 bytes"),
        (lambda: layout(lambda lane: lane * 4, vector=4, row=30), "row 30: give whole vectors of 4 elements"),
    ],
)
def test_what_no_instruction_accesses_is_refused(wrong: Callable[[], object], words: str) -> None:
    with pytest.raises(UsageError, match=re.escape(words)):
        wrong()


NUMBERS = st.integers(-9, 99).map(str)
EXPRESSIONS = st.recursive(
    NUMBERS | st.just("lane"),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "&", "|", "^", "<", "=="]), inner).map(
            lambda parts: "({} {} {})".format(*parts)
        ),
        st.tuples(inner, st.sampled_from(["//", "%", "<<", ">>"]), st.integers(1, 5)).map(
            lambda parts: "({} {} {})".format(*parts)
        ),
        st.tuples(inner, inner, inner).map(lambda parts: "({} if {} else {})".format(*parts)),
        inner.map(lambda text: f"(~{text})"),
    ),
    max_leaves=6,
)


@given(EXPRESSIONS, st.integers(0, 31))
def test_an_expression_has_the_value_that_python_gives_it(text: str, lane: int) -> None:
    assert evaluated(parsed(text), {"lane": lane}) == int(eval(text, {"lane": lane}))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("lane / 2", "has the operator Div, write //"),
        ("lane ** 2", "has the operator Pow"),
        ("__import__('os').system('true')", "it takes integers, their operators and comparisons alone"),
        ("(lambda: 1)()", "it takes integers"),
        ("lane.real", "has lane.real"),
        ("1.5", "has 1.5"),
        ("[lane][0]", "has [lane][0]"),
        ("warp", "names warp; there is only lane"),
        ("lane +", "is no expression"),
        ("", "is no expression"),
        ("1 << 10 ** 9", "has the operator Pow"),
        ("1 << 99", "shifts by 99 bits"),
        ("1 << lane - 1", "shifts by -1 bits"),
        ("(1 << 63) * 4", "has values of more than 64 bits"),
        ("lane % (lane - lane)", "divides by zero"),
        ("(" * 500 + "lane" + ")" * 500, "is no expression"),
    ],
)
def test_only_arithmetic_of_the_lane_is_evaluated(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=re.escape(words)):
        offsets_of(text, "--layout")
