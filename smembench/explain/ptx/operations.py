"""What PTX instructions compute, on NumPy arrays with an element per thread: an opcode is a line of the table.

A rule gets the instruction's modifiers and NumPy's type of its last type, and returns the types of its operands and a
function of them (PTX ISA, "Instruction Set"). Integers wrap around as they do on a GPU; floating-point numbers are
rounded as NumPy does, which addresses and branches seldom see.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from smembench.explain.ptx import bits
from smembench.explain.ptx.operation import Array, Operation
from smembench.explain.ptx.program import TYPES

_UNFOLLOWED = {"cc", "f4e", "b4e", "rc8", "ecl", "ecr", "rc16"}
"""Modifiers that are not followed: carries, and unusual modes of ``prmt``."""

OPAQUE = {"bf16", "f16x2", "bf16x2", "tf32", "e4m3", "e5m2", "e4m3x2", "e5m2x2"}
"""Types whose arithmetic is not followed: results are unknown."""

_COMPARISONS: Mapping[str, Callable[[Array, Array], Array]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "lo": operator.lt, "ls": operator.le, "hi": operator.gt, "hs": operator.ge,
}  # fmt: skip
_OF_BOOLEANS: Mapping[str, Callable[[Array, Array], Array]] = {
    "and": operator.and_, "or": operator.or_, "xor": operator.xor,
}  # fmt: skip
_ROUNDED: Mapping[str, Callable[[Array], Array]] = {
    "rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil,
}  # fmt: skip


def _alike(count: int, compute: Callable[..., Any]) -> Callable[[Sequence[str], str], Operation]:
    """A rule for ``count`` operands of the instruction's type."""
    return lambda parts, kind: Operation([kind] * count, compute)


def _twice(kind: str) -> str:
    return f"{kind[0]}{2 * int(kind[1:])}"


def _high(a: Array, b: Array) -> Array:
    """The upper half of a product of integers."""
    kind = np.dtype(a.dtype)
    if kind.itemsize < 8:
        wide = np.dtype(_twice(kind.str[1:]))
        return (a.astype(wide) * b.astype(wide) >> wide.type(kind.itemsize * 8)).astype(kind)
    product = np.asarray(a, object) * np.asarray(b, object)
    return np.asarray(product >> 64).astype(kind)


def _multiply(parts: Sequence[str], kind: str) -> Operation:
    if "wide" in parts:
        wide = np.dtype(_twice(kind))
        return Operation([kind, kind], lambda a, b: a.astype(wide) * b.astype(wide))
    return Operation([kind, kind], _high if "hi" in parts else operator.mul)


def _multiply_add(parts: Sequence[str], kind: str) -> Operation:
    product = _multiply(parts, kind).compute
    third = _twice(kind) if "wide" in parts else kind
    return Operation([kind, kind, third], lambda a, b, c: product(a, b) + c)


def _multiply_24(parts: Sequence[str], kind: str) -> Operation:
    def low(value: Array) -> Array:
        shift = value.dtype.type(8)
        return value << shift >> shift

    shift = 16 if "hi" in parts else 0
    wide = np.dtype(_twice(kind))
    return Operation(
        [kind, kind, kind][: 3 if parts[0] == "mad24" else 2],
        lambda a, b, c=None: (
            (low(a).astype(wide) * low(b).astype(wide) >> wide.type(shift)).astype(kind)
            + (a.dtype.type(0) if c is None else c)
        ),
    )


def _divide(parts: Sequence[str], kind: str) -> Operation:
    remainder = parts[0] == "rem"

    def of_integers(a: Array, b: Array) -> Array:
        divisor = np.where(b == 0, b.dtype.type(1), b)
        quotient = a // divisor
        if kind[0] == "i":  # towards zero, not down
            quotient = quotient + ((quotient * divisor != a) & ((a < 0) != (divisor < 0)))
        return (a - quotient * divisor if remainder else quotient).astype(kind)

    return Operation([kind, kind], of_integers if kind[0] in "iu" else operator.truediv)


def _saturating(compute: Callable[..., Any]) -> Callable[[Sequence[str], str], Operation]:
    def rule(parts: Sequence[str], kind: str) -> Operation:
        if "sat" not in parts or kind[0] == "f":
            return Operation([kind, kind], compute)
        wide, limits = np.dtype(_twice(kind)), np.iinfo(kind)
        return Operation(
            [kind, kind],
            lambda a, b: np.clip(compute(a.astype(wide), b.astype(wide)), limits.min, limits.max).astype(kind),
        )

    return rule


