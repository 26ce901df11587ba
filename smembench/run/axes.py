"""Parsing of lists and ranges, with which one flag or TOML value gives several values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from smembench.model.case import Block
from smembench.model.errors import UsageError

_NUMBER = r"\d{1,18}"
_RANGE = re.compile(rf"(?P<first>{_NUMBER}):(?P<last>{_NUMBER})(?::(?P<op>[*+]?)(?P<step>{_NUMBER}))?", re.ASCII)
_MAX_VALUES = 10_000


def split(text: str) -> list[str]:
    """Split a comma-separated list, dropping spaces around the items."""
    return [item.strip() for item in text.split(",")]


def parse_ints(text: str, *, name: str, least: int = 1) -> tuple[int, ...]:
    """Expand ``"512,1024:8192:*2"`` into integers, in order, without repeats.

    An item is a number, ``first:last`` (every integer), ``first:last:+step`` or ``first:last:*factor``; ``last`` is
    included if a step reaches it.

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
    if re.fullmatch(rf"[+-]?{_NUMBER}", item, re.ASCII):
        yield int(item)
        return
    match = _RANGE.fullmatch(item)
    if match is None:
        raise UsageError(
            f"{name} {text!r}: {item!r} is not a positive integer or a range, below 10^18; "
            "write 1024, 512,1024 or 1024:8192:*2"
        )
    first, last = int(match["first"]), int(match["last"])
    op, step = match["op"] or "+", int(match["step"] or 1)
    if last < first:
        raise UsageError(f"{name} {text!r}: the range {item!r} ends before it begins")
    if step < (2 if op == "*" else 1) or (op == "*" and first < 1):
        raise UsageError(f"{name} {text!r}: the range {item!r} never reaches its end")
    value = first
    while value <= last:
        yield value
        value = value * step if op == "*" else value + step


def parse_blocks(text: str, *, name: str = "--block") -> tuple[Block, ...]:
    """Expand ``"32x32,16x16"`` into blocks.

    Raises:
        UsageError: if an item is not ``XxY`` with both at least 1.
    """
    blocks = []
    for item in split(text):
        match = re.fullmatch(rf"({_NUMBER})[xX×]({_NUMBER})", item, re.ASCII)
        if match is None or not (block := Block(int(match[1]), int(match[2]))).x or not block.y:
            raise UsageError(f"{name} {text!r}: {item!r} is not a block of threads; write 32x32 or 32x32,16x16")
        blocks.append(block)
    return tuple(dict.fromkeys(blocks))


def parse_names(text: str, allowed: Sequence[str], *, name: str, what: str) -> tuple[str, ...]:
    """Expand a list of names, ignoring case.

    Raises:
        UsageError: for a name that is not in ``allowed``, with the most similar one suggested.
    """
    by_lower = {known.lower(): known for known in allowed}
    chosen = []
    for item in split(text):
        if item.lower() not in by_lower:
            raise UsageError(f"{name} {item!r}: {unknown(item, allowed, what)}")
        chosen.append(by_lower[item.lower()])
    return tuple(dict.fromkeys(chosen))


def parse_kernels(text: str, allowed: Sequence[str], *, name: str = "--kernel", what: str) -> tuple[str, ...]:
    """Expand a list of kernels' names.

    Raises:
        UsageError: for an unknown name; for a mistake in a kernel file, which may have it, if there is one.
    """
    try:
        return parse_names(text, allowed, name=name, what=what)
    except UsageError:
        from smembench.kernels import registry  # imports Numba

        registry.check_files()
        raise


def unknown(item: str, allowed: Sequence[str], what: str) -> str:
    """The message about a name that does not exist: the most similar name, and all that exist."""
    from difflib import get_close_matches  # only a mistake needs it

    by_lower = {known.lower(): known for known in allowed}
    near = get_close_matches(item.lower(), by_lower, n=1, cutoff=0.5)
    hint = f"; did you mean {by_lower[near[0]]}?" if near else ""
    return f"no such {what}{hint} (there are: {', '.join(allowed)})"
