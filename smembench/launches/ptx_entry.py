"""Entries of PTX: kernels by name, with types and sizes of parameters (PTX ISA, "Kernel Function Parameters")."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from smembench.model.errors import UsageError
from smembench.toolchains.loaded import Parameter

TYPES: Mapping[str, str] = {
    "pred": "?",
    **{
        f"{kind}{bits}": f"{letter}{bits // 8}"
        for kind, letter in (("u", "u"), ("s", "i"), ("b", "u"))
        for bits in (8, 16, 32, 64)
    },
    "f16": "f2",
    "f32": "f4",
    "f64": "f8",
    "bf16": "u2",
    "f16x2": "u4",
    "bf16x2": "u4",
    "tf32": "u4",
    "b128": "V16",
}
"""NumPy's types of PTX's; what NumPy lacks is kept as bits."""

_ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*(?:\(([^)]*)\))?[^;{]*\{")
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)


def entries(ptx: str) -> Mapping[str, list[Parameter]]:
    """The parameters of each kernel of a PTX module, by the kernel's name."""
    matches = _ENTRY.finditer(_COMMENT.sub("", ptx))
    return {match[1]: [parameter_of(text) for text in split(match[2] or "")] for match in matches}


def entry_named(known: Iterable[str], name: str, path: Path) -> str:
    """The kernel of a name among those of a module; of C++ without what mangling adds to it.

    Raises:
        UsageError: for none or several.
    """
    every = list(known)
    if name in every:
        return name
    alike = [entry for entry in every if readable(entry) == name]
    if len(alike) > 1:
        raise UsageError(f"{path}: has {len(alike)} kernels {name}: give one of {', '.join(alike)}")
    if not alike:
        raise unknown_kernel(path, name, map(readable, every))
    return alike[0]


def unknown_kernel(path: Path, name: str, known: Iterable[str]) -> UsageError:
    """The error of a kernel that a file does not have, with those that it has."""
    asked = f"has no kernel {name!r}" if name else f"name a kernel in it, {path}:NAME"
    return UsageError(f"{path}: {asked}{listed(known)}")


def listed(known: Iterable[str]) -> str:
    """The end of a message that names the kernels of a file."""
    return f"; it has {', '.join(sorted(known)) or 'none'}"


def readable(name: str) -> str:
    """A name without the mangling of C++: ``scale`` for ``_Z5scalePffi``, ``tile`` for ``_ZZ4kindvE4tile``."""
    if not name.startswith("_Z"):
        return name
    if name.startswith("_ZZ"):  # of a variable in a function: what follows it
        ends = (match for match in re.finditer(r"E(\d+)", name) if len(name) - match.end() == int(match[1]))
        return next((name[match.end() :] for match in ends), name)
    parts, rest = [], name[2:].removeprefix("N")
    while match := re.match(r"\d+", rest):
        parts.append(rest[match.end() :][: int(match[0])])
        rest = rest[match.end() + int(match[0]) :]
    return "::".join(parts) or name


def parameter_of(text: str) -> Parameter:
    """A parameter as an entry declares it: ``.param .u64 .ptr .align 1 name``."""
    words = re.sub(r"\.ptr\b(\s*\.\w+)*?(\s*\.align\s+\d+)?(?=\s+[\w$]+\s*$)|\.align\s+\d+", " ", text).split()
    name, _, count = words[-1].partition("[")
    kind = next(word[1:] for word in words if word[1:] in TYPES)
    itemsize = np.dtype(TYPES[kind]).itemsize
    return Parameter(name, kind, int(count.rstrip("]")) * itemsize if count else itemsize)


def split(text: str) -> list[str]:
    """Operands apart by commas, those inside of brackets and braces left together."""
    parts, depth, begin = [], 0, 0
    for number, character in enumerate(text):
        if character in "{[(":
            depth += 1
        elif character in "}])":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[begin:number].strip())
            begin = number + 1
    return [*parts, text[begin:].strip()] if text.strip() else []
