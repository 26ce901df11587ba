"""Values that a trace does not know: what kernels load, and what they compute of it.

An ``Unknown`` computes as a number does, and stays unknown. It is harmless until an address, a branch or the length of
a loop depends on it: that is noted, and the trace continues without the access, past the branch or the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, order=True)
class Unfollowed:
    """What a trace left out: the line of the source, what depends on data there, and whose data it is."""

    line: int
    what: str
    source: str
    remedy: str = ""

    @property
    def text(self) -> str:
        """A sentence, with the way out."""
        return f"{self.what} depends on {self.source}{self.remedy}"


class Unknown:
    """A number that is not known.

    Attributes:
        source: where it comes from, such as ``data of a``; of two operands, the first that is unknown.
        remedy: how it could become known.
    """

    __array_ufunc__ = None  # so that NumPy's numbers and arrays leave arithmetic with it to its own operators

    def __init__(self, note: Callable[[Unknown, str], None], source: str, remedy: str = "") -> None:
        self._note = note
        self.source, self.remedy = source, remedy

    def needed(self, what: str) -> None:
        """Note that ``what`` depends on it."""
        self._note(self, what)

    def __bool__(self) -> bool:
        self.needed("a branch")
        return False

    def __index__(self) -> int:
        self.needed("a number of elements")
        return 0

    def _same(self, *others: Any) -> Unknown:
        return self

    def __getattr__(self, name: str) -> Unknown:
        if name not in ("real", "imag", "x", "y", "z", "w"):
            raise AttributeError(f"an unknown number has no {name}")
        return self

    __hash__ = object.__hash__
    __getitem__ = _same
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _same  # type: ignore[assignment]
    __neg__ = __pos__ = __abs__ = __invert__ = __round__ = _same


for _operator in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift"):
    setattr(Unknown, f"__{_operator}__", Unknown._same)
    setattr(Unknown, f"__r{_operator}__", Unknown._same)
