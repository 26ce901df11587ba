"""Loads and stores of machine code: width, memory, and whether every warp issues them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from smembench.toolchains.memory_instructions import (
    UNREAD,
    Guard,
    MemoryInstruction,
    Region,
    accesses,
    guards,
    regions,
)
from smembench.toolchains.register_bank_conflicts import Instruction

LDS, STS, LDG, STG, LDGSTS, LDSM, FFMA = 0x984, 0x388, 0x981, 0x986, 0xFAE, 0x83B, 0x223
EXIT, BRX, CALL, RET = 0x94D, 0x949, 0x944, 0x950
ISETP, IMAD = 0x20C, 0x224


def memory(opcode: int, width: int = 4, guard: int = 7) -> Instruction:
    return opcode | guard << 12, width << 9


def counted(code: Sequence[Instruction]) -> Counter[MemoryInstruction]:
    return Counter(access for word in code for access in accesses(word))


def region_of_access(code: Sequence[Instruction]) -> Region:
    (region,) = (region for word, region in zip(code, regions(code), strict=True) if [*accesses(word)])
    return region


def branch(offset: int) -> Instruction:
    """To the instruction so many after the next one."""
    words = 4 * offset % 2**56
    low, upper = words & 0xFF, words >> 8
    return 0x947 | low << 16 | (upper & 0x3FFFFFFF) << 34, upper >> 30


@pytest.mark.parametrize(
    ("instruction", "expected"),
    [
        (memory(LDS, 6), MemoryInstruction("shared", "load", 16)),
        (memory(STS, 5), MemoryInstruction("shared", "store", 8)),
        (memory(LDG, 2), MemoryInstruction("global", "load", 2)),
        (memory(LDSM), MemoryInstruction("shared", "load", UNREAD)),
        (memory(STG, 1), MemoryInstruction("global", "store", 1)),
    ],
)
def test_the_width_of_an_access(instruction: Instruction, expected: MemoryInstruction) -> None:
    assert counted([(FFMA, 0), instruction, instruction]) == {expected: 2}


@pytest.mark.parametrize("guard", [0, 6, 8, 14])
def test_a_predicate_guards_an_access(guard: int) -> None:
    assert counted([memory(STS, guard=guard)]) == {MemoryInstruction("shared", "store", 4, guarded=True): 1}


def test_what_is_issued_and_never_runs_is_told() -> None:
    assert counted([memory(LDS, guard=15)]) == {MemoryInstruction("shared", "load", 4, guarded=True, never=True): 1}


def test_instructions_of_a_region_are_issued_equally_often() -> None:
    """Two accesses before a loop, one in it, one that a branch in it skips, and one after that."""
    code = [memory(LDS), memory(STS), memory(LDS), branch(1), memory(LDS), memory(STS), branch(-5), (EXIT, 0)]
    before, also_before, start, _, skipped, end, *_ = regions(code)
    assert before == also_before == frozenset()
    assert start == end != before
    assert skipped > start


@pytest.mark.parametrize(
    ("between", "since"),
    [
        pytest.param((ISETP, 1 << 17 | 7 << 20), 1, id="set"),
        pytest.param((ISETP, 7 << 17 | 1 << 20), 1, id="set as the second"),
        pytest.param((ISETP, 2 << 17 | 7 << 20), -1, id="another one is set"),
        pytest.param((IMAD, 7 << 17 | 1 << 20), -1, id="it sets one at most"),
        pytest.param((STG, 1 << 20), -1, id="a store sets none"),
        pytest.param((CALL, 0), 1, id="a function may set any"),
        pytest.param((0x004, 0), 1, id="it is not known"),
    ],
)
def test_a_guard_is_another_after_its_predicate_may_have_been_set(between: Instruction, since: int) -> None:
    result = guards([memory(LDS, guard=9), between, memory(STG, guard=9), memory(STG)])
    assert [result[0], *result[2:]] == [Guard(9), Guard(9, since), Guard()]


def test_an_asynchronous_copy_is_a_load_and_a_store() -> None:
    assert counted([memory(LDGSTS, 6)]) == {
        MemoryInstruction("global", "load", UNREAD): 1,
        MemoryInstruction("shared", "store", UNREAD): 1,
    }


@pytest.mark.parametrize(
    ("code", "once"),
    [
        pytest.param([memory(LDS), (EXIT, 0)], True, id="straight"),
        pytest.param([(EXIT, 0), memory(LDS)], False, id="after an exit"),
        pytest.param([branch(1), memory(LDS)], False, id="skipped"),
        pytest.param([branch(1), (FFMA, 0), memory(LDS)], True, id="joined"),
        pytest.param([memory(LDS), branch(-2)], False, id="repeated"),
        pytest.param([memory(LDS), (FFMA, 0), branch(-2)], True, id="before a loop"),
        pytest.param([memory(LDS), (EXIT, 0), branch(-3)], False, id="repeated after an exit"),
        pytest.param([branch(0), memory(LDS)], False, id="a branch to anywhere"),
        pytest.param([memory(LDS), (BRX, 0)], False, id="a jump to anywhere"),
        pytest.param([(CALL, 0), memory(LDS), (EXIT, 0), (RET, 0)], True, id="after a call"),
        pytest.param([(CALL, 0), (RET, 0), memory(LDS)], False, id="after a return"),
    ],
)
def test_whether_every_warp_issues_it_once(code: list[Instruction], once: bool) -> None:
    assert (not region_of_access(code)) is once


def test_a_branch_that_seems_to_leave_the_code_claims_nothing_of_what_it_may_skip() -> None:
    """As those before compute capability 9.0 do, which count in other units: tiledHalf's for 8.0."""
    forward, back = (0x82000009947, 0xFD80003800000), (0xFFFFF94000001947, 0xFEA000383FFFF)
    for code in ([forward, memory(LDS)], [memory(LDS), back]):
        assert region_of_access(code)
