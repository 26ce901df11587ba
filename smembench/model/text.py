"""Text to be shown: without characters that control a terminal; durations, counts and errors in words."""

from __future__ import annotations

import json
import re
import signal
import traceback

from smembench.model.errors import SmembenchError

_CONTROLS = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff\ufffe\uffff]"
)
"""Control characters, those that turn the direction of text, line separators, lone surrogates, no characters."""


def visible(text: str, keep: str = "") -> str:
    """The text with control characters as escapes, such as ``\\x1b``; those in ``keep`` stay."""
    return _CONTROLS.sub(lambda sign: sign[0] if sign[0] in keep else ascii(sign[0])[1:-1], text)


def json_text(data: object, indent: int | None = None) -> str:
    """JSON with control characters escaped; parsers read the same value.

    A lone surrogate, which no reader takes, becomes a question mark.
    """
    text = json.dumps(data, indent=indent, ensure_ascii=False).encode(errors="replace").decode()
    return _CONTROLS.sub(lambda sign: sign[0] if sign[0] == "\n" else f"\\u{ord(sign[0]):04x}", text)


def duration(seconds: float) -> str:
    """A time as people say it, with its two largest units: ``4.2 s``, ``53 min 10 s``, ``2 h 5 min``."""
    if seconds < 60:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    small, large, size = ("s", "min", 60) if seconds < 3600 else ("min", "h", 3600)
    whole, rest = divmod(round(seconds / (size / 60)), 60)
    return f"{whole} {large} {rest} {small}" if rest else f"{whole} {large}"


def number_of(number: int, what: str) -> str:
    """``1 run``, ``2 runs``: for words whose plural ends in s."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def capital(text: str) -> str:
    """Text with a capital first letter."""
    return text[:1].upper() + text[1:]


def ended(code: int) -> str:
    """The end of a process in words, by its return code: ``was killed by SIGKILL``, ``exited with 1``."""
    if code >= 0:
        return f"exited with {code}"
    return f"was killed by {next((known.name for known in signal.Signals if known == -code), f'signal {-code}')}"


def brief(text: str, most: int = 2000) -> str:
    """The text, or its ends if it is longer than ``most`` characters."""
    if len(text) <= most:
        return text
    head, tail = most * 2 // 3, most // 3
    return f"{text[:head]} … {len(text) - head - tail} more characters … {text[-tail:]}"


def one_line(error: BaseException) -> str:
    """An error's type and text on one visible line, whatever the error is."""
    try:
        text = brief(visible(" ".join(str(error).split())))
    except BaseException:  # its __str__ is the caller's
        text = ""
    if isinstance(error, SmembenchError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def place(error: BaseException, within: str = "") -> str:
    """File and line where an error was raised: of the innermost call, or of the innermost in the file ``within``."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if within in ("", frame.filename)]
    return f"{frames[-1].filename}, line {frames[-1].lineno}" if frames else within
