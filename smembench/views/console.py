"""Consoles: data on stdout, everything else on stderr; plain text if it is not a terminal.

What is printed through ``plain`` cannot control the terminal, whoever wrote it.
"""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from smembench.model.text import visible

stdout = Console(highlight=False)
stderr = Console(stderr=True, highlight=False)
notes = Console(stderr=True, highlight=False)
"""Notes and progress on stderr: what --quiet leaves out."""

_ASCII: dict[str, str | int | None] = {"×": "x", "±": "+-", "·": "|", "✓": "ok", "…": "...", "²": "^2", "–": "-"}
_ASCII |= zip("▁▂▃▄▅▆▇█", "_.-=+*%@", strict=True)


def say(console: Console, line: str) -> None:
    """Print a line as it is: unwrapped, without markup, in the console's encoding."""
    console.print(Text(plain(console, visible(line))), soft_wrap=True)


def can_show(console: Console, text: str) -> bool:
    """True if the console's encoding has these characters."""
    try:
        text.encode(console.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def plain(console: Console, text: str) -> str:
    """Text in the console's encoding: characters that it lacks become ASCII, and control characters escapes."""
    text = visible(text, keep="\n")
    if can_show(console, text):
        return text
    text = text.translate(str.maketrans(_ASCII))
    return text.encode(console.encoding or "ascii", "replace").decode(console.encoding or "ascii")
