"""Tokens in the text of a launch for objects of this process, such as a function or an array."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

_TOKEN = re.compile(r".*\$(\d+)", re.DOTALL)
_numbers = count()
_values: dict[int, Any] = {}


class Tokens:
    """Tokens for values, while ``tokens`` lasts."""

    def __init__(self) -> None:
        self._own: list[int] = []

    def of(self, value: Any, name: str) -> str:
        """A token, which reads ``name $7``."""
        number = next(_numbers)
        _values[number] = value
        self._own.append(number)
        return f"{name} ${number}"

    def drop(self) -> None:
        """Forget the values."""
        for number in self._own:
            _values.pop(number, None)


@contextmanager
def tokens() -> Iterator[Tokens]:
    """Make tokens, whose values are forgotten at the end."""
    made = Tokens()
    try:
        yield made
    finally:
        made.drop()


def is_token(text: str) -> bool:
    """True if a text is a token."""
    return _TOKEN.fullmatch(text) is not None


def name_of(text: str) -> str:
    """The name in a token; other text as it is."""
    return text.rpartition(" $")[0] if is_token(text) else text


def value_of(token: str) -> Any:
    """The value of a token; of another process's it is gone.

    Raises:
        KeyError: then.
    """
    match = _TOKEN.fullmatch(token)
    assert match is not None, token
    return _values[int(match[1])]
