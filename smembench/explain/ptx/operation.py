"""The form of a rule's result: what an instruction computes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

Array = Any
"""A NumPy array or scalar."""


OF_BOOLEANS: Mapping[str, Callable[[Array, Array], Array]] = {
    "and": operator.and_, "or": operator.or_, "xor": operator.xor,
}  # fmt: skip
"""Operations on predicates by modifier."""


class Operation(NamedTuple):
    """NumPy's types of the operands, and the function; with several targets it returns a sequence."""

    types: Sequence[str]
    compute: Callable[..., Any]


def bits_of(kind: str) -> int:
    """The bits of NumPy's type."""
    return np.dtype(kind).itemsize * 8
