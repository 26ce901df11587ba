"""Numbers as people type them: 4k and 2^20 elements, 1e3, 1_024, 10s, 2 min, 0.5%.

Each function takes text or a number, and raises ValueError with what to write instead.
"""

from __future__ import annotations

import math
import re

WHOLE = r"\d{1,18}(?:_\d{1,18}){0,6}(?:[eE]\+?\d{1,2}|(?:\^|\*\*)\d{1,2}|[kKmMgG]i?)?"
"""A pattern for whole numbers: digits, perhaps with an exponent of ten, a power, or a binary factor."""

_PARTS = re.compile(
    r"(?P<digits>[\d_]+)(?:[eE]\+?(?P<ten>\d+)|(?:\^|\*\*)(?P<power>\d+)|(?P<factor>[kKmMgG])i?)?", re.ASCII
)
_FACTORS = {"k": 2**10, "m": 2**20, "g": 2**30}
_SECONDS = {"": 1.0, "s": 1.0, "ms": 1e-3, "min": 60.0, "m": 60.0, "h": 3600.0}
_UNIT = re.compile(r"(?P<number>[-+.\deE_]+?)\s*(?P<unit>ms|s|min|m|h|)", re.ASCII)


def whole(text: str) -> int:
    """The number that a text of the pattern ``WHOLE`` means: 4k is 4096, 1e3 is 1000, 2^20 is 1048576."""
    match = _PARTS.fullmatch(text) if re.fullmatch(WHOLE, text, re.ASCII) else None
    if match is None:
        raise ValueError("is not a whole number; write 1024, 4k or 1e3")
    number = int(match["digits"])
    power: int = number ** int(match["power"] or 1) * 10 ** int(match["ten"] or 0)
    return power * _FACTORS.get((match["factor"] or "").lower(), 1)


def size(value: object) -> int:
    """A whole number of at least 1."""
    number = whole(str(value))
    if number < 1:
        raise ValueError("is below 1")
    return number


def seconds(value: object) -> float:
    """A duration: 10, "10s", "500 ms", "2min", "1h"."""
    match = _UNIT.fullmatch(value.strip()) if isinstance(value, str) else None
    number = _finite(match["number"] if match else value)
    if number is None:
        raise ValueError("is not a duration; write 10, 10s, 500ms or 2min")
    return number * _SECONDS[match["unit"] if match else ""]


def capability(value: object) -> str:
    """A compute capability: 9.0, sm_90, sm_90a, sm90 and 90 are the same."""
    match = re.fullmatch(r"(?:(?:sm|compute)_?)?(\d{1,2}?)\.?(\d)[af]?", str(value).strip().lower(), re.ASCII)
    if match is None:
        raise ValueError("is not a compute capability; write 9.0 or sm_90")
    return f"{match[1]}.{match[2]}"


def percent(value: object) -> float:
    """A percentage: 0.5 and "0.5%" are the same."""
    number = _finite(value.strip().removesuffix("%") if isinstance(value, str) else value)
    if number is None:
        raise ValueError("is not a percentage; write 0.5 or 0.5%")
    return number


def _finite(value: object) -> float | None:
    if not isinstance(value, (str, int, float)) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
