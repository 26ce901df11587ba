"""What PTX instructions compute, on NumPy arrays with an element per thread: an opcode is a line of the table.

A rule gets the instruction's modifiers and NumPy's type of its last type, and returns the types of its operands and a
function of them (PTX ISA, "Instruction Set"). Integers wrap around as they do on a GPU; floating-point numbers are
rounded to the nearest, those of ``fma`` once. An instruction with a modifier that is not known is not followed.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from smembench.explain.ptx import bits
from smembench.explain.ptx.operation import Array, Operation
from smembench.explain.ptx.program import TYPES

Array = Any
"""A NumPy array or scalar."""


class Operation(NamedTuple):
    """NumPy's types of the operands, and the function; with several targets it returns a sequence."""

    types: Sequence[str]
    compute: Callable[..., Any]


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


_DIRECTED = ("rz", "rm", "rp")
"""Rounding of floating-point results towards zero, down and up; followed where numbers are converted."""

_KNOWN = {
    *TYPES, *_COMPARISONS, *(f"{name}u" for name in _COMPARISONS), "num", "nan", *_OF_BOOLEANS, *_ROUNDED, "rn", "lo",
    "hi", "wide", "sat", "ftz", "approx", "full", "wrap", "clamp", "l", "r", "shiftamt", "NaN",
}  # fmt: skip
"""Modifiers that are followed; others, such as carries, leave the result unknown."""


def _bits(kind: str) -> int:
    return np.dtype(kind).itemsize * 8


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
        return Operation([kind] * 3, _fused)
    product = _multiply(parts, kind).compute
    third = _twice(kind) if "wide" in parts else kind
    add = _saturating_sum if "sat" in parts else operator.add
    return Operation([kind, kind, third], lambda a, b, c: add(product(a, b), c))


def _fused(a: Array, b: Array, c: Array) -> Array:
    """``a * b + c``, rounded once."""
    kind = np.dtype(a.dtype)
    if kind.itemsize == 8:
        return np.asarray(_FUSED_DOUBLES(a, b, c)).astype(kind)
    product, third = a.astype("f8") * b.astype("f8"), c.astype("f8")  # the product is exact
    rough = product + third
    back = rough - product
    error = (product - (rough - back)) + (third - back)
    # Rounded to an odd last digit, the sum is rounded again as the exact one.
    toward = np.where((error > 0) == (rough > 0), np.int64(1), np.int64(-1))
    bits = np.asarray(rough).view(np.int64)
    odd = np.where(toward > 0, bits | 1, bits - 1 | 1)
    inexact = (error != 0) & np.isfinite(error) & np.isfinite(rough) & (bits & 1 == 0)
    return np.where(inexact, odd.view(np.float64), rough).astype(kind)


def _fused_double(a: float, b: float, c: float) -> float:
    if not np.isfinite([a, b, c]).all():
        return a * b + c if np.isfinite(c) or not np.isfinite([a, b]).all() else c
    product = Fraction(a) * Fraction(b)
    exact = product + Fraction(c)
    if not exact:
        return 0.0 if product else a * b + c
    try:
        return float(exact)
    except OverflowError:
        return float(np.copysign(np.inf, float(exact > 0) - 0.5))


_FUSED_DOUBLES = np.frompyfunc(_fused_double, 3, 1)


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
    to, saturate = TYPES[_first_type(parts)], "sat" in parts
    rounded = next((_ROUNDED[part] for part in parts if part in _ROUNDED), None)
    directed = next((part for part in parts if part in _DIRECTED), None)

    def convert(value: Array) -> Array:
        if kind[0] == "f" and rounded is not None:
            value = rounded(value)
        if to[0] == "f":
            return value.astype(to) if directed is None else _rounded_towards(directed, value, to)
        if kind[0] == "f":
            return _within(value if kind == "f8" else value.astype("f4"), to, kind == "f8" or to in ("i8", "u8"))
        return _within(value, to, False) if saturate else value.astype(to)

    return Operation([kind], convert)


