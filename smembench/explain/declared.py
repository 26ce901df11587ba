"""Shared arrays as the source of a kernel in CUDA C++ declares them: PTX has only their bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from linecache import checkcache, getlines
from math import prod

from smembench.explain.warp import WIDTHS
from smembench.launches.expression import evaluated, parsed

_SIZES = {
    **dict.fromkeys(("char", "bool", "int8_t", "uint8_t", "__nv_fp8_e4m3", "__nv_fp8_e5m2"), 1),
    **dict.fromkeys(("short", "half", "__half", "__nv_bfloat16", "nv_bfloat16", "int16_t", "uint16_t"), 2),
    **dict.fromkeys(("float", "int", "unsigned", "int32_t", "uint32_t", "half2", "__half2", "__nv_bfloat162"), 4),
    **dict.fromkeys(("double", "float2", "int2", "uint2", "int64_t", "uint64_t", "size_t"), 8),
    **dict.fromkeys(("float4", "int4", "uint4", "double2"), 16),
}
"""Bytes of the types that people have in shared memory."""

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_STATEMENT = re.compile(r"__shared__\s+([^;{}]*);")
_TYPED = re.compile(
    r"(?:(?:__align__|alignas)\s*\([^)]*\)\s*)*"
    r"((?:(?:volatile|const|unsigned|signed|static)\s+)*[\w:]+)\s+(\w+\s*\[.*)",
    re.DOTALL,
)
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+([^\n\\]+)$", re.MULTILINE)
_CONSTANT = re.compile(
    r"\bconst(?:expr)?\s+(?:static\s+)?(?:unsigned\s+)?(?:int|size_t|uint32_t)\s+(\w+)\s*=([^,;]+)[,;]"
)


@dataclass(frozen=True, slots=True)
class Declared:
    """A declaration: the type, its bytes, and the dimensions as written and in numbers; none for dynamic memory."""

    type: str
    itemsize: int
    written: tuple[str, ...]
    sides: tuple[int, ...]

    def padded(self, name: str, pad: int, columns: int = 0) -> str:
        """The declaration with ``pad`` more elements at the end of a row, which may be a part of ``columns`` elements.

        ``float tile[32][33]``; in parts ``float tile[8][4][33]``.
        """
        *before, last = self.written
        if columns and columns != self.sides[-1]:
            before, last = [*before, str(self.sides[-1] // columns)], str(columns)
        longer = str(int(last) + pad) if last.isdecimal() else f"{last} + {pad}"
        return f"{self.type} {name}{''.join(f'[{side}]' for side in (*before, longer))}"


def declared(filename: str, name: str, size: int, line: int) -> Declared | None:
    """The last declaration of a shared array of ``size`` bytes before a line of a file; None if it is not clear."""
    checkcache(filename)
    source = _COMMENT.sub(lambda match: "\n" * match[0].count("\n"), "".join(getlines(filename)))
    constants, latest = _constants(source), None
    for at, text in _statements(source):
        one = _one(text, name, size, constants)
        if one is not None and at <= line:
            latest = one
    return latest


def _statements(source: str) -> Iterator[tuple[int, str]]:
    """The line and the text of each declaration in shared memory."""
    for match in _STATEMENT.finditer(source):
        yield source.count("\n", 0, match.start()) + 1, match[1]


def _one(text: str, name: str, size: int, constants: Mapping[str, int]) -> Declared | None:
    """The declaration of a name in a statement, if it has that size in bytes."""
    typed = _TYPED.fullmatch(text.strip())
    array = re.search(rf"(?<!\w){re.escape(name)}\s*((?:\[[^\]]*\]\s*)+)", typed[2]) if typed else None
    if typed is None or array is None:
        return None
    itemsize = _SIZES.get(typed[1].split()[-1].rpartition("::")[2])
    written = tuple(side.strip() for side in re.findall(r"\[([^\]]*)\]", array[1]) if side.strip())
    if itemsize is None:  # a type that the file does not define, as of a template, if the array has sides in numbers
        known = _sides(written, 0, constants)
        itemsize = size // prod(known) if known and prod(known) else 0
    sides = _sides(written, size // itemsize, constants) if itemsize in WIDTHS else None
    if sides is None or (sides and prod(sides) * itemsize != size):
        return None
    return Declared(" ".join(typed[1].split()), itemsize, written, sides)


def _sides(written: Sequence[str], elements: int, constants: Mapping[str, int]) -> tuple[int, ...] | None:
    """The sides in numbers; one that the file does not define, even if written twice, follows from the others."""
    known: dict[str, int] = {}
    for text in written:
        with suppress(ValueError):
            known[text] = _value(text, constants)
    unknown = [text for text in written if text not in known]
    if unknown:
        if len(set(unknown)) > 1:
            return None
        rest = elements // max(prod(known[text] for text in written if text in known), 1)
        known[unknown[0]] = round(rest ** (1 / len(unknown)))
    return tuple(known[text] for text in written)


def _constants(source: str) -> Mapping[str, int]:
    """The macros and constants of a file that are whole numbers."""
    values: dict[str, int] = {}
    for match in sorted([*_MACRO.finditer(source), *_CONSTANT.finditer(source)], key=lambda match: match.start()):
        try:
            values[match[1]] = _value(match[2], values)
        except ValueError:
            values.pop(match[1], None)
    return values


def _value(text: str, constants: Mapping[str, int]) -> int:
    """The value of a constant in C, whose division is that of whole numbers."""
    return evaluated(parsed(re.sub(r"/+", "//", re.sub(r"(?<=\d)[uUlL]+\b", "", text))), constants)
