"""Loads and stores in machine code (compute capability 7.0 and later): of which memory, how wide, and for which warps.

NVIDIA publishes no encoding: the bits of width, guard and set predicates were read beside what nvdisasm showed of
programs for 7.5 to 12.1 (results/reference/sass.csv).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from smembench.toolchains.mnemonics import mnemonic
from smembench.toolchains.register_bank_conflicts import Instruction, target

_ACCESSES = {
    "LDS": ("shared", "load"),
    "STS": ("shared", "store"),
    "LDG": ("global", "load"),
    "STG": ("global", "store"),
    "BAR": ("barrier", "barrier"),
    "MEMBAR": ("fence", "fence"),
    "VOTE": ("vote", "vote"),
    "VOTEU": ("vote", "vote"),
}
_UNREAD = {
    **dict.fromkeys(("ATOM", "ATOMG", "RED", "REDG"), (("global", "atomic"),)),
    "LDGSTS": (("global", "load"), ("shared", "store")),
    "LDSM": (("shared", "load"),),
    "STSM": (("shared", "store"),),
}
_WIDTHS = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 8, 6: 16}
"""Bytes by the width's bits, 9 to 11 of the upper 64: unsigned and signed bytes and halves, then 32 to 128 bits."""

_ALWAYS, _NEVER = 7, 15
"""Values of the guard's predicate, bits 12 to 15. ptxas puts loads that never run between asynchronous copies."""
UNREAD = 0
"""The width of instructions into which no others are merged: asynchronous copies, atomics, and those of matrices."""
_ANYWHERE = ("BRX", "BREAK")
"""Instructions after which a warp may be anywhere; calls return, from functions that lie after a program's end."""
_ENDS = ("EXIT", "RET")
_SET_NONE, _SET_ONE = ("LDC", "LDS", "STG", "STS"), ("IMAD", "LEA", "LOP3")
"""Instructions between a load and the store of its value that set no predicate, or one at most. Others are taken to set
two, whatever bits 17 to 19 and 20 to 22 of the upper 64 are in them."""


class MemoryInstruction(NamedTuple):
    """A kind of load, store or atomic, a barrier of the block, a fence, or a vote of the warp.

    Attributes:
        space: ``shared``, ``global``, ``barrier``, ``fence`` or ``vote``.
        kind: ``load``, ``store`` or, of global memory, ``atomic``; for the others as the space.
        width: bytes per lane, or ``UNREAD``.
        guarded: whether a predicate decides for which lanes: a warp issues it without an active lane, too.
        never: whether its predicate is false: a warp issues it, without an active lane.
    """

    space: str
    kind: str
    width: int
    guarded: bool = False
    never: bool = False


def accesses(word: Instruction) -> Iterator[MemoryInstruction]:
    """The load, store or atomic that an instruction is, and both that an asynchronous copy is."""
    low, high = word
    name, guard = mnemonic(low & 0xFFF), low >> 12 & 0xF
    guarded, never = guard != _ALWAYS, guard == _NEVER
    if name in _ACCESSES:
        yield MemoryInstruction(*_ACCESSES[name], _WIDTHS.get(high >> 9 & 7, UNREAD), guarded, never=never)
    for access in _UNREAD.get(name, ()):
        yield MemoryInstruction(*access, UNREAD, guarded, never=never)


Region = frozenset[int]
"""The branches that lead around an instruction, or back before it: their places in the program."""


def regions(code: Sequence[Instruction]) -> list[Region]:
    """The region of each instruction: a warp issues those of a region equally often, those of the empty one once."""
    around: list[set[int]] = [set() for _ in code]
    for place, word in enumerate(code):
        name, next_one, after = mnemonic(word[0] & 0xFFF), place + 1, target(place, word)
        if name in _ANYWHERE or (name == "BRA" and after == next_one):  # one whose target is not in the instruction
            return [frozenset({number}) for number in range(len(code))]
        # Before 9.0 a target is nearer than it is taken to be, so that more than it skips counts as skipped.
        end = len(code) if name in _ENDS else max(next_one, after)
        for skipped in around[max(0, min(next_one, after)) : end]:
            skipped.add(place)
    return [frozenset(branches) for branches in around]


class Guard(NamedTuple):
    """The predicate under which the lanes of a warp run an instruction.

    Attributes:
        predicate: bits 12 to 15: its number, and 8 more if it is negated.
        since: the instruction that may have set it last, by its place in the program.
    """

    predicate: int = _ALWAYS
    since: int = -1


def guards(code: Sequence[Instruction]) -> list[Guard]:
    """The guard of each instruction; equal ones of a region let the same lanes through."""
    result, since = [], [-1] * (_ALWAYS + 1)
    for place, (low, high) in enumerate(code):
        predicate = low >> 12 & 0xF
        result.append(Guard(predicate, since[predicate & 7]))
        name = mnemonic(low & 0xFFF)
        if name == "CALL" or name.startswith("0x"):
            since = [place] * len(since)
        elif name not in _SET_NONE:
            since[high >> 17 & 7] = place
            if name not in _SET_ONE:
                since[high >> 20 & 7] = place
        since[_ALWAYS] = -1
    return result