def _within(value: Array, to: str, top_bit: bool) -> Array:
    """A number as the nearest integer of a type; a NaN is 0, or ``top_bit`` alone (PTX ISA, "cvt")."""
    limits = np.iinfo(to)
    nan = value != value
    low, high = value <= limits.min, value >= limits.max
    found = np.where(low | high | nan, value.dtype.type(0), value).astype(to)
    found = np.where(low, np.array(limits.min, to), np.where(high, np.array(limits.max, to), found))
    return np.where(nan, np.array(1 << _bits(to) - 1, f"u{_bits(to) // 8}").view(to), found) if top_bit else found


def _rounded_towards(mode: str, value: Array, to: str) -> Array:
    """A floating-point number of a type that is not beyond the value, in the direction of the mode."""
    found = value.astype(to)
    difference = np.asarray(_SIGNS_OF_DIFFERENCES(found, value)).astype("i1")
    infinity = np.array(np.inf, to)
    down, up = np.nextafter(found, -infinity), np.nextafter(found, infinity)
    too_high = (difference > 0) & (value > 0 if mode == "rz" else mode == "rm")
    too_low = (difference < 0) & (value < 0 if mode == "rz" else mode == "rp")
    return np.where(too_high, down, np.where(too_low, up, found))


_SIGNS_OF_DIFFERENCES = np.frompyfunc(lambda a, b: (a > b) - (a < b), 2, 1)
"""Of Python's numbers, which are compared exactly."""


def _extract(parts: Sequence[str], kind: str) -> Operation:
    """``bfe``: bits from a position on; of signed types with the sign of the last of them."""
    bits = _bits(kind)

    def of_one(value: int, position: int, length: int) -> int:
        position, length = position & 255, length & 255
        found = value >> position & (1 << length) - 1
        last = min(position + length - 1, bits - 1)
        negative = kind[0] == "i" and length and value >> last & 1
        return found | -1 << max(last - position + 1, 0) if negative else found & (1 << bits) - 1

    of_all = np.frompyfunc(of_one, 3, 1)
    return Operation([kind, "u4", "u4"], lambda *operands: np.asarray(of_all(*operands), object).astype(kind))


def _insert(parts: Sequence[str], kind: str) -> Operation:
    def insert(value: Array, into: Array, position: Array, length: Array) -> Array:
        begin, count = (position & np.uint32(255)).astype(object), (length & np.uint32(255)).astype(object)
        mask = (((1 << count) - 1) << begin) & ((1 << _bits(kind)) - 1)
        shifted = (np.asarray(value).astype(object) << begin) & mask
        return np.asarray(np.asarray(into).astype(object) & ~mask | shifted).astype(kind)

    return Operation([kind, kind, "u4", "u4"], insert)


def _leading_zeros(value: Array) -> Array:
    wide = np.asarray(value).astype("u8")
    found = np.full(wide.shape, _bits(value.dtype.str[1:]), np.uint32)
    for bit in range(_bits(value.dtype.str[1:])):
        found = np.where(wide >> np.uint64(bit) != 0, _bits(value.dtype.str[1:]) - 1 - bit, found)
    return found.astype("u4")


def _find_leading(parts: Sequence[str], kind: str) -> Operation:
    unsigned = f"u{_bits(kind) // 8}"

    def find(value: Array) -> Array:
        magnitude = np.where(value < 0, ~value, value).astype(unsigned)
        zeros = _leading_zeros(magnitude)
        place = zeros if "shiftamt" in parts else np.uint32(_bits(kind) - 1) - zeros
        return np.where(magnitude == 0, np.uint32(0xFFFFFFFF), place).astype("u4")

    return Operation([kind], find)


