"""Instructions by which the lanes of a warp exchange values: shuffles, votes, matches, reductions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smembench.explain.ptx.program import Instruction
from smembench.model.hardware import WARP

Mask = NDArray[np.bool_]
Operand = Callable[[str, str], Callable[[], Any]]


def across_lanes(given: Instruction, operand: Operand, threads: int) -> Callable[[Mask], Sequence[Any]] | None:
    """A function of the active threads that returns the values of the instruction's targets; None if it is unknown."""
    if given.root == "shfl":
        return _shuffle(given, operand, threads)
    if given.root in ("vote", "activemask", "elect"):
        return _vote(given, operand, threads)
    if given.root in ("match", "redux"):
        return _per_warp(given, operand, threads)
    return None


def _shuffle(given: Instruction, operand: Operand, threads: int) -> Callable[[Mask], Sequence[Any]]:
    """``shfl`` (PTX ISA): the source lane by mode, in segments that the last operand describes."""
    mode = next(part for part in given.parts if part in ("up", "down", "bfly", "idx"))
    value, by, clamp = (operand(text, "u4") for text in given.operands[1:4])
    lane = np.arange(threads) % WARP
    first = np.arange(threads) - lane

    def shuffle(active: Mask) -> Sequence[Any]:
        values, count, limits = (np.broadcast_to(each(), threads).astype(np.int64) for each in (value, by, clamp))
        segment = limits >> 8 & 31
        low = lane & segment
        high = low | (limits & 31 & ~segment)
        at = {"up": lane - count, "down": lane + count, "bfly": lane ^ count, "idx": low | (count & ~segment & 31)}[
            mode
        ]
        inside = at >= high if mode == "up" else at <= high
        source = np.minimum(first + np.where(inside, at, lane), threads - 1)
        return [values[source].astype("u4"), inside]

    return shuffle


def _words(votes: Mask) -> NDArray[np.uint32]:
    """For each thread the bits of its warp's votes, lane 0 the lowest."""
    padded = np.zeros(-(-len(votes) // WARP) * WARP, np.bool_)
    padded[: len(votes)] = votes
    words = (padded.reshape(-1, WARP).astype(np.uint64) << np.arange(WARP, dtype=np.uint64)).sum(1).astype(np.uint32)
    return np.repeat(words, WARP)[: len(votes)]


def _vote(given: Instruction, operand: Operand, threads: int) -> Callable[[Mask], Sequence[Any]]:
    text = given.operands[1] if given.root == "vote" else ""
    value = operand(text, "?") if text else None
    lane = np.arange(threads) % WARP

    def vote(active: Mask) -> Sequence[Any]:
        if given.root == "elect":
            leader = np.zeros(threads, np.uint32)
            words = _words(active)
            for bit in reversed(range(WARP)):
                leader = np.where(words >> np.uint32(bit) & np.uint32(1), np.uint32(bit), leader)
            return [leader, lane == leader]
        if value is None:
            return [_words(active)]
        votes = np.broadcast_to(value(), threads) & active
        if "ballot" in given.parts:
            return [_words(votes)]
        if "any" in given.parts:
            return [_words(votes) != 0]
        every = _words(votes) == _words(active)
        return [every | (_words(votes) == 0)] if "uni" in given.parts else [every]

    return vote


_REDUCED: dict[str, Callable[[Any], Any]] = {
    "add": np.sum, "min": np.min, "max": np.max, "and": np.bitwise_and.reduce, "or": np.bitwise_or.reduce,
    "xor": np.bitwise_xor.reduce,
}  # fmt: skip


def _per_warp(given: Instruction, operand: Operand, threads: int) -> Callable[[Mask], Sequence[Any]]:
    kind = "i4" if "s32" in given.parts else "u8" if "b64" in given.parts else "u4"
    value = operand(given.operands[1], kind)
    reduced = next((_REDUCED[part] for part in given.parts[1:] if part in _REDUCED), None)

    def combine(active: Mask) -> Sequence[Any]:
        values = np.broadcast_to(value(), threads)
        found, alike = np.zeros(threads, "u4"), np.zeros(threads, np.bool_)
        for begin in range(0, threads, WARP):
            warp = np.flatnonzero(active[begin : begin + WARP]) + begin
            if not len(warp):
                continue
            mine = values[warp]
            if given.root == "redux" and reduced is not None:
                found[warp] = np.asarray(reduced(mine)).astype(kind).astype("u4")
                continue
            equal = mine[:, None] == mine[None, :]
            bits = (equal.astype(np.uint64) << (warp - begin).astype(np.uint64)).sum(1).astype("u4")
            alike[warp] = equal.all()
            found[warp] = np.where(equal.all(), bits, 0) if "all" in given.parts else bits
        return [found, alike]

    return combine
