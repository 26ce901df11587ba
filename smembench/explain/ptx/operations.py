"""Results of PTX instructions, on NumPy arrays with an element per thread: an opcode is a line of the table.

A rule gets the instruction's modifiers and NumPy's type of its last type, and returns the types of its operands and a
function of them (PTX ISA, "Instruction Set"). Integers wrap around as they do on a GPU; floating-point numbers are
rounded to the nearest, those of ``fma`` once. An instruction with a modifier that is not known is not followed.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from smembench.explain.ptx import bits, floats
from smembench.explain.ptx.operation import OF_BOOLEANS, Array, Operation
from smembench.launches.ptx_entry import TYPES

OPAQUE = {"bf16", "f16x2", "bf16x2", "tf32", "e4m3", "e5m2", "e4m3x2", "e5m2x2"}
"""Types whose arithmetic is not followed: results are unknown."""

_COMPARISONS: Mapping[str, Callable[[Array, Array], Array]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "lo": operator.lt, "ls": operator.le, "hi": operator.gt, "hs": operator.ge,
}  # fmt: skip
_ROUNDED: Mapping[str, Callable[[Array], Array]] = {
    "rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil,
}  # fmt: skip


_DIRECTED = ("rz", "rm", "rp")
"""Rounding of floating-point results towards zero, down and up; followed where numbers are converted."""
_CLAMPED = ("relu",)
"""At zero; followed for integers."""

_KNOWN = {
    *TYPES, *_COMPARISONS, *(f"{name}u" for name in _COMPARISONS), "num", "nan", *OF_BOOLEANS, *_ROUNDED, "rn", "lo",
    "hi", "wide", "sat", "ftz", "approx", "full", "wrap", "clamp", "l", "r", "shiftamt", "NaN",
}  # fmt: skip
"""Modifiers that are followed; others, such as carries, leave the result unknown."""


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
    product = np.asarray(a).astype(object) * np.asarray(b).astype(object)
    return np.asarray(product >> 64).astype(kind)


def _multiply(parts: Sequence[str], kind: str) -> Operation:
    if "wide" in parts:
        wide = np.dtype(_twice(kind))
        return Operation([kind, kind], lambda a, b: a.astype(wide) * b.astype(wide))
    return Operation([kind, kind], _high if "hi" in parts else operator.mul)


def _multiply_add(parts: Sequence[str], kind: str) -> Operation:
    if kind[0] == "f":
        return Operation([kind] * 3, floats.fused)
    product = _multiply(parts, kind).compute
    third = _twice(kind) if "wide" in parts else kind
    add = _saturating_sum if "sat" in parts else operator.add
    return Operation([kind, kind, third], lambda a, b, c: add(product(a, b), c))


def _saturating_sum(a: Array, b: Array) -> Array:
    """A sum of integers up to 32 bits wide that stops at the limits of their type."""
    limits = np.iinfo(a.dtype)
    return np.clip(a.astype("i8") + b.astype("i8"), limits.min, limits.max).astype(a.dtype)


def _multiply_24(parts: Sequence[str], kind: str) -> Operation:
    def low(value: Array) -> Array:
        shift = value.dtype.type(8)
        return value << shift >> shift

    shift = 16 if "hi" in parts else 0
    wide = np.dtype(_twice(kind))
    add = _saturating_sum if "sat" in parts else operator.add

    def compute(a: Array, b: Array, c: Array = None) -> Array:
        product = (low(a).astype(wide) * low(b).astype(wide) >> wide.type(shift)).astype(kind)
        return product if c is None else add(product, c)

    return Operation([kind, kind, kind][: 3 if parts[0] == "mad24" else 2], compute)


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
        limits = np.iinfo(kind)
        return Operation(
            [kind, kind],
            lambda a, b: np.clip(compute(a.astype("i8"), b.astype("i8")), limits.min, limits.max).astype(kind),
        )

    return rule


def _compare(parts: Sequence[str], kind: str) -> Operation:
    name = next(part for part in parts[1:] if part.rstrip("u") in _COMPARISONS or part in ("num", "nan", *_COMPARISONS))
    unordered = name.endswith("u") and name not in _COMPARISONS
    joined = next((OF_BOOLEANS[part] for part in parts if part in OF_BOOLEANS), None)

    def compare(a: Array, b: Array, other: Array = None) -> list[Array]:
        nan = (a != a) | (b != b)
        if name in ("num", "nan"):
            result = nan if name == "nan" else ~nan
        else:
            compared = _COMPARISONS[name.removesuffix("u") if unordered else name](a, b)
            result = compared | nan if unordered else compared & ~nan
        opposite = ~result
        if joined is not None:
            result, opposite = joined(result, other), joined(opposite, other)
        return [result, opposite]

    return Operation([kind, kind, "?"][: 2 + (joined is not None)], compare)


def _set(parts: Sequence[str], kind: str) -> Operation:
    types, compute = _compare(parts, kind)
    result = next(TYPES[part] for part in parts[1:] if part in TYPES)
    true = np.array(1.0 if result[0] == "f" else -1).astype(result)
    return Operation(types, lambda *operands: np.where(compute(*operands)[0], true, true.dtype.type(0)))


def _convert(parts: Sequence[str], kind: str) -> Operation:
    to, saturate = TYPES[_first_type(parts)], "sat" in parts
    rounded = next((_ROUNDED[part] for part in parts if part in _ROUNDED), None)
    directed = next((part for part in parts if part in _DIRECTED), None)

    def convert(value: Array) -> Array:
        if kind[0] == "f" and rounded is not None:
            value = rounded(value)
        if to[0] == "f":
            return value.astype(to) if directed is None else floats.rounded_towards(directed, value, to)
        if kind[0] == "f":
            return floats.within(value if kind == "f8" else value.astype("f4"), to, kind == "f8" or to in ("i8", "u8"))
        return floats.within(value, to, False) if saturate else value.astype(to)

    return Operation([kind], convert)


def _select(parts: Sequence[str], kind: str) -> Operation:
    return Operation([kind, kind, "?"], lambda a, b, chosen: np.where(chosen, a, b))


def _unary(compute: Callable[[Array], Array]) -> Callable[[Sequence[str], str], Operation]:
    return _alike(1, compute)


def _extreme(parts: Sequence[str], kind: str) -> Operation:
    """``min`` and ``max``; of floating-point numbers that which is no NaN, and -0 is less than 0."""
    larger = parts[0] == "max"
    if kind[0] != "f":
        compute = np.maximum if larger else np.minimum
        if "relu" in parts:
            return Operation([kind, kind], lambda a, b: np.maximum(compute(a, b), a.dtype.type(0)))
        return Operation([kind, kind], compute)

    def extreme(a: Array, b: Array) -> Array:
        first = (a > b if larger else a < b) | (a == b) & (np.signbit(a) != larger)
        missing = a != a
        if "NaN" in parts:
            return np.where(missing | (first & (b == b)), a, b)
        return np.where(~missing & (first | (b != b)), a, b)

    return Operation([kind, kind], extreme)


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
    "fma": _multiply_add,
    "lg2": _unary(np.log2),
    "lop3": bits.lookup,
    "mad": _multiply_add,
    "mad24": _multiply_24,
    "max": _extreme,
    "min": _extreme,
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
"""Rules by opcode."""


def _first_type(parts: Sequence[str]) -> str:
    return next(part for part in parts[1:] if part in TYPES)


def operation(parts: Sequence[str]) -> Operation | None:
    """The arithmetic of an instruction with these modifiers; None if it is not followed."""
    rule = RULES.get(parts[0])
    types = [part for part in parts[1:] if part in TYPES]
    known = _KNOWN.union({"cvt": _DIRECTED, "min": _CLAMPED, "max": _CLAMPED}.get(parts[0], ()))
    if rule is None or not types or OPAQUE.intersection(parts) or not known.issuperset(parts[1:]):
        return None
    if ("ftz" in parts and "f16" in parts and parts[0] != "cvt") or ("relu" in parts and "s32" not in types):
        return None
    kind, result = TYPES[types[-1]], TYPES[types[0]]
    arithmetic = rule(parts, kind)
    if "ftz" in parts:
        arithmetic = Operation(arithmetic.types, floats.flushing(arithmetic.compute))
    if "sat" in parts and result[0] == "f":
        arithmetic = Operation(arithmetic.types, floats.clamped_to_one(arithmetic.compute))
    return arithmetic
