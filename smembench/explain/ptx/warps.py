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
    if given.root in ("match", "redux") and "f32" not in given.parts:
        return _per_warp(given, operand, threads)
    return None


def _shuffle(given: Instruction, operand: Operand, threads: int) -> Callable[[Mask], Sequence[Any]]:
    """``shfl`` (PTX ISA): the source lane by mode, in segments that the last operand describes."""
    mode = next(part for part in given.parts if part in ("up", "down", "bfly", "idx"))
    value, by, clamp = (operand(text, "u4") for text in given.operands[1:4])
    lane = np.arange(threads) % WARP
    first = np.arange(threads) - lane

    def shuffle(active: Mask) -> Sequence[Any]:
        values, count, limits = (np.broadcast_to(read(), threads).astype(np.int64) for read in (value, by, clamp))
        segment, count = limits >> 8 & 31, count & 31
        low = lane & segment
        high = low | (limits & 31 & ~segment)
        lanes = {"up": lane - count, "down": lane + count, "bfly": lane ^ count, "idx": low | (count & ~segment & 31)}
        at = lanes[mode]
        inside = at >= high if mode == "up" else at <= high
        source = np.minimum(first + np.where(inside, at, lane), threads - 1)
        return [values[source].astype("u4"), inside]

    return shuffle


def _words(votes: Mask) -> NDArray[np.uint32]:
    """The bits of its warp's votes for each thread, lane 0 the lowest."""
    padded = np.zeros(-(-len(votes) // WARP) * WARP, np.bool_)
    padded[: len(votes)] = votes
    words = (padded.reshape(-1, WARP).astype(np.uint64) << np.arange(WARP, dtype=np.uint64)).sum(1).astype(np.uint32)
    return np.repeat(words, WARP)[: len(votes)]


def _members(given: Instruction, operand: Operand, threads: int) -> Callable[[], Any]:
    """The lanes with which each thread takes part, as bits: those of the last operand of ``.sync``, or its warp."""
    if "sync" not in given.parts:
        return lambda: np.full(threads, 2**32 - 1, np.uint32)
    members = operand(given.operands[-1], "u4")
    return lambda: np.broadcast_to(members(), threads)


def _vote(given: Instruction, operand: Operand, threads: int) -> Callable[[Mask], Sequence[Any]]:
    value = operand(given.operands[1], "?") if given.root == "vote" else None
    members = _members(given, operand, threads)
    lane = np.arange(threads) % WARP

    def vote(active: Mask) -> Sequence[Any]:
        present = _words(active) & members()
        if given.root == "elect":
            lowest = np.bitwise_count((present & -present) - np.uint32(1)).astype(np.uint32)
            return [lowest, lane == lowest]
        if value is None:
            return [present]
        votes = _words(np.broadcast_to(value(), threads) & active) & present
        if "ballot" in given.parts:
            return [votes]
        if "any" in given.parts:
            return [votes != 0]
        every = votes == present
        return [every | (votes == 0)] if "uni" in given.parts else [every]

    return vote


_REDUCED: dict[str, Callable[[Any], Any]] = {
    "add": np.sum, "min": np.min, "max": np.max, "and": np.bitwise_and.reduce, "or": np.bitwise_or.reduce,
    "xor": np.bitwise_xor.reduce,
}  # fmt: skip


def _per_warp(given: Instruction, operand: Operand, threads: int) -> Callable[[Mask], Sequence[Any]]:
    kind = "i4" if "s32" in given.parts else "u8" if "b64" in given.parts else "u4"
    value = operand(given.operands[1], kind)
    reduced = next((_REDUCED[part] for part in given.parts[1:] if part in _REDUCED), None)

    members = _members(given, operand, threads)

    def combine(active: Mask) -> Sequence[Any]:
        values, groups = np.broadcast_to(value(), threads), members()
        results, alike = np.zeros(threads, "u4"), np.zeros(threads, np.bool_)
        for begin in range(0, threads, WARP):
            warp = np.flatnonzero(active[begin : begin + WARP]) + begin
            for group in np.unique(groups[warp]):
                together = warp[groups[warp] == group]
                mine = values[together]
                if given.root == "redux" and reduced is not None:
                    results[together] = np.asarray(reduced(mine)).astype(kind).astype("u4")
                    continue
                equal = mine[:, None] == mine[None, :]
                bits = (equal.astype(np.uint64) << (together - begin).astype(np.uint64)).sum(1).astype("u4")
                alike[together] = equal.all()
                results[together] = np.where(equal.all(), bits, 0) if "all" in given.parts else bits
        return [results, alike]

    return combine
