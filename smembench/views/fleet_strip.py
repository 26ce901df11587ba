"""Strip plots of a fleet: a mark per place on an axis of deviations from the median, in one line of text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

MARKS = ("·", "•", "●", "×", "┊")
_ASCII_MARKS = (".", "o", "O", "x", "|")
WIDTH = 25
"""Characters of a strip; odd, so that the median is in the middle of one."""
_ENDS = (0.02, 0.05, 0.1)
"""What an axis may reach to on both sides. What lies beyond is drawn at its end, so that the others are told apart."""
_SOME, _MANY = 2, 10
"""Devices from which a mark is larger."""


def reach(deviations: Collection[float]) -> float:
    """The end of an axis for these deviations."""
    farthest = max(map(abs, deviations), default=0.0)
    return next((end for end in _ENDS if farthest <= end), _ENDS[-1])


def axis(end: float) -> str:
    """The heading of strips: both ends and the middle."""
    right = f"+{100 * end:g} %"
    left = f"-{right[1:]}"
    middle = WIDTH // 2
    return f"{left:<{middle}}0{right:>{middle}}"


def strip(deviations: Sequence[float], slow: Sequence[bool], end: float, *, fine: bool) -> str:
    """The deviations of a metric: a mark that grows with the number of devices, and another where one is slow.

    Args:
        deviations: from the median, as fractions.
        slow: of each, whether its device is slow.
        end: of the axis, on both sides.
        fine: whether the output can show ``MARKS``; in ASCII otherwise.
    """
    one, some, many, bad, middle = MARKS if fine else _ASCII_MARKS
    places = [_place(deviation, end) for deviation in deviations]
    counts = Counter(places)
    line = [middle if place == WIDTH // 2 else " " for place in range(WIDTH)]
    for place, count in counts.items():
        line[place] = many if count >= _MANY else some if count >= _SOME else one
    for place, is_slow in zip(places, slow, strict=True):
        if is_slow:
            line[place] = bad
    return "".join(line)


def _place(deviation: float, end: float) -> int:
    share = (min(max(deviation, -end), end) + end) / (2 * end)
    return min(int(share * WIDTH), WIDTH - 1)
