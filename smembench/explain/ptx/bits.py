"""Results of PTX's instructions on bits: shifts, fields, permutations and counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from smembench.explain.ptx.operation import OF_BOOLEANS, Array, Operation, bits_of


def shift(parts: Sequence[str], kind: str) -> Operation:
    """Shifts by as many bits as the type has, or more, leave zeros, or the sign."""
    bits, left = bits_of(kind), parts[0] == "shl"

    def shift(value: Array, by: Array) -> Array:
        if np.ndim(by) == 0 and by < bits:  # nearly always
            count = value.dtype.type(by)
            return value << count if left else value >> count
        inside = np.minimum(by, bits - 1).astype(value.dtype)
        moved = value << inside if left else value >> inside
        beyond = value >> value.dtype.type(bits - 1) if kind[0] == "i" and not left else value.dtype.type(0)
        return np.where(by >= bits, beyond, moved)

    return Operation([kind, "u4"], shift)


def funnel_shift(parts: Sequence[str], kind: str) -> Operation:
    """``shf``: two words as one of 64 bits, shifted; the upper word to the left, the lower one to the right."""
    wrap, left = "wrap" in parts, "l" in parts

    def shift(low: Array, high: Array, by: Array) -> Array:
        both = high.astype("u8") << np.uint64(32) | low.astype("u8")
        count = (by & np.uint32(31) if wrap else np.minimum(by, 32)).astype("u8")
        moved = both << count >> np.uint64(32) if left else both >> count
        return moved.astype("u4")

    return Operation(["u4", "u4", "u4"], shift)


def extract(parts: Sequence[str], kind: str) -> Operation:
    """``bfe``: bits from a position on; of signed types with the sign of the last of them."""
    bits = bits_of(kind)

    def of_one(value: int, position: int, length: int) -> int:
        position, length = position & 255, length & 255
        field = value >> position & (1 << length) - 1
        last = min(position + length - 1, bits - 1)
        negative = kind[0] == "i" and length and value >> last & 1
        return field | -1 << max(last - position + 1, 0) if negative else field & (1 << bits) - 1

    of_all = np.frompyfunc(of_one, 3, 1)
    return Operation([kind, "u4", "u4"], lambda *operands: np.asarray(of_all(*operands), object).astype(kind))


def insert(parts: Sequence[str], kind: str) -> Operation:
    """``bfi``: the lowest bits of a value put into another from a position on."""

    def insert(value: Array, into: Array, position: Array, length: Array) -> Array:
        begin, count = (position & np.uint32(255)).astype(object), (length & np.uint32(255)).astype(object)
        mask = (((1 << count) - 1) << begin) & ((1 << bits_of(kind)) - 1)
        shifted = (np.asarray(value).astype(object) << begin) & mask
        return np.asarray(np.asarray(into).astype(object) & ~mask | shifted).astype(kind)

    return Operation([kind, kind, "u4", "u4"], insert)


def leading_zeros(value: Array) -> Array:
    """``clz``: zeros above the highest one."""
    wide = np.asarray(value).astype("u8")
    zeros = np.full(wide.shape, bits_of(value.dtype.str[1:]), np.uint32)
    for bit in range(bits_of(value.dtype.str[1:])):
        zeros = np.where(wide >> np.uint64(bit) != 0, bits_of(value.dtype.str[1:]) - 1 - bit, zeros)
    return zeros.astype("u4")


def find_leading(parts: Sequence[str], kind: str) -> Operation:
    """``bfind``: the place of the highest bit that is not the sign, or how far it is from the top."""
    unsigned = f"u{bits_of(kind) // 8}"

    def find(value: Array) -> Array:
        magnitude = np.where(value < 0, ~value, value).astype(unsigned)
        zeros = leading_zeros(magnitude)
        place = zeros if "shiftamt" in parts else np.uint32(bits_of(kind) - 1) - zeros
        return np.where(magnitude == 0, np.uint32(0xFFFFFFFF), place).astype("u4")

    return Operation([kind], find)


def reverse(value: Array) -> Array:
    """``brev``: the bits in reverse order."""
    result, one = np.zeros_like(value), value.dtype.type(1)
    bits = bits_of(value.dtype.str[1:])
    for bit in range(bits):
        result = result | (value >> value.dtype.type(bit) & one) << value.dtype.type(bits - 1 - bit)
    return result


def lookup(parts: Sequence[str], kind: str) -> Operation:
    """``lop3``: bit i of ``table`` is the result where the bits of a, b and c are those of i."""
    joined = next((OF_BOOLEANS[part] for part in parts if part in OF_BOOLEANS), None)

    def look_up(a: Array, b: Array, c: Array, table: Array, other: Array = None) -> Any:
        result = np.zeros_like(a | b | c)
        for row in range(8):
            if int(table) >> row & 1:
                result = result | (a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c)
        return result if joined is None else [result, joined(result != 0, other)]

    return Operation(["u4", "u4", "u4", "u4", "?"][: 4 + (joined is not None)], look_up)


def permute(a: Array, b: Array, selector: Array) -> Array:
    """``prmt``: four bytes of eight; bit 3 of a selector repeats the sign of its byte."""
    both = b.astype("u8") << np.uint64(32) | a.astype("u8")
    result: Array = np.uint32(0)
    for byte in range(4):
        chosen = selector >> np.uint32(4 * byte)
        value = both >> ((chosen & np.uint32(7)).astype("u8") * np.uint64(8)) & np.uint64(255)
        signed = np.where(value >> np.uint64(7) != 0, np.uint64(255), np.uint64(0))
        taken = np.where(chosen & np.uint32(8) != 0, signed, value)
        result = result | taken.astype("u4") << np.uint32(8 * byte)
    return result
