"""Loads and stores of machine code: width, memory, and whether every warp issues them."""

from __future__ import annotations

import pytest

from smembench.toolchains.memory_instructions import ASYNCHRONOUS, MemoryInstruction, memory_instructions
from smembench.toolchains.register_bank_conflicts import Instruction

LDS, STS, LDG, STG, LDGSTS, EXIT, FFMA = 0x984, 0x388, 0x981, 0x986, 0xFAE, 0x94D, 0x223


def memory(opcode: int, width: int = 4, guard: int = 7) -> Instruction:
    return opcode | guard << 12, width << 9


def branch(offset: int) -> Instruction:
    """To the instruction so many after the next one."""
    words = 4 * offset % 2**56
    low, upper = words & 0xFF, words >> 8
    return 0x947 | low << 16 | (upper & 0x3FFFFFFF) << 34, upper >> 30


@pytest.mark.parametrize(
    ("instruction", "expected"),
    [
        (memory(LDS, 6), MemoryInstruction("shared", "load", 16, once=True)),
        (memory(STS, 5), MemoryInstruction("shared", "store", 8, once=True)),
        (memory(LDG, 2), MemoryInstruction("global", "load", 2, once=True)),
        (memory(STG, 1), MemoryInstruction("global", "store", 1, once=True)),
    ],
)
def test_the_width_of_an_access(instruction: Instruction, expected: MemoryInstruction) -> None:
    assert memory_instructions([(FFMA, 0), instruction, instruction]) == {expected: 2}


@pytest.mark.parametrize("guard", [0, 6, 8, 15])
def test_a_predicate_guards_an_access(guard: int) -> None:
    """Bit 15 negates it: 15 is the negation of always."""
    assert memory_instructions([memory(STS, guard=guard)]) == {
        MemoryInstruction("shared", "store", 4, guarded=True, once=True): 1
    }


def test_an_asynchronous_copy_is_a_load_and_a_store() -> None:
    assert memory_instructions([memory(LDGSTS, 6)]) == {
        MemoryInstruction("global", "load", ASYNCHRONOUS, once=True): 1,
        MemoryInstruction("shared", "store", ASYNCHRONOUS, once=True): 1,
    }


@pytest.mark.parametrize(
    ("code", "once"),
    [
        ([memory(LDS), (EXIT, 0)], True),
        ([(EXIT, 0), memory(LDS)], False),
        ([branch(1), memory(LDS)], False),
        ([branch(1), (FFMA, 0), memory(LDS)], True),
        ([memory(LDS), branch(-2)], False),
        ([memory(LDS), (FFMA, 0), branch(-2)], True),
        ([branch(0), memory(LDS)], False),
    ],
    ids=["straight", "after an exit", "skipped", "joined", "repeated", "before a loop", "a branch to anywhere"],
)
def test_whether_every_warp_issues_it_once(code: list[Instruction], once: bool) -> None:
    (found,) = memory_instructions(code)
    assert found.once is once


def test_a_branch_that_seems_to_leave_the_code_claims_nothing_of_what_it_may_skip() -> None:
    """As those before compute capability 9.0 do, which count in other units: tiledHalf's for 8.0."""
    forward, back = (0x82000009947, 0xFD80003800000), (0xFFFFF94000001947, 0xFEA000383FFFF)
    for code in ([forward, memory(LDS)], [memory(LDS), back]):
        (found,) = memory_instructions(code)
        assert not found.once
