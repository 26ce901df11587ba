"""Register bank conflicts: their cost in a main loop of single-precision multiply-adds, from its machine code.

The register file has two banks, one of even and one of odd registers. Each delivers one operand of a warp per cycle,
but a multiply-add has three operands and could issue every cycle. An operand with ``.reuse`` is kept for the next
instruction if that reads the same register in the same slot. An instruction whose reads take more than two cycles after
its issue delays the next one.

NVIDIA documents none of this. Two banks were found by timing, for compute capability 7.0 first (Jia, Maggioni, Staiger
and Scarpazza, "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking", 2018). The two cycles were fitted
to one kernel on compute capability 9.0, so the model is valid only there. It counts only reads by multiply-adds.
Measurements: results/reference/notes/register_bank_conflicts.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

CAPABILITY = "9.0"
"""The compute capability for which the model was checked against hardware counters."""

_OPCODE, _FFMA = 0xFFF, 0x223
_OPERATION, _BRANCH = 0x1FF, 0x147  # BRA, and from compute capability 10.0 on BRA.U, by a predicate of the warp
_NO_REGISTER = 255  # RZ, which reads as zero
_BANKS = 2
_DEPTH = 2
"""Cycles that an instruction's reads may take before the next one waits; fitted to the loop of ``unrolled``."""

Instruction = tuple[int, int]
"""The lower and the upper 64 bits."""


@dataclass(frozen=True, slots=True)
class MainLoop:
    """A loop: its instructions, the multiply-adds among them, and the cycles that a warp needs to issue them."""

    instructions: int
    multiply_adds: int
    cycles: int

    @property
    def bound(self) -> float:
        """The share of the arithmetic peak that the loop can reach."""
        return self.multiply_adds / self.cycles


def main_loop(code: Sequence[Instruction]) -> MainLoop | None:
    """The loop with the most single-precision multiply-adds, of those that hold no other; None if none has any."""
    ends = ((target(place, word), place + 1) for place, word in enumerate(code))
    loops = [(start, end) for start, end in ends if start < end - 1 and _multiply_adds(code[start:end])]
    # Loops are found in the order of their ends, so one that holds others comes after them.
    inner = [
        (start, end) for number, (start, end) in enumerate(loops) if all(first < start for first, _ in loops[:number])
    ]
    loop = max((code[start:end] for start, end in inner), key=_multiply_adds, default=())
    count = _multiply_adds(loop)
    return MainLoop(len(loop), count, cycles(loop)) if count else None


def cycles(code: Sequence[Instruction]) -> int:
    """Cycles that a warp needs to issue instructions if it waits only for register bank conflicts."""
    now = 0
    done = [0] * _BANKS
    kept: dict[int, int] = {}
    for word in code:
        read, kept = operands(word, kept)
        for register in read:
            done[register % _BANKS] = max(done[register % _BANKS], now) + 1
        now += 1 + max(0, max(done) - now - _DEPTH)
    return now


def operands(word: Instruction, kept: dict[int, int]) -> tuple[set[int], dict[int, int]]:
    """Registers that a multiply-add reads from the banks, and those kept for reuse, by operand slot."""
    low, high = word
    if low & _OPCODE != _FFMA:
        return set(), {}
    places = dict(enumerate((low >> 24 & 0xFF, low >> 32 & 0xFF, high & 0xFF)))
    read = {register for place, register in places.items() if kept.get(place) != register} - {_NO_REGISTER}
    return read, {place: register for place, register in places.items() if high >> 58 + place & 1}


def _multiply_adds(code: Sequence[Instruction]) -> int:
    return sum(low & _OPCODE == _FFMA for low, _ in code)


def target(place: int, word: Instruction) -> int:
    """The index of a branch's target; for other instructions, that of the next one.

    It is that of compute capability 9.0 and later; before, the distance is 256 times less.
    """
    low, high = word
    if low & _OPERATION != _BRANCH:
        return place + 1
    # The offset counts 4-byte words from the next instruction: the lowest 8 bits, then 48 signed bits.
    upper = low >> 34 | (high & 0x3FFFF) << 30
    offset = (upper - (upper >> 47 << 48)) << 8 | low >> 16 & 0xFF
    return place + 1 + offset // 4