def _compare(parts: Sequence[str], kind: str) -> Operation:
    name = next(part for part in parts[1:] if part.rstrip("u") in _COMPARISONS or part in ("num", "nan", *_COMPARISONS))
    unordered = name.endswith("u") and name not in _COMPARISONS
    joined = next((_OF_BOOLEANS[part] for part in parts if part in _OF_BOOLEANS), None)

    def compare(a: Array, b: Array, other: Array = None) -> list[Array]:
        nan = (a != a) | (b != b)
        if name in ("num", "nan"):
            found = nan if name == "nan" else ~nan
        else:
            compared = _COMPARISONS[name.removesuffix("u") if unordered else name](a, b)
            found = compared | nan if unordered else compared & ~nan
        opposite = ~found
        if joined is not None:
            found, opposite = joined(found, other), joined(opposite, other)
        return [found, opposite]

    return Operation([kind, kind, "?"][: 2 + (joined is not None)], compare)


def _set(parts: Sequence[str], kind: str) -> Operation:
    types, compute = _compare(parts, kind)
    result = next(TYPES[part] for part in parts[1:] if part in TYPES)
    true = np.array(1.0 if result[0] == "f" else -1).astype(result)
    return Operation(types, lambda *operands: np.where(compute(*operands)[0], true, true.dtype.type(0)))


def _convert(parts: Sequence[str], kind: str) -> Operation:
    to, _, saturate = next(TYPES[part] for part in parts[1:] if part in TYPES), kind, "sat" in parts
    rounded = next((_ROUNDED[part] for part in parts if part in _ROUNDED), None)

    def convert(value: Array) -> Array:
        if kind[0] == "f" and rounded is not None:
            value = rounded(value)
        if to[0] == "f":
            found = value.astype(to)
            return np.clip(found, 0, 1) if saturate else found
        if kind[0] == "f" or saturate:  # beyond the range the nearest; NaN becomes 0
            limits = np.iinfo(to)
            exact = np.where(value != value, 0, value)
            low, high = exact <= limits.min, exact >= limits.max
            inside = np.where(low | high, 0, exact).astype(to)
            return np.where(low, to_limit(limits.min), np.where(high, to_limit(limits.max), inside))
        return value.astype(to)

    def to_limit(value: int) -> Array:
        return np.array(value, to)

    return Operation([kind], convert)


def _select(parts: Sequence[str], kind: str) -> Operation:
    return Operation([kind, kind, "?"], lambda a, b, chosen: np.where(chosen, a, b))


def _unary(compute: Callable[[Array], Array]) -> Callable[[Sequence[str], str], Operation]:
    return _alike(1, compute)


RULES: Mapping[str, Callable[[Sequence[str], str], Operation]] = {
    "abs": _unary(np.abs),
    "add": _saturating(operator.add),
    "and": _alike(2, operator.and_),
    "bfe": bits.extract,
    "bfi": bits.insert,
    "bfind": bits.find_leading,
    "brev": _unary(bits.reverse),
    "clz": _unary(bits.leading_zeros),
    "cnot": _unary(lambda a: np.where(a == 0, a.dtype.type(1), a.dtype.type(0))),
    "copysign": _alike(2, lambda sign, value: np.copysign(value, sign)),
    "cos": _unary(np.cos),
    "cvt": _convert,
    "div": _divide,
    "ex2": _unary(np.exp2),
    "fma": _alike(3, lambda a, b, c: a * b + c),
    "lg2": _unary(np.log2),
    "lop3": lambda parts, kind: Operation(["u4", "u4", "u4", "u4"], bits.lookup),
    "mad": _multiply_add,
    "mad24": _multiply_24,
    "max": _alike(2, np.fmax),
    "min": _alike(2, np.fmin),
    "mul": _multiply,
    "mul24": _multiply_24,
    "neg": _unary(operator.neg),
    "not": _unary(operator.invert),
    "or": _alike(2, operator.or_),
    "popc": _unary(lambda a: np.bitwise_count(a).astype("u4")),
    "prmt": lambda parts, kind: Operation(["u4", "u4", "u4"], bits.permute),
    "rcp": _unary(lambda a: 1 / a),
    "rem": _divide,
    "rsqrt": _unary(lambda a: 1 / np.sqrt(a)),
    "sad": _alike(3, lambda a, b, c: np.where(a < b, b - a, a - b) + c),
    "selp": _select,
    "set": _set,
    "setp": _compare,
    "shf": bits.funnel_shift,
    "shl": bits.shift,
    "shr": bits.shift,
    "sin": _unary(np.sin),
    "slct": lambda parts, kind: Operation(
        [TYPES[_first_type(parts)]] * 2 + [kind], lambda a, b, c: np.where(c >= 0, a, b)
    ),
    "sqrt": _unary(np.sqrt),
    "sub": _saturating(operator.sub),
    "tanh": _unary(np.tanh),
    "xor": _alike(2, operator.xor),
}
"""By opcode."""


def _first_type(parts: Sequence[str]) -> str:
    return next(part for part in parts[1:] if part in TYPES)


def operation(parts: Sequence[str]) -> Operation | None:
    """What an instruction with these modifiers computes; None if it is not followed."""
    rule = RULES.get(parts[0])
    types = [part for part in parts[1:] if part in TYPES]
    if rule is None or OPAQUE.intersection(parts) or _UNFOLLOWED.intersection(parts):
        return None
    return rule(parts, TYPES[types[-1]] if types else "u4")
