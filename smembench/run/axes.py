"""Parsing of lists and ranges, with which one flag or TOML value gives several values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from smembench.model.case import Block
from smembench.model.errors import UsageError
from smembench.model.formats import element_type
from smembench.model.numbers import WHOLE, whole

_RANGE = re.compile(rf"(?P<first>{WHOLE}):(?P<last>{WHOLE})(?::(?P<op>[*+]?)(?P<step>{WHOLE}))?", re.ASCII)
_MAX_VALUES = 10_000
_TOO_LARGE = 10**18
_NEAR = 0.65
"""The least similarity of a name that is suggested: nn is near n, cpu is not near cupy."""
_MOST_NAMES = 40
"""Most names that an error lists; of more it has the most similar ones."""


def split(text: str) -> list[str]:
    """Split a comma-separated list, dropping spaces around the items."""
    return [item.strip() for item in text.split(",")]


def parse_ints(text: str, *, name: str, least: int = 1) -> tuple[int, ...]:
    """Expand ``"512,1024:8192:*2"`` into integers, in order, without repeats.

    An item is a number, ``first:last`` (every integer), ``first:last:+step`` or ``first:last:*factor``; ``last`` is
    included if a step reaches it. Numbers may be written as 4k (4096), 1e3, 2^20 or 1_024.

    Raises:
        UsageError: for anything else, for values below ``least``, and for ranges that never end.
    """
    values: list[int] = []
    for item in split(text):
        for value in _expand(item, text, name):
            if value < least:
                raise UsageError(f"{name} {text!r}: {value} is below the least allowed value {least}")
            values.append(value)
            if len(values) > _MAX_VALUES:
                raise UsageError(f"{name} {text!r}: more than {_MAX_VALUES} values; use a larger step")
    return tuple(dict.fromkeys(values))


def _expand(item: str, text: str, name: str) -> Iterator[int]:
    sign = -1 if item.startswith("-") else 1
    number = re.fullmatch(rf"[+-]?({WHOLE})", item, re.ASCII)
    if number and (value := whole(number[1])) < _TOO_LARGE:
        yield sign * value
        return
    match = _RANGE.fullmatch(item)
    if match is None or whole(match["last"]) >= _TOO_LARGE:
        raise UsageError(
            f"{name} {text!r}: {item!r} is not a positive integer or a range, below 10^18; "
            "write 1024, 4k, 512,1024 or 1024:8192:*2"
        )
    first, last = whole(match["first"]), whole(match["last"])
    op, step = match["op"] or "+", whole(match["step"] or "1")
    if last < first:
        raise UsageError(f"{name} {text!r}: the range {item!r} ends before it begins")
    if step < (2 if op == "*" else 1) or (op == "*" and first < 1):
        raise UsageError(f"{name} {text!r}: the range {item!r} never reaches its end")
    value = first
    while value <= last:
        yield value
        value = value * step if op == "*" else value + step


def parse_blocks(text: str, *, name: str = "--block") -> tuple[Block, ...]:
    """Expand ``"32x8,16"`` into blocks of 32 by 8 and 16 by 16 threads.

    Raises:
        UsageError: if an item is neither ``XxY`` nor the side of a square, at least 1.
    """
    blocks = []
    for item in split(text):
        match = re.fullmatch(r"(\d{1,18})(?:[xX×](\d{1,18}))?", item, re.ASCII)
        if match is None or not (block := Block(int(match[1]), int(match[2] or match[1]))).x or not block.y:
            raise UsageError(f"{name} {text!r}: {item!r} is not a block of threads; write 32x32, 16 or 32x8,16x16")
        blocks.append(block)
    return tuple(dict.fromkeys(blocks))


def parse_names(text: str, allowed: Sequence[str], *, name: str, what: str) -> tuple[str, ...]:
    """Expand a list of names, ignoring case; element types may be spelled as elsewhere, such as fp32.

    Raises:
        UsageError: for a name that is not in ``allowed``, with the most similar one suggested, and for what is no text.
    """
    if not isinstance(text, str):  # from Python
        raise UsageError(f"{name} {text!r}: is no text; give a name, such as {allowed[0]!r}")
    by_lower = {known.lower(): known for known in allowed}
    chosen = []
    for item in split(text):
        known = by_lower.get(item.lower()) or by_lower.get(element_type(item))
        if known is None:
            raise UsageError(f"{name} {item!r}: {unknown(item, allowed, what)}")
        chosen.append(known)
    return tuple(dict.fromkeys(chosen))


def parse_kernels(text: str, allowed: Sequence[str], *, name: str = "--kernel", what: str) -> tuple[str, ...]:
    """Expand a list of kernels' names.

    Raises:
        UsageError: for an unknown name, or for a mistake in a kernel file, which may be the one that has the kernel.
    """
    try:
        return parse_names(text, allowed, name=name, what=what)
    except UsageError:
        from smembench.kernels import registry  # imports Numba

        registry.check_files()
        raise


def unknown(item: str, allowed: Sequence[str], what: str) -> str:
    """The message about a name that does not exist: a near miss, and all that exist if they are few."""
    from difflib import get_close_matches  # only a mistake needs it

    by_lower = {known.lower(): known for known in allowed}
    longer = [name for name in by_lower if len(item) > 2 and name.startswith(item.lower())]
    near = get_close_matches(item.lower(), by_lower, n=1, cutoff=_NEAR) or get_close_matches(
        item.lower(), longer, n=1, cutoff=0
    )
    hint = f"; did you mean {by_lower[near[0]]}?" if near else ""
    if len(allowed) <= _MOST_NAMES:
        there = f"there are: {', '.join(allowed)}"
    else:
        similar = [by_lower[name] for name in get_close_matches(item.lower(), by_lower, n=10, cutoff=0)]
        there = f"the most similar of {len(allowed)}: {', '.join(similar)}"
    return f"no such {what}{hint} ({there})"
