"""Random patterns of a warp's addresses, in elements from the start of an array; None for an inactive lane."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from smembench.model.hardware import WARP

Places = list[int | None]

SPAN = 2048
"""Elements that patterns address."""

_STEPS = (1, 2, 4, 8, 16)


def _permuted(rng: Random) -> Places:
    return [*rng.sample(range(SPAN), WARP)]


def _strided(rng: Random) -> Places:
    stride = rng.randrange(SPAN // WARP)
    first = rng.randrange(SPAN - (WARP - 1) * stride)
    return [first + lane * stride for lane in range(WARP)]


def _few(rng: Random) -> Places:
    among = rng.sample(range(SPAN), rng.randint(1, 8))
    return [rng.choice(among) for _ in range(WARP)]


def _tile(rng: Random) -> Places:
    """Rows of a tile of any pitch, a few columns wide."""
    columns = rng.choice(_STEPS)
    pitch = rng.randint(columns, SPAN // WARP)
    return [lane // columns * pitch + lane % columns for lane in range(WARP)]


def _runs(rng: Random) -> Places:
    """Lanes in groups, each of which shares an element."""
    together = rng.choice(_STEPS)
    among = rng.sample(range(SPAN), WARP)
    return [among[lane // together] for lane in range(WARP)]


def _paired(rng: Random) -> Places:
    """Lanes n and n^x share an element."""
    other = rng.choice(_STEPS)
    among = rng.sample(range(SPAN), WARP)
    return [among[min(lane, lane ^ other)] for lane in range(WARP)]


def _but_one(rng: Random) -> Places:
    """As ``_paired``, but for one lane."""
    result = _paired(rng)
    result[rng.randrange(WARP)] = rng.randrange(SPAN)
    return result


def _paired_by_part(rng: Random) -> Places:
    """Each quarter of the warp shares by n^1 or by n^2, or not at all."""
    others = [rng.choice((1, 2, 2, 1, 0)) for _ in range(4)]
    among = rng.sample(range(SPAN), WARP)
    return [among[min(lane, lane ^ others[lane // 8])] for lane in range(WARP)]


def _paired_inactive(rng: Random) -> Places:
    """Pairs that share, some of which lack a lane."""
    return _without(rng, _paired(rng))


def _inactive(rng: Random) -> Places:
    return _without(rng, rng.choice((_permuted, _strided, _few, _tile))(rng))


def _without(rng: Random, places: Places) -> Places:
    """Random lanes of them, at least one."""
    active = {*rng.sample(range(WARP), rng.randint(1, WARP))}
    return [place if lane in active else None for lane, place in enumerate(places)]


def _every_other(rng: Random) -> Places:
    """Of lanes n and n^x at most one is active."""
    other, among = rng.choice(_STEPS), rng.choice((_permuted, _strided, _tile))(rng)
    lanes = {rng.choice((lane, lane ^ other)) for lane in range(WARP) if lane < lane ^ other}
    active = {*rng.sample(sorted(lanes), rng.randint(1, len(lanes)))}
    return [place if lane in active else None for lane, place in enumerate(among)]


PATTERNS: dict[str, Callable[[Random], Places]] = {
    "permuted": _permuted,
    "strided": _strided,
    "few elements": _few,
    "rows of a tile": _tile,
    "groups share": _runs,
    "n and n^x share": _paired,
    "all but one share": _but_one,
    "parts share": _paired_by_part,
    "pairs, some inactive": _paired_inactive,
    "some inactive": _inactive,
    "n or n^x": _every_other,
}
"""By name: each draws one pattern."""