def _reverse(value: Array) -> Array:
    found, one = np.zeros_like(value), value.dtype.type(1)
    bits = _bits(value.dtype.str[1:])
    for bit in range(bits):
        found = found | (value >> value.dtype.type(bit) & one) << value.dtype.type(bits - 1 - bit)
    return found


def _lookup(parts: Sequence[str], kind: str) -> Operation:
    """``lop3``: bit i of ``table`` is the result where the bits of a, b and c are those of i."""
    joined = next((_OF_BOOLEANS[part] for part in parts if part in _OF_BOOLEANS), None)

    def look_up(a: Array, b: Array, c: Array, table: Array, other: Array = None) -> Any:
        found = np.zeros_like(a | b | c)
        for row in range(8):
            if int(table) >> row & 1:
                found = found | (a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c)
        return found if joined is None else [found, joined(found != 0, other)]

    return Operation(["u4", "u4", "u4", "u4", "?"][: 4 + (joined is not None)], look_up)


def _permute(a: Array, b: Array, selector: Array) -> Array:
    """``prmt``: four bytes of eight; bit 3 of a selector repeats the sign of its byte."""
    both = b.astype("u8") << np.uint64(32) | a.astype("u8")
    found: Array = np.uint32(0)
    for byte in range(4):
        chosen = selector >> np.uint32(4 * byte)
        value = both >> ((chosen & np.uint32(7)).astype("u8") * np.uint64(8)) & np.uint64(255)
        signed = np.where(value >> np.uint64(7) != 0, np.uint64(255), np.uint64(0))
        taken = np.where(chosen & np.uint32(8) != 0, signed, value)
        found = found | taken.astype("u4") << np.uint32(8 * byte)
    return found


def _select(parts: Sequence[str], kind: str) -> Operation:
    return Operation([kind, kind, "?"], lambda a, b, chosen: np.where(chosen, a, b))


def _unary(compute: Callable[[Array], Array]) -> Callable[[Sequence[str], str], Operation]:
    return _alike(1, compute)


def _extreme(parts: Sequence[str], kind: str) -> Operation:
    """``min`` and ``max``; of floating-point numbers that which is no NaN, and -0 is less than 0."""
    larger = parts[0] == "max"
    if kind[0] != "f":
        return Operation([kind, kind], np.maximum if larger else np.minimum)

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
    "lop3": _lookup,
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
"""By opcode."""


def _first_type(parts: Sequence[str]) -> str:
    return next(part for part in parts[1:] if part in TYPES)


def operation(parts: Sequence[str]) -> Operation | None:
    """What an instruction with these modifiers computes; None if it is not followed."""
    rule = RULES.get(parts[0])
    types = [part for part in parts[1:] if part in TYPES]
    known = _KNOWN if parts[0] != "cvt" else _KNOWN.union(_DIRECTED)
    if rule is None or not types or OPAQUE.intersection(parts) or not known.issuperset(parts[1:]):
        return None
    if "ftz" in parts and "f16" in parts and parts[0] != "cvt":
        return None
    kind, result = TYPES[types[-1]], TYPES[types[0]]
    found = rule(parts, kind)
    if "ftz" in parts:
        found = Operation(found.types, _flushing(found.compute))
    if "sat" in parts and result[0] == "f":
        found = Operation(found.types, _clamped_to_one(found.compute))
    return found


def _flushed(value: Any) -> Any:
    """Single precision without subnormal numbers, which become zeros of their sign."""
    if getattr(value, "dtype", None) != np.float32:
        return value
    return np.where(np.abs(value) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), value), value)


def _flushing(compute: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *operands: _flushed(compute(*map(_flushed, operands)))


def _clamped_to_one(compute: Callable[..., Any]) -> Callable[..., Any]:
    """Results between 0 and 1; a NaN becomes 0."""

    def clamped(*operands: Any) -> Any:
        value = compute(*operands)
        return np.where(value > 0, np.minimum(value, value.dtype.type(1)), value.dtype.type(0))

    return clamped
