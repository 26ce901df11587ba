"""What PTX instructions compute, thread by thread with Python's numbers, after the text of the PTX ISA."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from math import copysign, inf, isinf, isnan, nan
from typing import Any

from ptx_runs import bits_of

_FORMATS = {"f16": (11, -14, 15), "f32": (24, -126, 127), "f64": (53, -1022, 1023)}
"""Digits, and the smallest and the largest exponent."""

COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip
BOOLEAN: Mapping[str, Callable[[Any, Any], Any]] = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}


def limits(kind: str) -> tuple[int, int]:
    """The smallest and the largest integer of a type."""
    bits = bits_of(kind)
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if kind[0] == "s" else (0, (1 << bits) - 1)


def clamped(kind: str, value: int) -> int:
    low, high = limits(kind)
    return min(max(value, low), high)


def wrapped(kind: str, value: int) -> int:
    bits = bits_of(kind)
    value &= (1 << bits) - 1
    return value - (1 << bits) if kind[0] == "s" and value >> bits - 1 else value


def divided(a: int, b: int) -> int | None:
    """Towards zero; None where PTX leaves open what comes."""
    if b == 0:
        return None
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def remainder(a: int, b: int) -> int | None:
    quotient = divided(a, b)
    return None if quotient is None else a - quotient * b


def shifted_left(kind: str, a: int, by: int) -> int:
    return a << by if by < bits_of(kind) else 0


def shifted_right(kind: str, a: int, by: int) -> int:
    return a >> min(by, bits_of(kind))  # Python's is arithmetic


def funnel(left: bool, wrap: bool, a: int, b: int, c: int) -> int:
    n = c & 31 if wrap else min(c, 32)
    if left:
        return b << n | a >> 32 - n
    return (b << 32 - n | a >> n) & 0xFFFFFFFF


def extracted(kind: str, a: int, position: int, length: int) -> int:
    position, length, msb = position & 255, length & 255, bits_of(kind) - 1
    sign = 0 if kind[0] == "u" or length == 0 else a >> min(position + length - 1, msb) & 1
    result = 0
    for i in range(msb + 1):
        bit = a >> position + i & 1 if i < length and position + i <= msb else sign
        result |= bit << i
    return result


def inserted(kind: str, a: int, b: int, position: int, length: int) -> int:
    position, length = position & 255, length & 255
    for i in range(length):
        if position + i >= bits_of(kind):
            break
        at = 1 << position + i
        b = b | at if a >> i & 1 else b & ~at
    return b


def found_leading(kind: str, amount: bool, a: int) -> int:
    if a < 0:
        a = ~a
    for i in reversed(range(bits_of(kind))):
        if a >> i & 1:
            return bits_of(kind) - 1 - i if amount else i
    return 0xFFFFFFFF


def reversed_bits(kind: str, a: int) -> int:
    return int(f"{a:0{bits_of(kind)}b}"[::-1], 2)


def leading_zeros(kind: str, a: int) -> int:
    return bits_of(kind) - a.bit_length()


def permuted(a: int, b: int, c: int) -> int:
    content = a.to_bytes(4, "little") + b.to_bytes(4, "little")
    result = []
    for number in range(4):
        selector = c >> 4 * number & 15
        byte = content[selector & 7]
        result.append((255 if byte & 128 else 0) if selector & 8 else byte)
    return int.from_bytes(bytes(result), "little")


def looked_up(table: int, a: int, b: int, c: int) -> int:
    result = 0
    for bit in range(32):
        row = (a >> bit & 1) << 2 | (b >> bit & 1) << 1 | c >> bit & 1
        result |= (table >> row & 1) << bit
    return result


def compared(name: str, a: Any, b: Any) -> bool:
    unordered = isnan(a) or isnan(b) if isinstance(a, float) else False
    if name == "num":
        return not unordered
    if name == "nan":
        return unordered
    if name in COMPARED:
        return not unordered and COMPARED[name](a, b)
    if name in ("lo", "ls", "hi", "hs"):
        return COMPARED[{"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}[name]](a, b)
    return unordered or COMPARED[name.removesuffix("u")](a, b)


def rounded(kind: str, exact: Fraction, mode: str = "rn") -> float:
    """The floating-point number of a type for an exact number that is not zero."""
    digits, low, high = _FORMATS[kind]
    sign, magnitude = (-1 if exact < 0 else 1), abs(exact)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    while Fraction(2) ** exponent > magnitude:
        exponent -= 1
    while Fraction(2) ** (exponent + 1) <= magnitude:
        exponent += 1
    unit = Fraction(2) ** (max(exponent, low) - digits + 1)
    whole, rest = divmod(magnitude, unit)
    if mode == "rn":
        up = rest * 2 > unit or (rest * 2 == unit and whole % 2 == 1)
    else:
        up = rest > 0 and mode == ("rm" if sign < 0 else "rp")
    result = (whole + up) * unit
    largest = (2 - Fraction(2) ** (1 - digits)) * Fraction(2) ** high
    if result > largest:
        beyond = inf if mode in ("rn", "rm" if sign < 0 else "rp") else float(largest)
        return copysign(beyond, sign)
    return copysign(float(result), sign)


def finite(*values: float) -> bool:
    return not any(isnan(value) or isinf(value) for value in values)


def of_floats(name: str, kind: str, *values: float) -> float:
    """``add``, ``sub``, ``mul``, ``div`` and ``fma``, to the nearest."""
    a, b, c = (*values, 0.0)[:3]
    if name == "div" and b == 0:
        return nan if a == 0 or isnan(a) else copysign(inf, copysign(1, a) * copysign(1, b))
    if finite(*values):
        x, y, z = Fraction(a), Fraction(b), Fraction(c)
        if name == "fma":
            exact = x * y + z
        else:
            exact = {"add": x + y, "sub": x - y, "mul": x * y, "div": x / y if y else x}[name]
        if exact:
            return rounded(kind, exact)
        if name == "fma" and x * y != 0:
            return 0.0  # what cancels out
    if name == "fma":
        product = copysign(1, a) * copysign(1, b)
        if finite(a, b):
            if not finite(c):
                return c
            return copysign(0.0, product) + c  # 0 + 0
        return a * b + c
    return {"add": lambda: a + b, "sub": lambda: a - b, "mul": lambda: a * b, "div": lambda: a / b}[name]()


def to_integer(source: str, target: str, mode: str, value: float) -> int:
    """``cvt`` of floating-point numbers to integers (PTX ISA 8, "Conversion")."""
    if isnan(value):
        if source != "f64" and target not in ("s64", "u64"):
            return 0
        return wrapped(target, 1 << bits_of(target) - 1)
    if isinf(value):
        return limits(target)[value > 0]
    exact = Fraction(value)
    down = exact.numerator // exact.denominator
    rest = exact - down
    up = {
        "rzi": value < 0 and rest > 0,
        "rmi": False,
        "rpi": rest > 0,
        "rni": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and down % 2 == 1),
    }[mode]
    return clamped(target, down + up)
