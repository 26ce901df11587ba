"""Errors in the log of a compiler of CUDA C++, in a line each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from smembench.model.errors import UsageError

_PLACE = r"^(.+?)[(:](\d+)(?:\)|:\d+)?: "
_PLACED = re.compile(rf"{_PLACE}(?:catastrophic |fatal )?error(?: #[\w-]+)?: (.*)$", re.MULTILINE)
_REDEFINED = re.compile(rf'{_PLACE}warning\b.*?(?:redefinition of macro "(\w+)"|"(\w+)" redefined)', re.MULTILINE)
_OF_PTXAS = re.compile(r"^ptxas (?:.*; )?(?:error|fatal) *: (.*)$", re.MULTILINE)


OF_ARCHITECTURE = "not supported on .target"
"""In errors of instructions that only an architecture of its own has, such as sm_90a."""
_REMEDIES = {
    "is undefined": "give a kernel and types with their namespaces",
    "function template": "give the template's arguments, as in tile<float,32>",
    "overloaded function": "give it a name of its own",
}


def first_error(log: str, path: Path, name: str, generated: str) -> str | None:
    """The first error in the source, or else that of ptxas, with its file and line; None if the log has neither.

    Args:
        log: of nvcc or NVRTC.
        path: the file that was compiled, as it is shown.
        name: the kernel's, where the compiler was asked for one; its errors are in the file ``generated``.
    """
    if (match := _PLACED.search(log)) is None:
        match = _OF_PTXAS.search(log)
        return match and f"{path}: ptxas: {match[1]}"
    file, line, text = match.groups()
    if file != generated:
        return f"{_shown(file, path)}, line {line}: {text}"
    remedy = next((f"; {remedy}" for words, remedy in _REMEDIES.items() if words in text), "")
    return f"{path}: {name}: {text}{remedy}"


def _shown(file: str, path: Path) -> str:
    """A file of a log as it was given, if it is the one that was compiled."""
    return str(path) if Path(file) == path.absolute() else file


def check_macros(log: str, path: Path, options: Sequence[str]) -> None:
    """Refuse a source that overrules an option: of two definitions the later one stands, which is its own.

    Args:
        log: of nvcc or NVRTC, with warnings.
        path: the file that was compiled, as it is shown.
        options: the compiler's, such as ``-DTILE=64``.

    Raises:
        UsageError: with the file, the line and the way out.
    """
    given = {option[2:].partition("=")[0]: option for option in options if option.startswith("-D")}
    for file, line, *names in _REDEFINED.findall(log):
        if option := given.get(name := "".join(names)):
            raise UsageError(
                f"{_shown(file, path)}, line {line}: defines {name} again, which makes {option} void; "
                f"put #ifndef {name} before this line and #endif after it"
            )
