"""The model of reads of registers, on instructions put together here."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smembench.toolchains.register_bank_conflicts import Instruction, MainLoop, cycles, main_loop

OTHER: Instruction = (0x918, 0)
ZERO = 255
REGISTERS = st.integers(0, 254)
OPERANDS = st.lists(st.tuples(REGISTERS, REGISTERS, REGISTERS, st.integers(0, 7)), max_size=40)


def multiply_add(a: int, b: int, c: int, reuse: int = 0) -> Instruction:
    """FFMA of registers ``a``, ``b`` and ``c``, of which the bits of ``reuse`` keep some."""
    return 0x223 | a << 24 | b << 32, c | reuse << 58


def branch(words: int) -> Instruction:
    """A branch over so many instructions, counted from the next one."""
    offset = 4 * words
    upper = offset >> 8 & 0xFFFF_FFFF_FFFF
    return 0x947 | (offset & 0xFF) << 16 | (upper << 34) & (1 << 64) - 1, upper >> 30


@pytest.mark.parametrize(
    ("operands", "apart"),
    [
        ((0, 2, 4), 3),  # all in one bank
        ((0, 1, 2), 2),
        ((0, 0, 1), 1),  # the same register once
        ((0, ZERO, 1), 1),
        ((ZERO, ZERO, ZERO), 1),
    ],
)
def test_the_busier_bank_decides_how_often_multiply_adds_leave(operands: tuple[int, int, int], apart: int) -> None:
    code = [multiply_add(*operands)]
    assert cycles(code * 101) - cycles(code * 1) == pytest.approx(100 * apart, abs=2)


def test_an_operand_that_stays_is_not_read_again() -> None:
    kept = [multiply_add(0, 1, 2, reuse=0b001)]
    assert cycles(kept * 101) == 101
    # In another place it is.
    swapped = [multiply_add(0, 1, 2, reuse=0b001), multiply_add(1, 0, 2, reuse=0b001)]
    assert cycles(swapped * 50) > 150


def test_anything_between_forgets_what_stays_and_lets_reads_catch_up() -> None:
    alone = [multiply_add(0, 1, 2, reuse=0b001), OTHER]
    assert cycles(alone * 50) == 100
    assert cycles([OTHER] * 7) == 7
    assert cycles([]) == 0


@given(OPERANDS)
def test_a_piece_takes_its_instructions_and_at_most_its_reads_more(operands: list[tuple[int, int, int, int]]) -> None:
    taken = cycles([multiply_add(*words) for words in operands])
    assert len(operands) <= taken <= 3 * len(operands)
    evens = sum(sum(register % 2 == 0 for register in {a, b, c}) for a, b, c, reuse in operands)
    if not any(reuse for *_, reuse in operands):
        assert taken >= evens - 2


def test_the_loop_with_the_most_multiply_adds_is_the_main_one() -> None:
    first = [OTHER, multiply_add(0, 1, 3), branch(-3)]
    second = [multiply_add(0, 1, 3), multiply_add(0, 1, 3), OTHER, branch(-4)]
    code = [branch(2), *first, *second, branch(-1)]
    assert main_loop(code) == MainLoop(4, 2, 5)
    assert main_loop([multiply_add(0, 1, 2), branch(-1), OTHER]) is None
    assert main_loop([]) is None


def test_a_loop_around_others_is_not_the_main_one() -> None:
    """A loop over tiles may hold a main loop and one for the last steps."""
    main = [multiply_add(0, 1, 3), multiply_add(0, 1, 3), OTHER, branch(-4)]
    last = [multiply_add(0, 1, 3), OTHER, branch(-3)]
    tiles = [OTHER, *main, *last, branch(-9)]
    assert main_loop(tiles) == main_loop(main) == MainLoop(4, 2, 5)


def test_the_bound_is_the_share_of_cycles_that_multiply() -> None:
    assert MainLoop(582, 512, 676).bound == pytest.approx(0.757, abs=0.001)
