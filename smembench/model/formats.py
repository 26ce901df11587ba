"""Floating-point formats that NumPy has not, and how its arrays hold them.

Numba, CuPy and the interface through which arrays on the device are exchanged do not know ml_dtypes' types either. So
an array of bfloat16 is an array of its bits, uint16, one of float8_e4m3 of uint8, and they are converted where they are
made and where they are read. A tf32 number is a float32 whose lower 13 bits are zero: what a tensor core makes of other
numbers, the PTX ISA does not say.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

HALVES = ("bfloat16", "float16")
"""The element types of 16 bits."""

TF32, FLOAT8 = "tf32", "float8_e4m3"
"""An 8-bit exponent and 10 bits of fraction; 4 and 3, and no infinity (ml_dtypes.float8_e4m3fn)."""

NARROW = (*HALVES, TF32, FLOAT8)
"""The element types whose products are exact in float32, and are added up in it."""

WIDE = ("float32", "float64")
"""The element types whose products are added up in the type itself."""

UNIT_ROUNDOFF = {"bfloat16": 2.0**-8, "float16": 2.0**-11, "float32": 2.0**-24}
"""Largest relative error of rounding to nearest, half the distance from 1 to the next number."""

SMALLEST = {"bfloat16": 2.0**-133, "float16": 2.0**-24, "float32": 2.0**-149}
"""The smallest positive number, a subnormal."""

_SPELLINGS = {
    **dict.fromkeys(("fp64", "f64", "double"), "float64"),
    **dict.fromkeys(("fp32", "f32", "float"), "float32"),
    **dict.fromkeys(("fp16", "f16", "half"), "float16"),
    "bf16": "bfloat16",
    **dict.fromkeys(("fp8", "e4m3", "fp8_e4m3"), FLOAT8),
}


def element_type(name: str) -> str:
    """The name of an element type that is spelled as elsewhere: ``float32`` for fp32, f32 and float."""
    return _SPELLINGS.get(name.lower(), name)


_CARRIED = {"bfloat16": "uint16", TF32: "float32", FLOAT8: "uint8"}
_CUT_OFF = 13
"""Bits of a float32 that tf32 has not."""


def carried(dtype: str) -> str:
    """NumPy's name for the elements of arrays of this type."""
    return _CARRIED.get(dtype, dtype)


def accumulated(dtype: str) -> str:
    """The type in which products of this type are added up."""
    return "float32" if dtype in NARROW else dtype


def produced(dtype: str) -> str:
    """The type of a product of matrices of this type: of float8 bfloat16, which has the range of its sums."""
    return {TF32: "float32", FLOAT8: "bfloat16"}.get(dtype, dtype)


@cache
def _format(dtype: str) -> np.dtype[Any]:
    import ml_dtypes
    import numpy as np

    own: dict[str, Any] = {"bfloat16": ml_dtypes.bfloat16, FLOAT8: ml_dtypes.float8_e4m3fn, TF32: np.float32}
    numpy_dtype: np.dtype[Any] = np.dtype(own.get(dtype, dtype))
    return numpy_dtype


def rounded(values: NDArray[Any], dtype: str) -> NDArray[Any]:
    """An array of this type, from floats, rounded to nearest, ties to even."""
    converted = values.astype(_format(dtype), copy=False).view(carried(dtype))
    return _rounded_to_tf32(converted) if dtype == TF32 else converted


def _rounded_to_tf32(values: NDArray[Any]) -> NDArray[Any]:
    """By adding half a unit to the bits, or one less where the last bit that stays is even."""
    import numpy as np

    bits = values.view(np.uint32)
    up = 2 ** (_CUT_OFF - 1) - 1 + (bits >> _CUT_OFF & 1)
    return np.where(np.isfinite(values), bits + up >> _CUT_OFF << _CUT_OFF, bits).astype(np.uint32).view(np.float32)


def widened(array: NDArray[Any], dtype: str, to: str) -> NDArray[Any]:
    """The numbers of an array of this type as ``to``, float32 or float64."""
    return array.view(_format(dtype)).astype(to, copy=False)
