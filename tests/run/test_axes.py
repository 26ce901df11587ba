from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smembench.model.case import Block
from smembench.model.errors import UsageError
from smembench.run.axes import parse_blocks, parse_ints, parse_names, unknown

NAMES = ("copyGmem", "naiveGmem", "transposeSmem")
sizes = st.integers(1, 3000)
ranges = st.builds("{}:{}:{}".format, st.integers(1, 50), st.integers(50, 3000), st.sampled_from(["+7", "3", "*2"]))
items = st.one_of(sizes.map(str), ranges)


@given(sizes, sizes, st.integers(1, 500), st.sampled_from(["", "+"]))
def test_a_range_adds_its_step_up_to_its_end(first: int, length: int, step: int, sign: str) -> None:
    last = first + length
    assert parse_ints(f"{first}:{last}:{sign}{step}", name="n") == tuple(range(first, last + 1, step))


@given(sizes, st.integers(0, 5000), st.integers(2, 9))
def test_a_range_multiplies_by_its_factor_up_to_its_end(first: int, length: int, factor: int) -> None:
    last = first + length
    powers = (first * factor**exponent for exponent in range(20))
    assert parse_ints(f"{first}:{last}:*{factor}", name="n") == tuple(v for v in powers if v <= last)


def test_a_range_without_a_step_is_every_integer() -> None:
    assert parse_ints("3:6", name="n") == (3, 4, 5, 6)


@given(st.lists(items, min_size=1, max_size=4))
def test_a_list_is_its_items_in_order_without_repeats(texts: list[str]) -> None:
    separately = [value for text in texts for value in parse_ints(text, name="n")]
    assert parse_ints(" , ".join(texts), name="n") == tuple(dict.fromkeys(separately))


@pytest.mark.parametrize(
    ("text", "values"),
    [("4k", (4096,)), ("1e3", (1000,)), ("1_024", (1024,)), ("2^20", (2**20,)), ("1k:4k:*2", (1024, 2048, 4096))],
)
def test_numbers_are_read_as_people_write_them(text: str, values: tuple[int, ...]) -> None:
    assert parse_ints(text, name="n") == values


@given(sizes)
def test_one_number_is_a_square_block(side: int) -> None:
    assert parse_blocks(str(side)) == (Block(side, side),)


@given(st.lists(st.builds(Block, sizes, sizes), min_size=1))
def test_blocks_round_trip(blocks: list[Block]) -> None:
    assert parse_blocks(",".join(map(str, blocks))) == tuple(dict.fromkeys(blocks))


@given(st.lists(st.sampled_from(NAMES), min_size=1), st.sampled_from([str.lower, str.upper, str.title]))
def test_names_are_matched_without_regard_to_case(names: list[str], change: Callable[[str], str]) -> None:
    written = change(", ".join(names))
    assert parse_names(written, NAMES, name="kernel", what="kernel") == tuple(dict.fromkeys(names))


def outcome(parse: Callable[..., Iterable[Any]], text: str) -> Any:
    """What the text stands for, or the message that refuses it."""
    try:
        return parse(text, name="--axis")
    except UsageError as error:
        return str(error)


@given(st.text(st.sampled_from("0123456789:*+-,x. keM^_"), max_size=12) | st.text(max_size=8))
def test_any_text_is_positive_integers_or_an_error_that_quotes_it(text: str) -> None:
    result = outcome(parse_ints, text)
    assert f"--axis {text!r}" in result if isinstance(result, str) else min(result) >= 1


@given(st.text(st.sampled_from("0123456789xX×, "), max_size=12) | st.text(max_size=8))
def test_any_text_is_blocks_or_an_error_that_quotes_it(text: str) -> None:
    result = outcome(parse_blocks, text)
    assert f"--axis {text!r}" in result if isinstance(result, str) else min(map(min, result)) >= 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not a positive integer"),
        ("0", "below the least"),
        ("-3", "below the least"),
        ("12,x", "'x' is not a positive integer"),
        ("1.5", "not a positive integer"),
        ("1e18", "not a positive integer"),
        ("9^99", "not a positive integer"),
        ("1:1e30", "not a positive integer"),
        ("8:4", "ends before it begins"),
        ("1:9:*1", "never reaches its end"),
        ("1:9:+0", "never reaches its end"),
        ("0:9:*2", "never reaches its end"),
        ("1:1000000", "more than 10000 values"),
    ],
)
def test_bad_integers_say_why(text: str, reason: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_ints(text, name="--n")
    assert f"--n {text!r}" in str(caught.value)
    assert reason in str(caught.value)


@pytest.mark.parametrize("text", ["", "0", "0x32", "32x0", "32x32x1", "-4x4", "32 x 32", "ax4", "32x32,"])
def test_bad_blocks_say_what_to_write(text: str) -> None:
    with pytest.raises(UsageError, match=f"--block {text!r}.*write 32x32"):
        parse_blocks(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("fp32", "float32"), ("FP16", "float16"), ("half", "float16"), ("bf16", "bfloat16"), ("fp8", "float8_e4m3")],
)
def test_element_types_are_taken_as_they_are_spelled_elsewhere(text: str, expected: str) -> None:
    allowed = ("float32", "float16", "bfloat16", "tf32", "float8_e4m3")
    assert parse_names(text, allowed, name="--dtype", what="element type") == (expected,)


def test_a_spelling_of_a_type_that_is_not_allowed_is_refused() -> None:
    with pytest.raises(UsageError, match="'bf16': no such element type"):
        parse_names("bf16", ("float32",), name="--dtype", what="element type")


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("tild", "; did you mean tiled?"),
        ("Unroled", "; did you mean unrolled?"),
        ("unr", "; did you mean unrolled?"),
        ("nope", ""),
        ("cpu", ""),
        ("u", ""),
        ("", ""),
    ],
)
def test_only_a_near_miss_or_a_beginning_is_suggested(written: str, hint: str) -> None:
    names = ("tiled", "unrolled", "cupy")
    assert unknown(written, names, "kernel") == f"no such kernel{hint} (there are: tiled, unrolled, cupy)"
