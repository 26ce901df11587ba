"""The parameters of kernels as CUDA C++ declares them: PTX has neither their names nor what they point to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import ml_dtypes  # noqa: F401 - so that NumPy knows the name bfloat16
import numpy as np

from smembench.launches.array_argument import Argument, ArrayArgument
from smembench.model.errors import UsageError

_NO_CODE = re.compile(
    r'("(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/|^[ \t]*#[ \t]*(?:if|else|elif|endif|pragma)[^\n]*',
    re.DOTALL | re.MULTILINE,
)
"""Comments and conditions; text in quotes, which may look like one, is the group."""
_LIST = r"\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)"
_OF_POINTER = re.compile(r"\(\s*[*&]+\s*(\w+)\s*\)")
"""The name of a pointer to an array or a function: ``float (*rows)[32]``."""
_BRACKETS = re.compile(r"\([^()]*\)|\[[^\[\]]*\]|\{[^{}]*\}|<[^<>()]*>")
_QUALIFIERS = re.compile(r"\b(?:const|volatile|struct|class|union|enum|typename|register|__\w+__|__restrict)\b")
_OF_TYPES = ["void", "bool", "char", "short", "int", "long", "float", "double", "signed", "unsigned", "auto"]
_INTEGERS = frozenset(("signed", "unsigned", "short", "int", "long"))
_ELEMENTS = {
    **{f"{kind}{bits}_t": f"{kind}{bits}" for kind in ("int", "uint") for bits in (16, 32, 64)},
    "size_t": "uint64",
    "float": "float32",
    "double": "float64",
    **dict.fromkeys(("half", "__half"), "float16"),
    **dict.fromkeys(("nv_bfloat16", "__nv_bfloat16"), "bfloat16"),
}
"""NumPy's types of those that a pointer may point to; one to bytes takes any data."""


def own_name(name: str) -> str:
    """A name without its template's arguments and its namespace."""
    return name.partition("<")[0].rpartition("::")[2]


class _Parameter(NamedTuple):
    """A parameter's name, and its type without qualifiers and brackets."""

    name: str
    type: str

    @property
    def element(self) -> str:
        """NumPy's type of what a pointer points to; "" for no pointer, and where that is not clear."""
        pointer = re.fullmatch(r"([\w\s]+)\*\s*", self.type)
        words = pointer[1].split() if pointer else []
        if not words or not _INTEGERS.issuperset(words):
            return _ELEMENTS.get(" ".join(words), "")
        return f"{'u' * ('unsigned' in words)}int{64 if 'long' in words else 16 if 'short' in words else 32}"


def check_data(source: str, name: str, arguments: Sequence[Argument]) -> None:
    """Raise UsageError for data whose elements are no such as a kernel's pointer, by its source, points to."""
    for parameter, argument in zip(_parameters(source, name, len(arguments)), arguments, strict=False):
        if not parameter.element or not isinstance(argument, ArrayArgument) or argument.data is None:
            continue
        expected, given = np.dtype(parameter.element), argument.dtype
        integers = [kind.kind in "iu" for kind in (expected, given)]
        alike = integers[0] == integers[1] and given.kind != "c"
        if expected.itemsize != given.itemsize or not (alike or parameter.element.endswith("float16")):
            raise UsageError(
                f"{parameter.name}: points to {expected}, but its data is {given}; convert it to {expected}, or write "
                f"{expected} before the .npy file, in Python give a view, to read its bits as such"
            )


def parameter_names(source: str, name: str, count: int) -> list[str]:
    """The parameters of a kernel as the source calls them; none where it does not name each of as many."""
    return [parameter.name for parameter in _parameters(source, name, count)]


def _parameters(source: str, name: str, count: int) -> list[_Parameter]:
    code = _NO_CODE.sub(lambda match: match[1] or " ", source)
    declaration = re.search(rf"\b{re.escape(own_name(name))}\s*{_LIST}\s*\{{", code) if source else None
    if declaration is None:
        return []
    text, more = _QUALIFIERS.sub(" ", _OF_POINTER.sub(r" \1 ", declaration[1])), 1
    while more:
        text, more = _BRACKETS.subn(" ", text)
    parameters = [_parameter(parameter.partition("=")[0]) for parameter in text.split(",")]
    names = {parameter.name for parameter in parameters} - {""}
    return parameters if len(parameters) == count == len(names) else []


def _parameter(text: str) -> _Parameter:
    """A parameter without brackets and qualifiers; its name is "" for a type alone."""
    named = re.fullmatch(r"(.*[^\w:])([A-Za-z_]\w*)\s*", text, re.DOTALL | re.ASCII)
    has_name = named is not None and named[1].strip() and named[2] not in _OF_TYPES
    return _Parameter(named[2], named[1]) if named and has_name else _Parameter("", text)
