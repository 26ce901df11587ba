"""Rounding and limits of PTX's floating-point instructions."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from smembench.explain.ptx.operation import Array, bits_of


def fused(a: Array, b: Array, c: Array) -> Array:
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


def fused_double(a: float, b: float, c: float) -> float:
    """a · b + c in double precision, rounded once."""
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


_FUSED_DOUBLES = np.frompyfunc(fused_double, 3, 1)


def within(value: Array, to: str, top_bit: bool) -> Array:
    """A number as the nearest integer of a type; a NaN is 0, or ``top_bit`` alone (PTX ISA, "cvt")."""
    limits = np.iinfo(to)
    nan = value != value
    low, high = value <= limits.min, value >= limits.max
    whole = np.where(low | high | nan, value.dtype.type(0), value).astype(to)
    whole = np.where(low, np.array(limits.min, to), np.where(high, np.array(limits.max, to), whole))
    return np.where(nan, np.array(1 << bits_of(to) - 1, f"u{bits_of(to) // 8}").view(to), whole) if top_bit else whole


def rounded_towards(mode: str, value: Array, to: str) -> Array:
    """A floating-point number of a type that is not beyond the value, in the direction of the mode."""
    nearest = value.astype(to)
    difference = np.asarray(_SIGNS_OF_DIFFERENCES(nearest, value)).astype("i1")
    infinity = np.array(np.inf, to)
    down, up = np.nextafter(nearest, -infinity), np.nextafter(nearest, infinity)
    too_high = (difference > 0) & (value > 0 if mode == "rz" else mode == "rm")
    too_low = (difference < 0) & (value < 0 if mode == "rz" else mode == "rp")
    return np.where(too_high, down, np.where(too_low, up, nearest))


_SIGNS_OF_DIFFERENCES = np.frompyfunc(lambda a, b: (a > b) - (a < b), 2, 1)
"""Signs of the differences of Python's numbers, which are compared exactly."""


def flushed(value: Any) -> Any:
    """Single precision without subnormal numbers, which become zeros of their sign."""
    if getattr(value, "dtype", None) != np.float32:
        return value
    return np.where(np.abs(value) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), value), value)


def flushing(compute: Callable[..., Any]) -> Callable[..., Any]:
    """The function with subnormal operands and results as zeros."""
    return lambda *operands: flushed(compute(*map(flushed, operands)))


def clamped_to_one(compute: Callable[..., Any]) -> Callable[..., Any]:
    """Results between 0 and 1; a NaN becomes 0."""

    def clamped(*operands: Any) -> Any:
        value = compute(*operands)
        return np.where(value > 0, np.minimum(value, value.dtype.type(1)), value.dtype.type(0))

    return clamped
