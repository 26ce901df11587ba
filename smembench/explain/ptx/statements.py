"""The statements of a PTX body, one by one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_LINES = re.compile(r"^(\s*\.(?:loc|file|pragma)\b[^\n;]*)$", re.MULTILINE)
"""Directives that end with their line."""


def statements_of(body: str) -> Iterator[str]:
    """The statements of a body: instructions, directives, labels with their colon, and braces of scopes."""
    for raw in _LINES.sub(r"\1;", body).split(";"):
        text = " ".join(raw.split())
        while text:
            if text[0] in "{}":
                yield text[0]
                text = text[1:].strip()
            elif label := re.match(r"(\$?[\w$]+)\s*:(?!:)\s*", text):
                yield f"{label[1]}:"
                text = text[label.end() :]
            elif text.startswith((".loc ", ".file", ".pragma")):
                yield text
                break
            else:
                closing = _scope_end(text)
                yield text[:closing].strip()
                text = text[closing:]


def labels_of(statements: Sequence[str]) -> Iterator[str]:
    """The labels of a scope, behind whose opening brace the statements begin."""
    depth = 0
    for statement in statements:
        depth += {"{": 1, "}": -1}.get(statement, 0)
        if depth < 0:
            return
        if depth == 0 and statement.endswith(":"):
            yield statement[:-1]


def _scope_end(text: str) -> int:
    """The end of a statement before the brace of a scope; braces of its own operands do not count."""
    depth = 0
    for number, character in enumerate(text):
        if character == "{":
            depth += 1
        elif character == "}":
            depth -= 1
            if depth < 0:
                return number
    return len(text)
