"""Register bank conflicts: what they cost a main loop of single-precision multiply-adds, from its machine code.

The register file has a bank of even and one of odd registers. Each delivers one operand of a warp per cycle, while a
multiply-add has three and could issue every cycle. An operand with ``.reuse`` stays for the next instruction that reads
the same register in the same slot. An instruction whose reads take more than two cycles after its issue delays the
next.

NVIDIA documents none of this. Two banks were found by timing, for compute capability 7.0 first (Jia, Maggioni, Staiger
and Scarpazza, "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking", 2018). The two cycles were fitted
to one kernel on compute capability 9.0, so the model is for that alone. Only reads by multiply-adds count.
Measurements: results/reference/notes/register_bank_conflicts.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

CAPABILITY = "9.0"
"""The compute capability on which the model was compared with counters."""

_OPCODE, _FFMA, _BRANCH = 0xFFF, 0x223, 0x947
_NO_REGISTER = 255  # RZ, which reads as zero
_BANKS = 2
_DEPTH = 2
"""Cycles that the reads of an instruction may take before the next one waits; fitted to unrolled's loop."""

Instruction = tuple[int, int]
"""The lower and the upper 64 bits."""


@dataclass(frozen=True, slots=True)
class MainLoop:
    """Instructions of a loop, the multiply-adds among them, and the cycles in which a warp issues them."""

    instructions: int
    multiply_adds: int
    cycles: int

    @property
    def bound(self) -> float:
        """The share of the arithmetic peak that the loop can reach."""
        return self.multiply_adds / self.cycles


def main_loop(code: Sequence[Instruction]) -> MainLoop | None:
    """The loop with the most single-precision multiply-adds, if one has any."""
    loops = [code[target : place + 1] for place, word in enumerate(code) if (target := _target(place, word)) < place]
    loop = max(loops, key=_multiply_adds, default=())
    count = _multiply_adds(loop)
    return MainLoop(len(loop), count, cycles(loop)) if count else None


def cycles(code: Sequence[Instruction]) -> int:
    """Cycles in which a warp issues a sequence of instructions, if it waits for register bank conflicts only."""
    now = 0
    done = [0] * _BANKS
    kept: dict[int, int] = {}
    for word in code:
        read, kept = _operands(word, kept)
        for register in read:
            done[register % _BANKS] = max(done[register % _BANKS], now) + 1
        now += 1 + max(0, max(done) - now - _DEPTH)
    return now


def _operands(word: Instruction, kept: dict[int, int]) -> tuple[set[int], dict[int, int]]:
    """Registers that a multiply-add has to read, and those kept for reuse, by operand slot."""
    low, high = word
    if low & _OPCODE != _FFMA:
        return set(), {}
    places = dict(enumerate((low >> 24 & 0xFF, low >> 32 & 0xFF, high & 0xFF)))
    read = {register for place, register in places.items() if kept.get(place) != register} - {_NO_REGISTER}
    return read, {place: register for place, register in places.items() if high >> 58 + place & 1}


def _multiply_adds(code: Sequence[Instruction]) -> int:
    return sum(low & _OPCODE == _FFMA for low, _ in code)


def _target(place: int, word: Instruction) -> int:
    """The index that a branch jumps to; for another instruction, the next one."""
    low, high = word
    if low & _OPCODE != _BRANCH:
        return place + 1
    # In words of four bytes from the next instruction on: its lowest 8 bits, and 48 with a sign.
    upper = low >> 34 | (high & 0x3FFFF) << 30
    offset = (upper - (upper >> 47 << 48)) << 8 | low >> 16 & 0xFF
    return place + 1 + offset // 4
